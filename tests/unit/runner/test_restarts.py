# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What load balancers and drills see after a change, or after a restart in bad circumstances."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from forewarn.events import Vm
from forewarn.runner.journal import schema
from tools.fixtures.journals import alter
from tools.worlds.runner_world import VMS
from tools.worlds.stories import DRAINED, HELD, ONCE, Story, hook, listed, match

CANNOT = Mock(side_effect=sqlite3.OperationalError("disk I/O error"))


def test_approved_event_keeps_the_vm_unready(tmp_path: Path) -> None:
    """docs/operations.md: from the moment this VM approved it, until the event has left the list."""
    once = match("plain", condition=None)
    story, event = listed(
        tmp_path, [("web", [once])], [("web", [match("other", "hold")])], seconds=3, duration=5, start_on="not_before"
    )
    assert story.count("post", result="taken") == 1
    assert not story.ready()
    story.reload()
    story.world.change(event, duration=9)
    story.go(3)
    assert story.count("post", result="taken") == 1, "it is held now; the service has the approval all the same"
    assert not story.ready()


def test_unreadable_journal_keeps_a_drained_vm_unready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/operations.md, probes: a restart of the runner forgets none of it."""
    story, _event = listed(tmp_path, DRAINED, seconds=3)
    assert story.count("start", phase="prepare") == 1
    assert not story.ready()
    story.world.kill()
    story.instance.runner.recorder.journal._disconnect()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "connect", CANNOT)
        patch.setattr(schema, "read", CANNOT)
        story.start()
        story.go(3)
        assert story.instance.runner.recorder.journal.trouble
        assert not story.ready(), "it was drained by the runner before, and is"


def test_drill_is_cancelled_without_a_vm_name(tmp_path: Path) -> None:
    """docs/drills.md: keep --cancel at hand; what had begun to prepare is recovered."""
    story = Story(tmp_path, DRAINED)
    story.go(3)
    drills = story.drill("drill-0123456789ab")
    story.go(3)
    assert story.count("start", phase="prepare") == 1
    story.restart()
    story.world.stuck = frozenset({"instance"})
    story.instance.identity.vm = Vm()
    story.go(3)
    assert story.instance.identity.vm.name is None
    drills.cancel("drill-0123456789ab")
    story.go(5)
    assert story.count("start", phase="recover") == 1


@pytest.mark.parametrize(
    "change", [{"resources": VMS[1:]}, {"fields": {"Resources": "web_0"}}], ids=["gone", "unreadable"]
)
def test_drained_vm_with_changed_resources_is_unready(tmp_path: Path, change: dict[str, Any]) -> None:
    story, event = listed(tmp_path, HELD, seconds=3)
    assert not story.ready()
    story.world.change(event, **change)
    story.go(3)
    assert story.count("start", name="undrain") == 0
    assert not story.ready(), "it is drained, and not recovered"


def test_unreadable_near_not_before_keeps_unready(tmp_path: Path) -> None:
    story, event = listed(tmp_path, [("web", [match("both", "hold")])], seconds=3, notice=50.0)
    assert not story.ready()
    story.world.change(event, fields={"NotBefore": "soon"})
    story.go(3)
    assert not story.ready()


def test_damaged_record_keeps_the_vm_unready(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, HELD, seconds=3)
    story.stop()
    alter(tmp_path / "journal.db", "UPDATE lives SET data = replace(data, 'undrain', 'undrxin')")
    story.start()
    story.go(3)
    assert len(story.instance.runner.recorder.journal.lost_records) == 1
    assert not story.ready(), "'Is this VM still drained?'"


@pytest.mark.parametrize("restarted", [False, True])
def test_started_event_is_recovered_once_named(tmp_path: Path, restarted: bool) -> None:
    condition = 'event.EventStatus == "Started" && affects_me'
    under_way = match("under-way", "hold", condition=condition, recover=["start-again"], recover_when="started")
    story = Story(tmp_path, [("web", [under_way])])
    story.go(3)
    story.world.kill()
    story.world.reboot(40.0)
    story.world.nameless = True
    event = story.schedule(notice=0.0)
    story.start()
    story.go(5)
    story.finish_event(event, 3)
    story.world.nameless = False
    if restarted:
        story.restart()
    story.go(70)
    assert story.instance.runner.scheduler.vm_name
    assert story.count("start", name="start-again") == 1


def test_single_attempt_recovery_runs_once_despite_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, event = listed(
        tmp_path, [("web", [match("a", "hold", prepare=["drain"], recover=[hook("undrain", **ONCE)])])], seconds=3
    )
    with monkeypatch.context() as patch:
        patch.setattr(schema, "connect", CANNOT)
        story.instance.runner.recorder.journal._disconnect()
        story.cancel_event(event, 4)
        (line,) = [fields for _level, line, fields in story.instance.log.lines if line == "hook-waits"]
        assert line["reason"] == "the journal cannot be written, and the hook may run once only"
        story.world.kill()
    story.start()
    story.go(5)
    assert story.count("start", name="undrain") == 1
