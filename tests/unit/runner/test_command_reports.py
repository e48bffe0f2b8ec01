# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What commands report of a journal that cannot be read, of events that came back, and of dry runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli import recover as recover_command
from forewarn.cli.runner_state import open_state
from forewarn.cli.status.report import examine
from forewarn.runner.state import dry_runs
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, planned
from tools.worlds.stories import DRAINED, Story, hook, listed, match


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    return (code, *capsys.readouterr())


def test_recovery_of_a_returned_event_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/runner-states.md: "the same id later is another record"; both fail, and both are the person's."""
    story, first = listed(
        tmp_path,
        DRAINED,
        [("web", [match("both", prepare=["drain"], recover=["back"])])],
        seconds=3,
        fail={"undrain", "back"},
    )
    story.cancel_event(first, 3)
    (one,) = story.instance.runner.scheduler.records
    assert one.state == "recovering"
    # The service lists the same id again, and what recovers is another hook now.
    story.reload()
    del story.world.model.events[first.lower()]
    story.schedule(event_id=first)
    story.go(3)
    story.cancel_event(first, 90)
    assert [record.event.key for record in story.instance.runner.scheduler.records] == [first.lower()] * 2
    monkeypatch.setattr(recover_command, "poll", lambda *_: None)
    code, _out, err = say(capsys, "recover", "--state", str(tmp_path), first, "--dealt-with", "by hand")
    assert (code, err) == (0, "")
    story.go(2)
    assert story.instance.runner.scheduler.records == []


