# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events that the service does not show properly for a while: no body, an entry that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Vm, parse_document
from forewarn.runner.hooks.commands import Command
from tools.worlds.runner_world import VMS, World
from tools.worlds.stories import AFTER, DRAIN, HELD, ONCE, Story, hook, listed, match

DRILL = "drill-0123456789ab"


def hide(story: Story, event: str, how: str) -> None:
    if how == "silent":
        story.world.read_fault = 503
    elif how == "bodyless":
        story.world.bodyless = True
    elif how == "entry":
        story.world.unreadable = frozenset({event.lower()})
    else:
        story.world.change(event, fields={"Resources": "web_0"})


def freeze(story: Story, event: str) -> None:
    """Let the event start and end while the VM is frozen, after an answer that shows it Scheduled has arrived."""
    story.world.latency = 0.05
    story.instance.runner.poll_and_process()
    answer = parse_document(story.world.body(VMS[0])), None
    story.instance.requester._made = answer
    story.world.clock.advance(0.05)
    story.world.model.start(event)
    story.world.clock.advance(30.0)
    story.world.model.finish(event)
    story.instance.runner.step()
    story.world.latency = 0.0


@pytest.mark.parametrize("status", [7, "InProgress"], ids=["unreadable", "unknown"])
def test_a_status_that_nobody_knows_is_no_cancellation(tmp_path: Path, status: object) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    story.world.change(event, fields={"EventStatus": status})
    story.go(3)
    story.cancel_event(event, 5)
    assert story.outcomes() == ["unseen"]
    assert story.count("start", name="start-again") == 1


def test_unreadable_not_before_may_have_passed(tmp_path: Path) -> None:
    story, event = listed(tmp_path, AFTER, seconds=17, notice=20.0)
    story.world.change(event, fields={"NotBefore": "soon"})
    story.go(2)
    story.world.read_fault = 503  # for five seconds, in which it starts and ends
    story.go(5)
    story.world.model.finish(event)
    story.world.read_fault = None
    story.go(15)
    assert story.outcomes() == ["unseen"]
    assert story.count("start", name="start-again") == 1


def test_recover_hook_gets_the_prepared_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, event = listed(tmp_path, HELD, seconds=3)
    story.world.change(event, fields={"EventType": 7, "Resources": "web_0"})
    story.go(3)
    story.world.model.cancel(event)
    seen: list[str] = []
    start = story.instance.executor.start

    def watched(token: int, command: Command) -> Any:
        seen.append(repr(command))
        return start(token, command)

    monkeypatch.setattr(story.instance.executor, "start", watched)
    story.go(3)
    assert "'FOREWARN_EVENT_TYPE': 'Reboot'" in seen[0]
    assert "'FOREWARN_RESOURCES': 'web_0'" in seen[0]


@pytest.mark.parametrize("how", ["bodyless", "entry", "resources"])
def test_hidden_real_event_prevents_a_drill(tmp_path: Path, how: str) -> None:
    story, event = listed(tmp_path, HELD, seconds=3)
    hide(story, event, how)
    story.go(1)
    story.drill(DRILL)
    story.go(5)
    assert story.count("start", drill=True) == 0


def test_event_with_unknown_resources_prevents_a_drill(tmp_path: Path) -> None:
    story = Story(tmp_path, HELD)
    hide(story, story.schedule(), "resources")
    story.go(3)
    story.drill(DRILL)
    story.go(5)
    assert story.count("start", drill=True) == 0


def test_missing_first_document_prevents_a_drill(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, HELD, seconds=3)
    story.stop()
    story.world.stuck = frozenset({"document"})
    story.start()
    story.instance.identity.vm = Vm(name=VMS[0])  # as --vm-name says
    story.drill(DRILL)
    story.turns(8.0)
    assert story.count("start", drill=True) == 0


def test_drill_recovery_does_not_delay_a_preempt(tmp_path: Path) -> None:
    story = Story(
        tmp_path, [("web", [match("a", "hold", prepare=["drain"], recover=[hook("undrain", 600.0, **ONCE)])])]
    )
    story.go(2)
    story.drill(DRILL)
    story.go(4)
    story.slow = {"undrain"}
    (tmp_path / "drills" / f"{DRILL}.json").unlink()
    story.go(4)
    assert story.count("start", name="undrain", drill=True) == 1
    story.schedule(notice=30.0)
    story.go(28)
    assert story.count("start", name="drain", drill=False) == 1


def test_event_unseen_before_a_restart_is_not_cancelled(tmp_path: Path) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    story.world.unreadable = frozenset({event.lower()})
    story.go(10)
    story.start_event(event, 20)
    story.restart()
    story.world.model.finish(event)
    story.world.unreadable = frozenset()
    story.go(5)
    assert story.outcomes() == ["unseen"], "as it is without the restart"
    assert story.count("start", name="start-again") == 1


def test_event_unseen_during_a_freeze_is_not_cancelled(tmp_path: Path) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    freeze(story, event)
    story.turns(5)
    assert story.outcomes() == ["unseen"]
    assert story.count("start", name="start-again") == 1


@pytest.mark.parametrize("how", ["silent", "bodyless"])
def test_hook_due_by_time_runs_while_hidden(tmp_path: Path, how: str) -> None:
    early = match("early", "hold", condition='age < duration("20s")')
    story, event = listed(tmp_path, [("web", [early, match("a", **DRAIN)])], seconds=3)
    hide(story, event, how)
    story.go(30)
    assert story.count("start", name="drain") == 1
    assert story.count("post") == 0
    story.world.read_fault, story.world.bodyless = None, False
    story.go(60)
    assert story.count("post") == 1


@pytest.mark.parametrize("how", ["silent", "bodyless", "entry"])
def test_reload_counts_while_the_event_is_hidden(tmp_path: Path, how: str) -> None:
    two = [("web", [match("a", prepare=["one", "two"], recover=["back"])])]
    story, event = listed(
        tmp_path, two, [("web", [match("a", prepare=["one"], recover=["back"])])], seconds=3, slow={"one"}
    )
    hide(story, event, how)
    story.go(3)
    story.reload()
    story.slow = set()
    story.go(10)
    assert story.count("start", name="two") == 0
    assert story.count("post") == 0, "nothing is approved without a fresh document"


def test_the_first_document_may_be_old_as_well(tmp_path: Path) -> None:
    story = Story(tmp_path, AFTER)
    story.go(3)
    event = story.schedule(start_on="all_approvals")
    freeze(story, event)
    story.turns(5)
    assert story.outcomes() == ["unseen"]
    assert story.count("start", name="start-again") == 1


def test_restart_remembers_the_age_of_a_document(tmp_path: Path) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    freeze(story, event)
    story.restart()
    story.go(5)
    assert story.outcomes() == ["unseen"]


def test_what_is_listed_twice_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, _event = listed(tmp_path, [("web", [match("a", "hold")])], seconds=3, notice=50.0)
    assert not story.ready()
    plain = World.body

    def twice(self: World, vm: str) -> bytes:
        document = json.loads(plain(self, vm))
        (event,) = document["Events"]
        document["Events"] = [{**event, "Resources": ["web_1"]}, event]
        return json.dumps(document).encode()

    monkeypatch.setattr(World, "body", twice)
    story.go(3)
    assert not story.ready()


def test_what_is_in_doubt_wakes_nobody(tmp_path: Path) -> None:
    story, event = listed(tmp_path, [("web", [match("a", "hold", **DRAIN)])], seconds=3, fail={"drain"})
    story.world.change(event, fields={"DurationInSeconds": "soon"})
    story.go(25)
    n = story.turns(20.0)
    assert n < 60
