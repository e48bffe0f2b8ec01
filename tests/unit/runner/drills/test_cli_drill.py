# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn drill``, beside a runner that is only a heartbeat and a store."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import drill as command
from forewarn.errors import InputError
from forewarn.events import Document, Event
from forewarn.runner.clocks import Clocks, Stamp
from forewarn.runner.drills.drill import Drills
from forewarn.runner.drills.store import DrillStore
from forewarn.runner.event_record import EventRecord
from forewarn.runner.journal.writer import Journal
from forewarn.runner.telemetry.heartbeat import Heartbeat

CLOCKS = Clocks()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what could decide from the environment."""
    for name in ("STATE_DIRECTORY", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


class FakeRunner:
    """A runner's work in its directory, as far as drills go."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.chmod(0o700)
        self.drills = Drills(str(directory), CLOCKS)
        self.heart = Heartbeat(str(directory), CLOCKS)
        self.beat()
        DrillStore(str(directory)).inbox.create()
        assert self.drills.poll("web_0") is None

    def beat(self, **fields: Any) -> None:
        self.heart.beat({"pid": os.getpid(), "vm": "web_0", "interval_seconds": 1.0, **fields}, durable=False)

    def poll(self) -> Document | None:
        return self.drills.poll("web_0")

    def event(self) -> Event:
        document = self.poll()
        assert document is not None
        assert len(document.events) == 1
        return document.events[0]

    def lists(self, event: Event, state: str = "seen", drill: bool = False) -> None:
        """Write down an open record, as if the service listed the event."""
        journal = Journal(str(self.directory), CLOCKS)
        journal.open()
        record = EventRecord(1, event, CLOCKS.stamp(), drill)
        record.state = state
        journal.save(record.as_row())
        assert journal.commit()
        journal.close()


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[FakeRunner]:
    found = FakeRunner(tmp_path)
    yield found
    found.heart.close()


def drill(state: Path | None, *arguments: str) -> int:
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    named = () if state is None else ("--state", str(state))
    return command.run(parser.parse_args([*arguments, *named]))


