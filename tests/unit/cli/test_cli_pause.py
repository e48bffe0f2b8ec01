# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn pause`` and ``forewarn resume``, and what approves beside the runner; the runner is only a heartbeat."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.adhoc import task
from forewarn.adhoc.decisions import assess
from forewarn.cli import approval_pause as command
from forewarn.cli import main as cli
from forewarn.errors import InputError
from forewarn.events import Event, Vm
from forewarn.policy import pause
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.pause import Pause
from forewarn.runner.clocks import Clocks
from forewarn.system import paths
from tools.fixtures.recorded_state import RecordedState
from tools.servers.scripted_imds import ScriptedServer, document, instance


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state directory on which no runner works."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(paths, "SERVICE_STATE", str(tmp_path))
    return tmp_path


def paused(directory: Path, **changed: Any) -> Pause:
    found = Pause("pause-1", "alice", "release 4.2", 1.0e9, 4.0e9)._replace(until=1.0e9 + 60, **changed)
    path = directory / pause.DIRECTORY
    path.mkdir(mode=0o700, exist_ok=True)
    (path / pause.FILE_NAME).write_bytes(pause.encode_pause(found))
    return found


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert cli.main([*arguments, "--json"]) == code
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def test_it_says_who_paused_until_when_and_why(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "pause", "--for", "1h30m", "--reason", " release 4.2 ")
    assert (found["result"], found["replaced"], found["state"]) == ("no-runner", False, str(at))
    assert found["pause"]["reason"] == "release 4.2"
    assert found["pause"]["by"]
    kept = pause.read_pause(str(at))
    assert kept is not None
    assert kept.until - kept.began == pytest.approx(5400.0, abs=0.01)
    assert (at / "pause" / "pause.json").stat().st_mode & 0o777 == 0o600
    assert cli.main(["pause", "--for", "2h", "--reason", "longer"]) == 0
    shown = capsys.readouterr().out
    assert "No runner works now: it holds when one starts." in shown
    assert "It replaces an earlier one: approvals are paused until" in shown
    assert "release 4.2" in shown
    assert cli.main(["resume"]) == 0
    assert "It was: approvals are paused until" in capsys.readouterr().out
    assert cli.main(["resume"]) == 0
    assert capsys.readouterr().out == "Approvals are not paused: nothing to end.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--for", "0s", "--reason", "x"), "not longer than 0 s"),
        (("--for", "-1h", "--reason", "x"), "argument --for"),
        (("--for", "soon", "--reason", "x"), "is not a duration"),
        (("--for", "721h", "--reason", "x"), "at most 30 d"),
        (("--for", "1h", "--reason", "two\nlines"), "not one line"),
        (("--for", "1h"), "--reason"),
        (("--reason", "x"), "--for"),
    ],
)
def test_a_mistake_pauses_nothing(
    at: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = cli.main(["pause", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
    assert pause.read_pause(str(at)) is None


def test_lone_dry_run_does_not_get_the_pause(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at / "dry-run").mkdir(mode=0o700)
    RecordedState(at / "dry-run").beat(pid=os.getpid())
    assert said(capsys, "pause", "--for", "1h", "--reason", "x")["state"] == str(at)
    assert said(capsys, "pause", "--for", "1h", "--reason", "x", "--dry-run")["state"] == str(at / "dry-run")


def test_unreadable_pause_is_reported_and_resume_mends_it(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RecordedState(at).beat()
    paused(at)
    (at / "pause" / "pause.json").write_text("{")
    report = said(capsys, "status", code=1)
    assert report["pause"]["text"].startswith("approvals count as paused, since nobody can tell whether they are: ")
    assert report["pause"]["text"] in report["problems"]
    assert said(capsys, "resume")["result"] == "no-runner"
    assert "pause" not in " ".join(said(capsys, "status", code=1)["problems"])


def test_manual_approval_during_a_pause_is_refused(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clocks, "wall", lambda _self: 1.0e9 + 30)
    paused(at)
    with pytest.raises(InputError, match=r"release 4\.2\. Nothing was approved\.") as raised:
        command.refuse_if_paused()
    assert "--despite-pause" in raised.value.hint
    monkeypatch.setattr(Clocks, "wall", lambda _self: 1.0e9 + 61)
    command.refuse_if_paused()
    (at / "pause" / "pause.json").write_text("")
    with pytest.raises(InputError, match="nobody can tell"):
        command.refuse_if_paused()


def test_the_ad_hoc_task_decides_and_refuses_likewise() -> None:
    event = Event("a1", "Reboot", resources=("web_0",), event_status="Scheduled")
    decision = Decision(event, "approve", "web", "drain", "because")
    facts = Facts(now=datetime.now(timezone.utc), vm=Vm(name="web_0"))
    assert assess(decision, facts).send
    held = assess(decision, facts, "approvals are paused until tomorrow")
    assert (held.send, held.code, held.reason) == (False, "paused", "approvals are paused until tomorrow")


@pytest.mark.parametrize("content", [b"", None], ids=["damaged", "paused"])
def test_adhoc_task_sends_nothing_during_a_pause(
    at: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(at)
    if content is not None:
        (at / "pause" / "pause.json").write_bytes(content)
    monkeypatch.setattr(time, "time", lambda: 1.0e9 + 30)
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    item = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}
    with ScriptedServer(document(item), instance("web_0"), document(item), instance("web_0")) as server:
        params["endpoint"] = server.url
        seen = task.perform(params, False, print)
        assert "paused" in seen["pause"]
        refused = task.perform({**params, "approve": ["a1"]}, False, print)
    assert refused["failed"]
    assert refused["msg"].startswith(seen["pause"])
    assert "Nothing was approved." in refused["msg"]
    assert [request.method for request in server.requests] == ["GET"] * 4
