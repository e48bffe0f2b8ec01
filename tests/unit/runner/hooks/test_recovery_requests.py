# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to run a recovery again, or to count it as done: from their files to the journal."""

from __future__ import annotations

import shutil

import pytest
from forewarn.runner import event_record as states
from forewarn.runner.hooks.recovery_requests import is_pending
from tools.worlds.recovery_stage import KINDS, Machine

# Again


def test_what_fails_runs_again_at_once(machine: Machine) -> None:
    record = machine.failing()
    assert machine.running() == []
    request_id = machine.ask(record)
    assert is_pending(str(machine.state), request_id)
    machine.work()
    assert machine.running() == ["undrain"]
    assert not is_pending(str(machine.state), request_id)
    (answer,) = machine.answers()
    assert (answer.kind, answer.record_id) == ("recovery-again", record.identifier)
    assert answer.fields == {"request": request_id, "by": "alice", "hooks": ["run /bin/true undrain"]}
    assert [name for _level, name, _line in machine.log.lines if name in KINDS] == ["recovery-again"]
    machine.end("undrain")
    assert record.state == states.DONE


def test_running_hook_finishes_before_it_is_repeated(machine: Machine) -> None:
    record = machine.retrying()
    request_id = machine.ask(record)
    machine.work(1.0)
    assert machine.running() == ["undrain"]
    assert is_pending(str(machine.state), request_id)
    assert machine.answers() == []
    machine.end("undrain", "failed")
    machine.work()
    assert machine.running() == ["undrain"], "and not after a pause of a minute"
    assert not is_pending(str(machine.state), request_id)


def test_what_has_succeeded_meanwhile_does_not_run_again(machine: Machine) -> None:
    record = machine.retrying("undrain open")
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
    assert not is_pending(str(machine.state), request_id)
    (answer,) = machine.answers()
    assert (answer.kind, answer.record_id) == ("recovery-dealt-with", record.identifier)
    assert answer.fields == {
        "request": request_id,
        "by": "alice",
        "note": "put back by hand",
        "hooks": ["run /bin/true undrain", "run /bin/true open"],
    }
    reasons = [run.reason for run in record.plan.of_phase("recover")]
    assert reasons == ["dealt with by a person: put back by hand"] * 2
    machine.work(86400.0)
    assert machine.running() == []


@pytest.mark.parametrize("result", ["succeeded", "failed"])
def test_running_hook_finishes_when_dealt_with(machine: Machine, result: str) -> None:
    record = machine.retrying("undrain open")
    assert machine.running() == ["undrain"]
    request_id = machine.ask(record, "put back by hand")
    machine.work(1.0)
    assert machine.running() == ["undrain"]
    assert is_pending(str(machine.state), request_id)
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


@pytest.mark.parametrize("killed", ["before it is read", "before the commit", "before the removal"])
@pytest.mark.parametrize("note", [None, "put back by hand"])
def test_request_is_carried_out_once_despite_a_crash(machine: Machine, note: str | None, killed: str) -> None:
    record = machine.failing()
    machine.ask(record, note)
    if killed != "before it is read":
        machine.recoveries.read_requests()
        machine.recoveries.carry_out()
    if killed == "before the removal":
        machine.scheduler.advance()
        assert machine.journal.commit()
    machine.restart()
    assert len(machine.files()) == 1
    assert len(machine.answers()) == (killed == "before the removal")
    machine.work()
    (answer,) = machine.answers()
    assert (answer.kind, answer.fields["by"]) == ("recovery-again" if note is None else "recovery-dealt-with", "alice")
    assert machine.running() == (["undrain"] if note is None else [])
    assert machine.files() == []


def test_crash_while_waiting_keeps_the_request(machine: Machine) -> None:
    record = machine.retrying()
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
        assert is_pending(str(machine.state), request_id)
    machine.work(10.0)
    assert not is_pending(str(machine.state), request_id)
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
    record = machine.retrying()
    machine.ask(record, "put back by hand")
    machine.recoveries.read_requests()
    shutil.rmtree(machine.state / "recoveries")
    machine.end("undrain")
    assert machine.answers() == []


# What is reported meanwhile


def test_failing_recovery_is_counted_until_it_ends(machine: Machine) -> None:
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


def test_failing_recovery_keeps_the_vm_unready(machine: Machine) -> None:
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
