# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to run a recovery again, or to count it as done: from their files to the journal."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner import event_record as states
from forewarn.runner.clocks import Stamp
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks import recovery_requests
from forewarn.runner.hooks.recovery_requests import AGAIN, DEALT_WITH, Recoveries, Request, hand_over, waits
from forewarn.runner.journal.reader import JournalEntry, JournalReader
from forewarn.runner.journal.writer import Journal
from forewarn.runner.telemetry.health import HealthReporter
from forewarn.runner.telemetry.readiness import Readiness
from forewarn.runner.telemetry.systemd import Notifier
from hypothesis import given
from hypothesis import strategies as st
from tools.stage import Stage

KINDS = ("recovery-again", "recovery-dealt-with", "recovery-refused")


class Machine(Stage):
    """A scheduler with a real journal, and the requests beside it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        super().__init__()

    def new_journal(self) -> Journal:
        return Journal(str(self.state), self.world.clocks())

    def begin(self) -> None:
        super().begin()
        self.readiness = Readiness(self.world.clocks(), 60.0, "web_0")
        self.health = HealthReporter(
            self.scheduler,
            self.journal,
            self.log,
            self.metrics,
            self.world.clocks(),
            self.now,
            notifier=Notifier({}, self.world.clocks()),
            readiness=self.readiness,
        )
        self.recoveries = Recoveries(str(self.state), self.scheduler, self.journal, self.log)

    def restart(self) -> None:
        self.journal._disconnect()
        super().restart()

    def work(self, seconds: float = 0.0) -> None:
        """Do what the runner's loop does at a tick."""
        self.world.clock.advance(seconds)
        self.recoveries.look()
        self.scheduler.collect()
        self.recoveries.settle()
        self.scheduler.advance()
        if self.journal.commit():
            self.recoveries.kept()
        self.health.keep()
        self.health.turning(1.0)

    def gauge(self, drill: bool = False) -> float:
        """Return how many recoveries fail, as Prometheus reads it."""
        wanted = f'forewarn_recoveries_failing{{drill="{"true" if drill else "false"}"}} '
        (line,) = (line for line in self.metrics.render().splitlines() if line.startswith(wanted))
        return float(line[len(wanted) :])

    def recovering(self, recover: str = "undrain", name: str = "A") -> EventRecord:
        """Return the record of an event that is over, and whose first recover hook runs."""
        record = self.prepared(name, recover=recover)
        self.gone(record)
        return record

    def failing(self, recover: str = "undrain") -> EventRecord:
        """Return the record of an event whose first recover hook has failed three times."""
        record = self.recovering(recover)
        for pause in (10.0, 60.0, 0.0):
            self.end(recover.split()[0], "failed")
            self.work(pause)
        return record

    def ask(self, record: EventRecord, note: str | None = None, **changes: Any) -> str:
        action = AGAIN if note is None else DEALT_WITH
        asked = Stamp(self.world.wall, self.world.now, "boot")
        request = Request(record.identifier, record.event.event_id, action, note, "alice", asked)
        return hand_over(str(self.state), request._replace(**changes))

    def answers(self) -> list[JournalEntry]:
        return list(JournalReader(str(self.state)).entries(kinds=KINDS))

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.state / "recoveries").glob("*"))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    tmp_path.chmod(0o700)
    found = Machine(tmp_path)
    yield found
    found.journal.close()


# Again


def test_what_fails_runs_again_at_once(machine: Machine) -> None:
    record = machine.failing()
    assert machine.running() == []
    request_id = machine.ask(record)
    assert waits(str(machine.state), request_id)
    machine.work()
    assert machine.running() == ["undrain"]
    assert not waits(str(machine.state), request_id)
    (answer,) = machine.answers()
    assert (answer.kind, answer.record_id) == ("recovery-again", record.identifier)
    assert answer.fields == {"request": request_id, "by": "alice", "hooks": ["run /bin/true undrain"]}
    assert [name for _level, name, _line in machine.log.lines if name in KINDS] == ["recovery-again"]
    machine.end("undrain")
    assert record.state == states.DONE