def test_drill_is_submitted_with_a_hint_to_watch(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(runner.directory, "--type", "Reboot") == 0
    event = runner.event()
    assert (event.event_type, event.event_source, event.resources) == ("Reboot", "Platform", ("web_0",))
    assert event.duration_in_seconds == 30
    assert event.description == "Drill: a Reboot is rehearsed."
    output = capsys.readouterr()
    assert output.err == ""
    state = runner.directory
    assert output.out.splitlines() == [
        f"handed over: {event.event_id} (Reboot of this VM)",
        "It starts in 15 min at the latest, lasts 30 s, and is decided, prepared and recovered like a real one. "
        "Nothing is sent.",
        f"Watch it:  forewarn status --state {state}",
        f"           forewarn history --event {event.event_id} --state {state}",
        f"End it:    forewarn drill --cancel {event.event_id} --state {state}",
    ]


@pytest.mark.parametrize(
    ("event_type", "notice"),
    [("Freeze", 900), ("Reboot", 900), ("Redeploy", 600), ("Preempt", 30), ("Terminate", 300)],
)
def test_the_notice_is_by_default_the_documented_one(runner: FakeRunner, event_type: str, notice: int) -> None:
    before = CLOCKS.wall()
    drill(runner.directory, "--type", event_type)
    not_before = runner.event().not_before
    assert not_before is not None
    assert notice <= not_before.timestamp() - before < notice + 5


def test_everything_can_be_said(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--type", "Freeze", "--notice", "1m30s", "--duration", "4500ms", "--source", "User"]
    assert drill(runner.directory, *arguments, "--resources", "db_0", "WEB_0", "--description", "a test") == 0
    event = runner.event()
    assert event.not_before is not None
    assert 85 < event.not_before.timestamp() - CLOCKS.wall() < 95
    assert event.duration_in_seconds == 5
    assert (event.event_source, event.resources, event.description) == ("User", ("db_0", "WEB_0"), "a test")
    output = capsys.readouterr()
    assert "(Freeze of db_0, WEB_0)" in output.out
    assert "starts in 1 min 30 s at the latest" in output.out
    assert output.err == ""


def test_without_notice_it_starts_now(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    drill(runner.directory, "--type", "Reboot", "--notice", "0s")
    event = runner.event()
    assert (event.event_status, event.not_before) == ("Started", None)
    assert "It starts now, lasts 30 s" in capsys.readouterr().out


def test_a_program_reads_json(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(runner.directory, "--type", "Preempt", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    event_id = runner.event().event_id
    state = str(runner.directory)
    assert output == {
        "forewarn": {"schema": "drill", "version": 1},
        "id": event_id,
        "state": state,
        "request": {
            "event_type": "Preempt",
            "notice_seconds": 30.0,
            "duration_seconds": 30.0,
            "source": "Platform",
            "resources": None,
            "description": None,
        },
        "watch": [f"forewarn status --state {state}", f"forewarn history --event {event_id} --state {state}"],
    }


def test_the_state_directory_is_that_of_the_environment(
    runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(runner.directory))
    assert drill(None, "--type", "Reboot") == 0
    assert "forewarn status\n" in capsys.readouterr().out
    assert runner.event().event_type == "Reboot"


# Warnings


def test_unknown_type_is_accepted_with_a_warning(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(runner.directory, "--type", "SpotRebalanceRecommendation") == 0
    assert runner.event().event_type == "SpotRebalanceRecommendation"
    assert capsys.readouterr().err == (
        "warning: Forewarn does not know the type SpotRebalanceRecommendation: the event is held, unless the policies "
        "declare it in extra_values\n"
    )


def test_event_of_other_vms_is_rehearsed_with_warning(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    drill(runner.directory, "--type", "Reboot", "--resources", "web_1")
    assert "web_0, this VM, is not among the resources" in capsys.readouterr().err


def test_limits_of_the_rehearsal_are_reported(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.beat(dry_run=True, vm=None)
    drill(runner.directory, "--type", "Reboot")
    output = capsys.readouterr().err
    assert "works with --dry-run: no hook will run" in output
    assert "does not know the name of this VM yet" in output


# Refusals


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "--type is needed"),
        (["--type", "reboot"], "type 'reboot' is not a word such as Reboot"),
        (["--type", "Reboot", "--notice", "200h"], "the notice of 8 d 8 h is not between 0 s and 7 d"),
        (["--type", "Reboot", "--duration", "200h"], "the duration"),
        (["--type", "Reboot", "--resources", ""], "resource '' is not the name of a VM"),
        (["--type", "Reboot", "--cancel", "drill-0"], "--cancel ends a drill"),
        (["--cancel", "drill-0", "--notice", "5m"], "--cancel ends a drill"),
        (["--cancel", "drill-0"], "there is no drill drill-0"),
        (["--cancel", "../../etc/passwd"], "there is no drill"),
        (["--cancel", ""], "there is no drill"),
    ],
)
def test_bad_usage_is_refused(runner: FakeRunner, arguments: list[str], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        drill(runner.directory, *arguments)
    assert reason in str(caught.value)
    assert list((runner.directory / "drills").iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--notice", "soon"], ["--notice", "-5m"], ["--duration", "1d"], ["--source", "Azure"]]
)
def test_an_option_that_is_wrong_is_refused(runner: FakeRunner, arguments: list[str]) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        drill(runner.directory, "--type", "Reboot", *arguments)


def test_missing_state_directory_refuses_the_drill(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        drill(tmp_path / "missing", "--type", "Reboot")
    with pytest.raises(InputError):
        drill(tmp_path, "--type", "Reboot")
    assert list(tmp_path.iterdir()) == []


REAL = Event("C7061BAC", "Freeze", "VirtualMachine", ("Web_0", "web_1"), "Scheduled")


def test_listed_real_event_refuses_the_drill(runner: FakeRunner) -> None:
    runner.lists(REAL)
    with pytest.raises(InputError, match=r"a real Freeze is scheduled for this VM.*: C7061BAC\. Wait until"):
        drill(runner.directory, "--type", "Reboot")
    assert runner.poll() is None


def test_recovering_real_event_refuses_the_drill(runner: FakeRunner) -> None:
    runner.lists(REAL, "recovering")
    with pytest.raises(
        InputError, match=r"the preparation for a real Freeze is being recovered.*: C7061BAC\. Wait until"
    ):
        drill(runner.directory, "--type", "Reboot")
    assert runner.poll() is None


@pytest.mark.parametrize("recorded", [False, True], ids=["nothing", "a real event"])
def test_a_runner_that_has_ended_is_reported(runner: FakeRunner, recorded: bool) -> None:
    if recorded:
        runner.lists(REAL)
    runner.beat(pid=2**22 + 1)  # above what Linux gives
    for arguments in (["--type", "Reboot"], ["--cancel", "drill-0"]):
        with pytest.raises(InputError, match=r"no runner works on .*: the runner has ended"):
            drill(runner.directory, *arguments)
    assert list((runner.directory / "drills").iterdir()) == []


@pytest.mark.parametrize(
    ("event", "state", "is_drill"),
    [
        (REAL, "seen", True),
        (REAL, "recovering", True),
        (Event("C7061BAC", "Freeze", "VirtualMachine", ("web_1",), "Scheduled"), "seen", False),
    ],
)
def test_other_pending_records_do_not_refuse_a_drill(
    runner: FakeRunner, event: Event, state: str, is_drill: bool
) -> None:
    runner.lists(event, state, is_drill)
    assert drill(runner.directory, "--type", "Reboot") == 0
    assert runner.event().event_type == "Reboot"


# Cancelling


def test_a_drill_can_be_cancelled(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    drill(runner.directory, "--type", "Reboot")
    event_id = runner.event().event_id
    capsys.readouterr()
    assert drill(runner.directory, "--cancel", f" {event_id.upper()}") == 0
    assert capsys.readouterr().out == f"cancelled: {event_id}; any preparation that has begun is recovered\n"
    document = runner.poll()
    assert document is not None
    assert document.events == ()
    assert [ended.result for ended in runner.drills.take_results()] == ["cancelled"]


def test_a_program_can_cancel(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.lists(REAL)  # which is no reason not to
    (runner.directory / "drills" / "drill-a.json").touch()
    assert drill(runner.directory, "--cancel", "drill-a", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "forewarn": {"schema": "drill", "version": 1},
        "cancelled": "drill-a",
        "state": str(runner.directory),
    }


def test_stamps_are_of_this_machine(runner: FakeRunner) -> None:
    drill(runner.directory, "--type", "Reboot")
    (file,) = (runner.directory / "drills").iterdir()
    stamp = Stamp.of(json.loads(file.read_text())["handed_over"])
    assert stamp.boot_id == CLOCKS.boot_id
    assert CLOCKS.since(stamp) < 60