@pytest.mark.parametrize("works", [True, False])
def test_unreadable_journal_is_not_nothing_pending(
    tmp_path: Path, works: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    state = RecordedState(tmp_path)
    monkeypatch.setattr("forewarn.cli.status.command.Clocks", lambda: state.clocks)
    state.record(
        state="recovering",
        outcome="finished",
        plan=[planned("prepare", DRAIN, "succeeded"), planned("recover", UNDRAIN, "waiting")],
    )
    state.journal.close()
    state.beat(events=1, pid=os.getpid() if works else 4_000_000)
    for name in ("journal.db-wal", "journal.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "journal.db").write_bytes(b"rubbish" * 1000)
    code, out, _err = say(capsys, "status", "--state", str(tmp_path))
    print(out)
    assert code == 1
    assert "cannot be read" in out
    assert "Nothing is pending" not in out


def test_missed_preparation_makes_status_exit_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    story, _event = listed(tmp_path, DRAINED, seconds=57, fail={"drain"}, notice=60.0)
    (record,) = story.instance.runner.scheduler.records
    assert record.state == "failed"
    story.instance.runner.health.facts.update(interval_seconds=1.0, pid=os.getpid())
    story.go(1)
    monkeypatch.setattr("forewarn.cli.status.command.Clocks", story.world.clocks)
    code, out, _err = say(capsys, "status", "--state", str(tmp_path))
    print(out)
    assert "failed" in out
    assert code == 1, "seeing.md: 1 if the preparation of a listed event failed"


def test_what_was_never_due_makes_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same policies; the event is called off before ``prepare_within``: nothing was prepared by either."""
    late = match("both", prepare=["drain"], recover=["undrain"], prepare_within_seconds=60.0)
    (tmp_path / "dry-run").mkdir(mode=0o700)
    dry_runs.claim(str(tmp_path / "dry-run"), dry_run=True)
    for directory, dry_run in ((tmp_path, False), (tmp_path / "dry-run", True)):
        story = Story(directory, [("web", [late])], dry_run=dry_run)
        event = story.schedule(event_id="C7061BAC-AFDC-4513-B24B-AA5F13A16123")
        story.go(10)
        story.cancel_event(event, 3)
        assert story.count("start") == 0
        story.stop()
    code, out, _err = say(capsys, "history", "--compare", "--state", str(tmp_path), "--since", "2020-01-01")
    print(out)
    assert "prepared it by" not in out, "no hook has run"
    assert code == 0


def dry(directory: Path, **values: Any) -> Story:
    dry_runs.claim(str(directory), dry_run=True)
    hooks = {"prepare": ["drain"], "recover": ["undrain"], **values}
    return Story(directory, [("web", [match("both", **hooks)])], dry_run=True)


def said(story: Story) -> list[tuple[str, list[str]]]:
    return [(line["phase"], line["hooks"]) for line in story.instance.log.named("would-run")]


def test_restarted_dry_run_reports_the_recovery(tmp_path: Path) -> None:
    story = dry(tmp_path)
    event = story.schedule(notice=60.0)
    story.go(3)
    assert said(story) == [("prepare", ["run /bin/true drain"])]
    story.go(60)
    assert story.world.model.find(event).status == "Started"
    story.restart()
    story.go(2)
    story.finish_event(event, 3)
    assert story.instance.runner.controller.reconciler.tracker.records == []
    assert said(story) == [("recover", ["run /bin/true undrain"])]


def test_restarted_dry_run_does_not_repeat_reports(tmp_path: Path) -> None:
    story = dry(tmp_path)
    story.schedule()
    story.go(3)
    story.restart()
    story.go(3)
    assert said(story) == [], "a live runner does not run again what has succeeded"


def test_dry_run_reports_recovery_of_an_unseen_start(tmp_path: Path) -> None:
    story = dry(tmp_path, prepare=[], recover_when="started")
    event = story.schedule(notice=30.0)
    story.go(3)
    story.finish_unseen(event, silent=60, seconds=15)
    assert story.outcomes() == ["unseen"]
    assert said(story) == [("recover", ["run /bin/true undrain"])]


def test_unsaved_event_is_shown_after_the_runner_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    state = RecordedState(tmp_path)
    monkeypatch.setattr("forewarn.cli.status.command.Clocks", lambda: state.clocks)
    fields = {"journal_trouble": "the disk is full", "unkept": 1, "unkept_events": "Reboot A1B2 (held)", "events": 1}
    state.beat(**fields, pid=4_000_000)
    state.journal.close()
    code = cli.main(["status", "--state", str(tmp_path)])
    out = capsys.readouterr().out
    print(out)
    assert code == 1
    assert "Nothing is pending." not in out
    assert "A1B2" in out


def status(story: Story) -> tuple[list[str], str]:
    story.instance.runner.recorder.journal.commit()
    found = examine(open_state(str(story.directory)), story.instance.clocks)
    problems = [text for text in found["problems"] if not text.startswith(("the runner is", "the service"))]
    return problems, found["events"][0]["waits_for"]


def test_approved_event_is_not_shown_as_unapproved(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, [("web", [match("a")])], DRAINED, seconds=17, notice=20.0)
    assert story.count("post", result="taken") == 1
    story.reload()
    story.go(2)
    assert "it is not approved" not in status(story)[1]


def test_hook_ended_for_changed_content_has_not_failed(tmp_path: Path) -> None:
    story, event = listed(tmp_path, DRAINED, seconds=3, slow={"drain"})
    story.world.change(event, duration=9)
    story.go(3)
    story.slow = set()
    story.go(5)
    assert story.count("post", result="taken") == 1
    assert status(story)[0] == []


def test_unrequested_failed_hook_is_no_problem(tmp_path: Path) -> None:
    once = match("a", prepare=[hook("drain", retry={"attempts": 1})], recover=["undrain"])
    story, _event = listed(tmp_path, [("web", [once])], [("web", [match("a")])], seconds=3, fail={"drain"})
    story.reload()
    story.go(3)
    assert story.count("post", result="taken") == 1
    assert status(story)[0] == []


def test_drain_ended_by_a_cancellation_has_not_failed(tmp_path: Path) -> None:
    story, event = listed(tmp_path, DRAINED, seconds=3, slow={"drain", "undrain"})
    story.cancel_event(event, 4)
    assert status(story)[0] == []


def test_restarted_dry_run_reports_recovery_without_preparation(tmp_path: Path) -> None:
    story = dry(tmp_path, prepare=[], recover_when="started")
    event = story.schedule(start_on="all_approvals")
    story.go(3)
    story.start_event(event, 3)
    story.stop()
    story.world.model.finish(event)
    story.start()
    story.go(3)
    assert said(story) == [("recover", ["run /bin/true undrain"])]


def test_dry_run_reports_preparation_of_changed_content(tmp_path: Path) -> None:
    story = dry(tmp_path)
    event = story.schedule()
    story.go(3)
    story.world.change(event, duration=9)
    story.go(3)
    story.cancel_event(event, 3)
    assert said(story) == [("prepare", ["run /bin/true drain"])] * 2 + [("recover", ["run /bin/true undrain"])]


def test_dry_run_reports_recovery_with_an_unreadable_status(tmp_path: Path) -> None:
    story = dry(tmp_path, prepare=[], recover_when="started")
    event = story.schedule(start_on="all_approvals")
    story.go(3)
    story.world.change(event, fields={"EventStatus": 7})
    story.go(3)
    story.cancel_event(event, 5)
    assert story.outcomes() == ["unseen"]
    assert said(story) == [("recover", ["run /bin/true undrain"])]


def test_dry_run_reports_recovery_once_named(tmp_path: Path) -> None:
    story = dry(tmp_path, prepare=[], recover_when="started")
    story.world.nameless = True
    event = story.schedule(notice=5.0)
    story.go(10)
    story.finish_event(event, 3)
    assert said(story) == []
    story.world.nameless = False
    story.go(90)
    assert said(story) == [("recover", ["run /bin/true undrain"])]


def test_dry_run_prepares_nothing_for_an_ended_event(tmp_path: Path) -> None:
    story = dry(tmp_path, recover_when="started")
    story.world.nameless = True
    event = story.schedule(notice=10.0)
    story.go(5)
    story.finish_unseen(event, silent=10, seconds=5)
    story.world.nameless = False
    story.go(90)
    assert said(story) == [("recover", ["run /bin/true undrain"])]