def test_a_hook_that_runs_is_let_finish_before_it_runs_again(machine: Machine) -> None:
    record = machine.recovering()
    machine.end("undrain", "failed")
    machine.work(10.0)
    request_id = machine.ask(record)
    machine.work(1.0)
    assert machine.running() == ["undrain"]
    assert waits(str(machine.state), request_id)
    assert machine.answers() == []
    machine.end("undrain", "failed")
    machine.work()
    assert machine.running() == ["undrain"], "and not after a pause of a minute"
    assert not waits(str(machine.state), request_id)


def test_what_has_succeeded_meanwhile_does_not_run_again(machine: Machine) -> None:
    record = machine.recovering("undrain open")
    machine.end("undrain", "failed")
    machine.work(10.0)
    machine.ask(record)
    machine.work()
    machine.end("undrain")
    machine.work()
    assert machine.running() == ["open"]


# Dealt with


def test_what_was_dealt_with_is_over(machine: Machine) -> None:
    record = machine.failing("undrain open")
    request_id = machine.ask(record, "put back by hand")
    machine.work()
    assert record.state == states.DONE
    assert not waits(str(machine.state), request_id)
    (answer,) = machine.answers()
    assert (answer.kind, answer.record_id) == ("recovery-dealt-with", record.identifier)
    assert answer.fields == {
        "request": request_id,
        "by": "alice",
        "note": "put back by hand",
        "hooks": ["run /bin/true undrain", "run /bin/true open"],
    }
    machine.work(86400.0)
    assert machine.running() == []


@pytest.mark.parametrize("result", ["succeeded", "failed"])
def test_what_runs_when_it_is_dealt_with_is_let_finish_and_not_tried_again(machine: Machine, result: str) -> None:
    record = machine.recovering("undrain open")
    machine.end("undrain", "failed")
    machine.work(10.0)
    assert machine.running() == ["undrain"]
    request_id = machine.ask(record, "put back by hand")
    machine.work(1.0)
    assert machine.running() == ["undrain"]
    assert waits(str(machine.state), request_id)
    machine.end("undrain", result)
    assert record.state == states.DONE
    assert [answer.kind for answer in machine.answers()] == ["recovery-dealt-with"]
    machine.work(86400.0)
    assert machine.running() == []


def test_a_later_event_is_not_concerned(machine: Machine) -> None:
    first = machine.failing()
    machine.ask(first, "put back by hand")
    machine.work()
    second = machine.recovering(name="A")
    assert machine.running() == ["undrain"]
    assert second.state == states.RECOVERING


# The runner may be killed at any moment


@pytest.mark.parametrize("note", [None, "put back by hand"])
def test_a_request_waits_for_a_runner_that_is_not_running(machine: Machine, note: str | None) -> None:
    record = machine.failing()
    machine.ask(record, note)
    machine.restart()
    machine.work()
    assert machine.running() == (["undrain"] if note is None else [])
    assert len(machine.answers()) == 1
    assert machine.files() == []


@pytest.mark.parametrize("note", [None, "put back by hand"])
def test_killed_before_the_journal_was_written_it_is_done_by_the_next(machine: Machine, note: str | None) -> None:
    record = machine.failing()
    machine.ask(record, note)
    machine.recoveries.look()
    machine.recoveries.settle()
    machine.restart()
    assert machine.answers() == []
    machine.work()
    assert [answer.fields["by"] for answer in machine.answers()] == ["alice"]
    assert machine.running() == (["undrain"] if note is None else [])
    assert machine.files() == []


@pytest.mark.parametrize("note", [None, "put back by hand"])
def test_killed_before_the_file_was_removed_it_is_not_done_twice(machine: Machine, note: str | None) -> None:
    record = machine.failing()
    machine.ask(record, note)
    machine.recoveries.look()
    machine.recoveries.settle()
    machine.scheduler.advance()
    assert machine.journal.commit()
    machine.restart()
    assert len(machine.files()) == 1
    machine.work()
    assert len(machine.answers()) == 1
    assert machine.answers()[0].kind != "recovery-refused"
    assert machine.files() == []


