# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn recover``, beside a runner that is only a heartbeat, a journal, and a thread that takes requests."""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli import recover as command
from forewarn.runner.hooks import recovery_requests
from forewarn.runner.journal.writer import EventRow
from forewarn.runner.state.inbox import Inbox
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, Run, planned

FAILED = planned("recover", UNDRAIN, "failed", attempts=5, failures=5, reason="it ended with exit code 1")
HOOK = "run /usr/local/bin/undrain"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let alice ask, with no runner that takes the request."""
    monkeypatch.setattr(recovery_requests, "requesting_user", lambda _environ: "alice")
    monkeypatch.setattr(command, "poll", lambda *_: None)


def failing(recorded: RecordedState, event_id: str = "A1B2", **fields: Any) -> EventRow:
    fields = {
        "state": "recovering",
        "outcome": "finished",
        "plan": [planned("prepare", DRAIN, "succeeded"), FAILED],
        **fields,
    }
    return recorded.record(event_id, **fields)


def requests(recorded: RecordedState) -> list[dict[str, Any]]:
    directory = Path(recorded.directory, "recoveries")
    return [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]


@contextmanager
def runner_that(
    recorded: RecordedState, monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], None]
) -> Iterator[None]:
    """Stand in for a runner: answer each request while the command waits, and remove its file."""

    def poll(*_: object) -> None:
        inbox = Inbox(recorded.directory, recovery_requests.DIRECTORY, "request")
        for name in inbox.names() or ():
            answer(Path(name).stem)
            inbox.remove(name)

    with monkeypatch.context() as patch:
        patch.setattr(command, "poll", poll)
        yield


# What fails


def test_without_an_event_it_lists_what_fails(recorded: RecordedState, recover: Run) -> None:
    record = failing(recorded)
    recorded.note("hook-ended", record, phase="recover", hook=HOOK, result="failed", retry_seconds=3600.0)
    recorded.clocks.now += 600
    recorded.beat()
    shown = recover()
    assert (shown.code, shown.err) == (0, "")
    assert shown.lines == [
        "Reboot A1B2",
        "  hook          run /usr/local/bin/undrain",
        "  failed        5 times: it ended with exit code 1",
        "  next attempt  in 50 min",
        f"  run it now    forewarn recover A1B2 --again --state {recorded.directory}",
        f"  or end it     forewarn recover A1B2 --dealt-with 'what was done' --state {recorded.directory}",
    ]
    (found,) = json.loads(recover("--json").out)["recoveries"]
    assert (found["event_id"], found["hook"], found["failures"], found["attempts"]) == ("A1B2", HOOK, 5, 5)
    assert found["next_attempt_at"] == "2026-11-21T15:05:11.000Z"


def test_nothing_fails(recorded: RecordedState, recover: Run) -> None:
    recorded.record(state="recovering", plan=[planned("recover", UNDRAIN)])
    recorded.beat()
    assert recover().lines == ["No recovery fails."]


@pytest.mark.parametrize(
    ("run", "note", "text"),
    [
        ({"hook": {**UNDRAIN, "retry": {"attempts": 5}}}, None, "none: it is not retried automatically"),
        ({"status": "running"}, None, "it runs now"),
        ({}, None, "within an hour"),
        ({}, "runner-started", "now"),
        ({}, "recovery-again", "now"),
    ],
)
def test_when_it_is_tried_next(
    recorded: RecordedState, recover: Run, run: dict[str, Any], note: str | None, text: str
) -> None:
    record = failing(recorded, plan=[{**FAILED, **run}])
    if note is not None:
        recorded.note("hook-ended", record, phase="recover", hook=HOOK, result="failed", retry_seconds=3600.0)
        recorded.note(note, record if note == "recovery-again" else None)
    recorded.beat()
    assert f"  next attempt  {text}" in recover().lines


def test_next_attempt_without_a_runner_awaits_one(recorded: RecordedState, recover: Run) -> None:
    failing(recorded)
    recorded.beat(pid=2**22 + 1)  # above what Linux gives
    assert "  next attempt  as soon as a runner is at work" in recover().lines


@pytest.mark.parametrize("event_id", ["X; reboot", "$(reboot)", "it's", "-rf", "--json"])
def test_printed_command_works_for_any_event_id(
    recorded: RecordedState, recover: Run, event_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(recorded, event_id)
    recorded.beat()
    (found,) = json.loads(recover("--json").out)["recoveries"]
    for copied, action in zip(found["commands"], ("again", "dealt-with")):
        name, *arguments = shlex.split(copied)
        assert name == "forewarn"
        assert cli.main(arguments) == 0
        (request,) = requests(recorded)
        assert (request["event_id"], request["action"]) == (event_id, action)
        (taken,) = Path(recorded.directory, "recoveries").glob("*.json")
        taken.unlink()
    watch = capsys.readouterr().out.splitlines()[-1].removeprefix("Watch it:  forewarn ")
    assert cli.main(shlex.split(watch)) == 0
    assert f"Reboot  {event_id}" in capsys.readouterr().out


# Asking


def test_request_names_the_given_event(recorded: RecordedState, recover: Run) -> None:
    record = failing(recorded)
    failing(recorded, "B2C3")
    recorded.beat()
    shown = recover("a1", "--again")
    assert (shown.code, shown.err) == (0, "")
    (request,) = requests(recorded)
    assert {key: request[key] for key in ("record_id", "event_id", "action", "note", "by")} == {
        "record_id": record.id,
        "event_id": "A1B2",
        "action": "again",
        "note": None,
        "by": "alice",
    }
    assert shown.lines[0] == ("handed over: Reboot A1B2: the runner has not taken it yet. It will in its next cycle.")


def test_what_the_runner_did_is_reported(
    recorded: RecordedState, recover: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = failing(recorded)
    recorded.beat()

    def again(request_id: str) -> None:
        recorded.note("recovery-again", record, request="recover-of-before", hooks=["run /bin/other"])
        recorded.note("recovery-again", record, request=request_id, hooks=[HOOK])

    with runner_that(recorded, monkeypatch, again):
        shown = recover("A1B2", "--again")
    assert shown.code == 0
    assert shown.lines == [
        f"again: Reboot A1B2: {HOOK} runs again now",
        f"Watch it:  forewarn history --event A1B2 --state {recorded.directory}",
    ]


def test_what_was_dealt_with_is_reported(
    recorded: RecordedState, recover: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = failing(recorded)
    recorded.beat()
    with runner_that(
        recorded, monkeypatch, lambda name: recorded.note("recovery-dealt-with", record, request=name, hooks=[HOOK])
    ):
        shown = recover("A1B2", "--dealt-with", " put back by hand ", "--json")
    assert shown.code == 0
    document = json.loads(shown.out)
    assert document["forewarn"] == {"schema": "recover", "version": 1}
    assert (document["event_id"], document["action"], document["result"], document["hooks"]) == (
        "A1B2",
        "dealt-with",
        "dealt-with",
        [HOOK],
    )


def test_a_refusal_is_reported(recorded: RecordedState, recover: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(recorded)
    recorded.beat()
    with runner_that(
        recorded, monkeypatch, lambda name: recorded.note("recovery-refused", request=name, reason="it is over")
    ):
        shown = recover("A1B2", "--again")
    assert shown.code == 1
    assert shown.lines == ["refused: Reboot A1B2: it is over"]


def test_a_hook_that_runs_is_waited_for(recorded: RecordedState, recover: Run) -> None:
    failing(recorded, plan=[{**FAILED, "status": "running"}])
    recorded.beat()
    shown = recover("A1B2", "--dealt-with", "put back")
    assert shown.code == 0
    assert "a recover hook runs now. It is done when that hook has ended." in shown.lines[0]


def test_request_without_a_runner_awaits_its_start(recorded: RecordedState, recover: Run) -> None:
    failing(recorded)
    recorded.beat(pid=2**22 + 1)
    shown = recover("A1B2", "--dealt-with", "put back")
    assert shown.code == 0
    assert f"no runner works on {recorded.directory}: the runner has ended" in shown.lines[0]
    assert "It is done when a runner starts." in shown.lines[0]
    assert [request["note"] for request in requests(recorded)] == ["put back"]


def test_it_waits_until_the_runner_has_taken_it(
    recorded: RecordedState, recover: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(command, "Clocks", lambda: recorded.clocks)
    record = failing(recorded)
    recorded.beat()
    inbox = Inbox(recorded.directory, recovery_requests.DIRECTORY, "request")
    recorded.journal.close()  # of this thread

    def take() -> None:
        while not (names := inbox.names()):
            pass
        with_note = RecordedState(Path(recorded.directory))
        with_note.note("recovery-again", record, request=names[0][: -len(".json")], hooks=[HOOK])
        with_note.journal.close()
        inbox.remove(names[0])

    runner = threading.Thread(target=take)
    runner.start()
    shown = recover("A1B2", "--again")
    runner.join()
    assert shown.lines[0] == f"again: Reboot A1B2: {HOOK} runs again now"


# Refusals


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--again"], "EVENT_ID is needed"),
        (["--dealt-with", "put back"], "EVENT_ID is needed"),
        (["A1B2"], "--again or --dealt-with is needed"),
        (["X", "--again"], "no event's id begins with 'X'"),
        ([" ", "--again"], "no event's id begins with ''"),
        (["A", "--again"], "several events with failing recoveries have ids that begin with 'A': A1B2, A1B3"),
        (["B", "--again"], "event B1 is being recovered, and no hook has failed"),
        (["C", "--again"], "event C1 is not being recovered: it is done"),
        (["D", "--dealt-with", "x"], "event D1 is not being recovered: it is started"),
        (["A1B2", "--dealt-with", " "], "the note is not one line"),
        (["A1B2", "--dealt-with", "two\nlines"], "the note is not one line"),
        (["A1B2", "--dealt-with", "x" * 1001], "the note is not one line"),
    ],
)
def test_bad_usage_is_refused(recorded: RecordedState, recover: Run, arguments: list[str], reason: str) -> None:
    failing(recorded)
    failing(recorded, "A1B3")
    recorded.record("B1", state="recovering", plan=[planned("recover", UNDRAIN)])
    recorded.record("C1", state="done", plan=[planned("recover", UNDRAIN, "succeeded")])
    recorded.record("D1", state="started", plan=[planned("recover", UNDRAIN)])
    recorded.beat()
    shown = recover(*arguments)
    assert (shown.code, shown.out) == (2, "")
    assert reason in shown.err
    assert requests(recorded) == []


def test_one_of_both_is_enough(recorded: RecordedState, recover: Run) -> None:
    failing(recorded)
    with pytest.raises(SystemExit) as caught:
        recover("A1B2", "--again", "--dealt-with", "x")
    assert caught.value.code == 2


def test_a_directory_that_cannot_be_written_is_reported(
    recorded: RecordedState, recover: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(recorded)
    recorded.beat()

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", fail)
    shown = recover("A1B2", "--again")
    assert shown.code == 2
    assert "Only root and the runner's user may write" in shown.err


def test_where_no_runner_has_worked_there_is_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["recover", "--state", str(tmp_path / "missing")]) == 2
    assert "no such directory" in capsys.readouterr().err
