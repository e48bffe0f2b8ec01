# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What commands say of a journal that cannot be read, of events that came back, and of dry runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli import recover as recover_command
from forewarn.cli.state import open_state
from forewarn.cli.status import examine
from forewarn.runner.state import dry_runs
from tools.recorded_state import DRAIN, UNDRAIN, Recorded, planned
from tools.stories import DRAINED, Story, hook, match


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    return (code, *capsys.readouterr())


def test_a_recovery_can_be_ended_though_the_event_came_back_and_fails_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/runner-states.md: "the same id later is another record"; both fail, and both are the person's."""
    told = Story(tmp_path, DRAINED, [("web", [match("both", prepare=["drain"], recover=["back"])])])
    told.fail = {"undrain", "back"}
    first = told.schedule()
    told.go(3)
    told.world.model.cancel(first)
    told.go(3)
    (one,) = told.instance.runner.scheduler.records
    assert one.state == "recovering"
    # The service lists the same id again, and what recovers is another hook now.
    told.reload()
    del told.world.model.events[first.lower()]
    told.schedule(event_id=first)
    told.go(3)
    told.world.model.cancel(first)
    told.go(90)
    assert [record.event.key for record in told.instance.runner.scheduler.records] == [first.lower()] * 2
    monkeypatch.setattr(recover_command, "_wait", lambda *_: None)
    code, _out, err = say(capsys, "recover", "--state", str(tmp_path), first, "--dealt-with", "by hand")
    assert (code, err) == (0, "")
    told.go(2)
    assert told.instance.runner.scheduler.records == []