def test_killed_while_it_waits_for_a_hook_it_is_not_forgotten(machine: Machine) -> None:
    record = machine.recovering()
    machine.end("undrain", "failed")
    machine.work(10.0)
    machine.ask(record, "put back by hand")
    machine.work()
    assert machine.running() == ["undrain"]
    machine.restart()
    machine.work()
    assert machine.running() == [], "it is over"
    assert [answer.kind for answer in machine.answers()] == ["recovery-dealt-with"]
    assert machine.scheduler.records == []


def test_while_nothing_can_be_kept_the_file_stays(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    record = machine.failing()
    request_id = machine.ask(record, "put back by hand")
    with monkeypatch.context() as patch:
        patch.setattr(machine.journal, "_write", lambda _connection: (_ for _ in ()).throw(OSError(28, "No space")))
        machine.work()
        assert record.state == states.DONE
        assert waits(str(machine.state), request_id)
    machine.work(10.0)
    assert not waits(str(machine.state), request_id)
    assert [answer.kind for answer in machine.answers()] == ["recovery-dealt-with"]


# Refusals


def test_an_event_that_is_over_is_refused(machine: Machine) -> None:
    record = machine.recovering()
    machine.end("undrain")
    request_id = machine.ask(record)
    machine.work()
    (answer,) = machine.answers()
    assert (answer.kind, answer.fields["request"], answer.fields["event_id"]) == ("recovery-refused", request_id, "A")
    assert "not being recovered" in answer.fields["reason"]
    assert machine.files() == []


def test_a_request_that_is_withdrawn_is_forgotten(machine: Machine) -> None:
    record = machine.recovering()
    machine.end("undrain", "failed")
    machine.work(10.0)
    machine.ask(record, "put back by hand")
    machine.recoveries.look()
    shutil.rmtree(machine.state / "recoveries")
    machine.end("undrain")
    assert machine.answers() == []


# What is told of it meanwhile


def test_a_recovery_that_fails_is_counted_until_it_is_over(machine: Machine) -> None:
    record = machine.recovering()
    assert (machine.gauge(), machine.gauge(drill=True)) == (0, 0)
    for pause in (10.0, 60.0):
        machine.end("undrain", "failed")
        machine.work(pause)
    assert machine.gauge() == 0, "it may yet succeed by itself"
    machine.end("undrain", "failed")
    assert (machine.gauge(), machine.gauge(drill=True)) == (1, 0)
    assert "1 recovery fails: forewarn recover" in machine.health.status(machine.scheduler.records)
    machine.work(86400.0)
    assert machine.running() == ["undrain"]
    assert machine.gauge() == 1, "also while it is tried again"
    machine.end("undrain", "failed")
    machine.ask(record, "put back by hand")
    machine.work()
    assert machine.gauge() == 0
    assert "fails" not in machine.health.status(machine.scheduler.records)


def test_a_drill_whose_recovery_fails_is_counted_apart(machine: Machine) -> None:
    record = machine.failing()
    record.drill = True
    machine.work(20.0)
    assert (machine.gauge(), machine.gauge(drill=True)) == (0, 1)


def test_this_vm_is_not_ready_until_the_recovery_is_over(machine: Machine) -> None:
    record = machine.failing()
    assert not machine.readiness.ready()
    machine.restart()
    machine.work()
    assert not machine.readiness.ready(), "nor after a restart"
    machine.end("undrain", "failed")
    machine.ask(record, "put back by hand")
    machine.work()
    machine.work()
    assert machine.readiness.ready()


GOOD: dict[str, Any] = {
    "forewarn": {"schema": "recovery-request", "version": 1},
    "record_id": 1,
    "event_id": "A",
    "action": "dealt-with",
    "note": "put back",
    "by": "alice",
    "asked": [1.0, 2.0, "boot"],
}
NAME = "recover-0123456789ab.json"


def refused(machine: Machine) -> str:
    """Work; return why the one file was refused, and see that it is moved aside, once."""
    machine.work()
    machine.work()
    (answer,) = machine.answers()
    assert answer.kind == "recovery-refused"
    assert all(name.endswith(".refused") for name in machine.files())
    return str(answer.fields["reason"])


def test_what_the_bad_ones_are_made_of_is_good() -> None:
    assert recovery_requests._request(json.dumps(GOOD).encode()).note == "put back"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a request"),
        ("[]", "keys"),
        ("[" * 60000, "not a request"),
        ("0" * 70000, "longer than"),
        ({**GOOD, "more": 1}, "keys"),
        ({**GOOD, "forewarn": {"schema": "recovery-request", "version": 2}}, "another version"),
        ({**GOOD, "record_id": True}, "record_id"),
        ({**GOOD, "record_id": 2**63}, "record_id"),
        ({**GOOD, "event_id": None}, "event_id"),
        ({**GOOD, "event_id": "a\nb"}, "event_id"),
        ({**GOOD, "action": "skip"}, "action"),
        ({**GOOD, "note": None}, "note"),
        ({**GOOD, "note": "  "}, "note"),
        ({**GOOD, "note": "two\nlines"}, "note"),
        ({**GOOD, "note": "x" * 1001}, "note"),
        ({**GOOD, "note": 5}, "note"),
        ({**GOOD, "action": "again"}, "note"),
        ({**GOOD, "by": ""}, "who asked"),
        ({**GOOD, "asked": [1, 2]}, "not a request"),
    ],
)
def test_a_bad_file_is_moved_aside_and_told(machine: Machine, content: object, reason: str) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    text = content if isinstance(content, str) else json.dumps(content)
    (machine.state / "recoveries" / NAME).write_text(text)
    assert reason in refused(machine)


def test_a_bad_file_keeps_no_good_one_from_being_carried_out(machine: Machine) -> None:
    record = machine.failing()
    machine.ask(record)
    (machine.state / "recoveries" / NAME).write_text("{")
    machine.work()
    assert machine.running() == ["undrain"]


def test_a_file_that_others_may_write_to_is_refused(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    path = machine.state / "recoveries" / NAME
    path.write_text(json.dumps(GOOD))
    path.chmod(0o602)
    assert "can be changed by others" in refused(machine)


def test_so_is_a_link(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    (machine.state / "elsewhere.json").write_text(json.dumps(GOOD))
    (machine.state / "recoveries" / NAME).symlink_to(machine.state / "elsewhere.json")
    refused(machine)
    assert (machine.state / "elsewhere.json").exists()


def test_a_file_that_is_not_named_as_one_is_refused(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    (machine.state / "recoveries" / "please.json").write_text(json.dumps(GOOD))
    assert "please.json is not the name" in refused(machine)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_whatever_one_value_is_it_is_read_or_refused(data: st.DataObject) -> None:
    record = dict(GOOD)
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(_JSON)
    try:
        found = recovery_requests._request(json.dumps(record).encode())
    except InputError:
        return
    assert recovery_requests.check(found) == found


# Who may ask, and who asked


def test_a_request_is_for_the_runner_alone(machine: Machine) -> None:
    request_id = machine.ask(machine.failing())
    directory = machine.state / "recoveries"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / f"{request_id}.json").stat().st_mode & 0o777 == 0o600


def test_who_asked_is_the_user_and_who_became_root() -> None:
    import pwd

    me = pwd.getpwuid(os.getuid()).pw_name
    assert recovery_requests.asker({}) == me
    assert recovery_requests.asker({"SUDO_USER": "alice"}) == ("root (sudo: alice)" if os.getuid() == 0 else me)
    assert recovery_requests.asker({"SUDO_USER": "two\nlines"}) == me


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO])
def test_a_request_that_cannot_be_read_now_is_read_later(
    machine: Machine, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/operations.md: it is removed when it was carried out; a file that is not a request is moved aside."""
    record = machine.failing()
    request_id = machine.ask(record, "put back by hand")
    whole = os.open

    def fails(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith(f"{request_id}.json"):
            raise OSError(error, os.strerror(error))
        return whole(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fails)
        machine.work()
    machine.work()
    assert record.state == "done"


def test_an_event_with_a_long_id_can_be_dealt_with(machine: Machine) -> None:
    """docs/operations.md: an EventId may have 256 characters."""
    record = machine.recovering(name="A" * 256)
    for pause in (10.0, 60.0, 0.0):
        machine.end("undrain", "failed")
        machine.work(pause)
    machine.ask(record, "put back by hand")
    machine.work()
    assert machine.files() == []
    assert record.state == "done"