@pytest.mark.parametrize("works", [True, False])
def test_nothing_is_pending_is_not_said_of_a_journal_that_cannot_be_read(
    tmp_path: Path, works: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    state = Recorded(tmp_path)
    monkeypatch.setattr("forewarn.cli.status.Clocks", lambda: state.clocks)
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


def test_status_ends_with_1_if_no_time_was_left_for_a_preparation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Story(tmp_path, DRAINED)
    told.fail = {"drain"}
    told.schedule(notice=60.0)
    told.go(57)
    (record,) = told.instance.runner.scheduler.records
    assert record.state == "failed"
    told.instance.runner.health.facts.update(interval_seconds=1.0, pid=os.getpid())
    told.go(1)
    monkeypatch.setattr("forewarn.cli.status.Clocks", told.world.clocks)
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
        told = Story(directory, [("web", [late])], dry_run=dry_run)
        event = told.schedule(event_id="C7061BAC-AFDC-4513-B24B-AA5F13A16123")
        told.go(10)
        told.world.model.cancel(event)
        told.go(3)
        assert told.count("start") == 0
        told.stop()
    code, out, _err = say(capsys, "history", "--compare", "--state", str(tmp_path), "--since", "2020-01-01")
    print(out)
    assert "prepared it by" not in out, "no hook has run"
    assert code == 0


def dry(directory: Path, **values: Any) -> Story:
    dry_runs.claim(str(directory), dry_run=True)
    hooks = {"prepare": ["drain"], "recover": ["undrain"], **values}
    return Story(directory, [("web", [match("both", **hooks)])], dry_run=True)


def said(told: Story) -> list[tuple[str, list[str]]]:
    return [(line["phase"], line["hooks"]) for line in told.instance.log.named("would-run")]


def test_a_dry_run_that_was_restarted_still_says_what_would_be_recovered(tmp_path: Path) -> None:
    told = dry(tmp_path)
    event = told.schedule(notice=60.0)
    told.go(3)
    assert said(told) == [("prepare", ["run /bin/true drain"])]
    told.go(60)
    assert told.world.model.find(event).status == "Started"
    told.restart()
    told.go(2)
    told.world.model.finish(event)
    told.go(3)
    assert told.instance.runner.controller.reconciler.tracker.records == []
    assert said(told) == [("recover", ["run /bin/true undrain"])]


def test_a_dry_run_that_was_restarted_does_not_say_again_what_it_has_said(tmp_path: Path) -> None:
    told = dry(tmp_path)
    told.schedule()
    told.go(3)
    told.restart()
    told.go(3)
    assert said(told) == [], "a live runner does not run again what has succeeded"


def test_a_dry_run_says_the_recovery_of_what_may_have_started_unseen(tmp_path: Path) -> None:
    told = dry(tmp_path, prepare=[], recover_when="started")
    event = told.schedule(notice=30.0)
    told.go(3)
    told.world.read_fault = 503
    told.go(60)
    told.world.model.finish(event)
    told.world.read_fault = None
    told.go(15)
    assert told.outcomes() == ["unseen"]
    assert said(told) == [("recover", ["run /bin/true undrain"])]


def test_what_was_not_kept_is_told_when_the_runner_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    state = Recorded(tmp_path)
    monkeypatch.setattr("forewarn.cli.status.Clocks", lambda: state.clocks)
    fields = {"journal_trouble": "the disk is full", "unkept": 1, "unkept_events": "Reboot A1B2 (held)", "events": 1}
    state.beat(**fields, pid=4_000_000)
    state.journal.close()
    code = cli.main(["status", "--state", str(tmp_path)])
    out = capsys.readouterr().out
    print(out)
    assert code == 1
    assert "Nothing is pending." not in out
    assert "A1B2" in out


def status(told: Story) -> tuple[list[str], str]:
    told.instance.runner.recorder.journal.commit()
    found = examine(open_state(str(told.directory)), told.instance.clocks)
    problems = [text for text in found["problems"] if not text.startswith(("the runner is", "the service"))]
    return problems, found["events"][0]["waits_for"]


def test_what_this_vm_has_approved_is_not_called_not_approved(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a")])], DRAINED)
    told.schedule(notice=20.0)
    told.go(17)
    assert told.count("post", result="taken") == 1
    told.reload()
    told.go(2)
    assert "it is not approved" not in status(told)[1]


def test_a_hook_that_was_ended_for_another_content_has_not_failed(tmp_path: Path) -> None:
    told = Story(tmp_path, DRAINED)
    told.slow = {"drain"}
    event = told.schedule()
    told.go(3)
    told.world.change(event, duration=9)
    told.go(3)
    told.slow = set()
    told.go(5)
    assert told.count("post", result="taken") == 1
    assert status(told)[0] == []


def test_a_hook_that_is_not_asked_for_any_more_is_no_problem(tmp_path: Path) -> None:
    once = match("a", prepare=[hook("drain", retry={"attempts": 1})], recover=["undrain"])
    told = Story(tmp_path, [("web", [once])], [("web", [match("a")])])
    told.fail = {"drain"}
    told.schedule()
    told.go(3)
    told.reload()
    told.go(3)
    assert told.count("post", result="taken") == 1
    assert status(told)[0] == []


def test_a_drain_that_was_ended_by_a_cancellation_has_not_failed(tmp_path: Path) -> None:
    told = Story(tmp_path, DRAINED)
    told.slow = {"drain", "undrain"}
    event = told.schedule()
    told.go(3)
    told.world.model.cancel(event)
    told.go(4)
    assert status(told)[0] == []


def test_a_restarted_dry_run_says_what_would_be_recovered_without_a_preparation(tmp_path: Path) -> None:
    told = dry(tmp_path, prepare=[], recover_when="started")
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    told.world.model.start(event)
    told.go(3)
    told.stop()
    told.world.model.finish(event)
    told.start()
    told.go(3)
    assert said(told) == [("recover", ["run /bin/true undrain"])]


def test_a_dry_run_says_that_another_content_would_be_prepared_anew(tmp_path: Path) -> None:
    told = dry(tmp_path)
    event = told.schedule()
    told.go(3)
    told.world.change(event, duration=9)
    told.go(3)
    told.world.model.cancel(event)
    told.go(3)
    assert said(told) == [("prepare", ["run /bin/true drain"])] * 2 + [("recover", ["run /bin/true undrain"])]


def test_a_dry_run_says_the_recovery_though_the_status_cannot_be_read(tmp_path: Path) -> None:
    told = dry(tmp_path, prepare=[], recover_when="started")
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    told.world.change(event, fields={"EventStatus": 7})
    told.go(3)
    told.world.model.cancel(event)
    told.go(5)
    assert told.outcomes() == ["unseen"]
    assert said(told) == [("recover", ["run /bin/true undrain"])]


def test_a_dry_run_says_the_recovery_once_the_name_is_known(tmp_path: Path) -> None:
    told = dry(tmp_path, prepare=[], recover_when="started")
    told.world.nameless = True
    event = told.schedule(notice=5.0)
    told.go(10)
    told.world.model.finish(event)
    told.go(3)
    assert said(told) == []
    told.world.nameless = False
    told.go(90)
    assert said(told) == [("recover", ["run /bin/true undrain"])]


def test_a_dry_run_prepares_nothing_for_what_is_over(tmp_path: Path) -> None:
    told = dry(tmp_path, recover_when="started")
    told.world.nameless = True
    event = told.schedule(notice=10.0)
    told.go(5)
    told.world.read_fault = 503
    told.go(10)
    told.world.model.finish(event)
    told.world.read_fault = None
    told.go(5)
    told.world.nameless = False
    told.go(90)
    assert said(told) == [("recover", ["run /bin/true undrain"])]
