# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events that the service cannot show for a while, or not as they are: no body, an entry that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Vm, parse_document
from forewarn.runner.hooks.commands import Command
from tools.runner_world import VMS, World
from tools.stories import AFTER, DRAIN, HELD, ONCE, Story, hook, match

DRILL = "drill-0123456789ab"


def hide(told: Story, event: str, how: str) -> None:
    if how == "bodyless":
        told.world.bodyless = True
    elif how == "entry":
        told.world.unreadable = frozenset({event.lower()})
    else:
        told.world.change(event, fields={"Resources": "web_0"})


def freeze(told: Story, event: str) -> None:
    """Let the event start, and be over, while the VM is frozen: the answer that shows it Scheduled was there before."""
    told.world.latency = 0.05
    told.instance.runner.cycle()
    answer = told.world.document(VMS[0]), None
    told.instance.requester._made = answer
    told.world.clock.advance(0.05)
    told.world.model.start(event)
    told.world.clock.advance(30.0)
    told.world.model.finish(event)
    told.instance.runner.turn()
    told.world.latency = 0.0


@pytest.mark.parametrize("status", [7, "InProgress"], ids=["unreadable", "unknown"])
def test_a_status_that_nobody_knows_is_no_cancellation(tmp_path: Path, status: object) -> None:
    told = Story(tmp_path, AFTER)
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    told.world.change(event, fields={"EventStatus": status})
    told.go(3)
    told.world.model.cancel(event)
    told.go(5)
    assert told.outcomes() == ["unseen"]
    assert told.count("start", name="start-again") == 1


def test_a_not_before_that_could_not_be_read_may_have_passed(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    event = told.schedule(notice=20.0)
    told.go(17)
    told.world.change(event, fields={"NotBefore": "soon"})
    told.go(2)
    told.world.read_fault = 503  # for five seconds, in which it starts and ends
    told.go(5)
    told.world.model.finish(event)
    told.world.read_fault = None
    told.go(15)
    assert told.outcomes() == ["unseen"]
    assert told.count("start", name="start-again") == 1


def test_a_recover_hook_is_told_of_the_event_that_was_prepared_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Story(tmp_path, HELD)
    event = told.schedule()
    told.go(3)
    told.world.change(event, fields={"EventType": 7, "Resources": "web_0"})
    told.go(3)
    told.world.model.cancel(event)
    seen: list[str] = []
    start = told.instance.executor.start

    def watched(token: int, command: Command) -> Any:
        seen.append(repr(command))
        return start(token, command)

    monkeypatch.setattr(told.instance.executor, "start", watched)
    told.go(3)
    assert "'FOREWARN_EVENT_TYPE': 'Reboot'" in seen[0]
    assert "'FOREWARN_RESOURCES': 'web_0'" in seen[0]


@pytest.mark.parametrize("how", ["bodyless", "entry", "resources"])
def test_no_drill_begins_while_a_real_event_cannot_be_seen(tmp_path: Path, how: str) -> None:
    told = Story(tmp_path, HELD)
    event = told.schedule()
    told.go(3)
    hide(told, event, how)
    told.go(1)
    told.drill(DRILL)
    told.go(5)
    assert told.count("start", drill=True) == 0


def test_no_drill_begins_while_nobody_knows_whom_an_event_affects(tmp_path: Path) -> None:
    told = Story(tmp_path, HELD)
    hide(told, told.schedule(), "resources")
    told.go(3)
    told.drill(DRILL)
    told.go(5)
    assert told.count("start", drill=True) == 0


def test_no_drill_begins_before_the_first_document_after_a_restart(tmp_path: Path) -> None:
    told = Story(tmp_path, HELD)
    told.schedule()
    told.go(3)
    told.stop()
    told.world.stuck = frozenset({"document"})
    told.start()
    told.instance.identity.vm = Vm(name=VMS[0])  # as --vm-name says
    told.drill(DRILL)
    told.turns(8.0)
    assert told.count("start", drill=True) == 0


def test_a_drill_that_recovers_once_only_is_not_in_the_way_of_a_preempt(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a", "hold", prepare=["drain"], recover=[hook("undrain", 600.0, **ONCE)])])])
    told.go(2)
    told.drill(DRILL)
    told.go(4)
    told.slow = {"undrain"}
    (tmp_path / "drills" / f"{DRILL}.json").unlink()
    told.go(4)
    assert told.count("start", name="undrain", drill=True) == 1
    told.schedule(notice=30.0)
    told.go(28)
    assert told.count("start", name="drain", drill=False) == 1


def test_an_event_that_nobody_saw_for_long_was_not_cancelled_for_a_restart(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    told.world.unreadable = frozenset({event.lower()})
    told.go(10)
    told.world.model.start(event)
    told.go(20)
    told.restart()
    told.world.model.finish(event)
    told.world.unreadable = frozenset()
    told.go(5)
    assert told.outcomes() == ["unseen"], "as it is without the restart"
    assert told.count("start", name="start-again") == 1


def test_an_event_was_not_seen_when_the_vm_was_frozen_with_a_document_in_its_hands(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    freeze(told, event)
    told.turns(5)
    assert told.outcomes() == ["unseen"]
    assert told.count("start", name="start-again") == 1


@pytest.mark.parametrize("how", ["bodyless", "entry"])
def test_a_reload_counts_at_once_though_the_event_cannot_be_seen(tmp_path: Path, how: str) -> None:
    two = [("web", [match("a", prepare=["one", "two"], recover=["back"])])]
    told = Story(tmp_path, two, [("web", [match("a", prepare=["one"], recover=["back"])])])
    told.slow = {"one"}
    event = told.schedule()
    told.go(3)
    hide(told, event, how)
    told.go(3)
    told.reload()
    told.slow = set()
    told.go(10)
    assert told.count("start", name="two") == 0


def test_the_time_counts_though_the_answers_have_no_body(tmp_path: Path) -> None:
    early = match("early", "hold", condition='age < duration("10s")')
    told = Story(tmp_path, [("web", [early, match("a", **DRAIN)])])
    told.schedule()
    told.go(5)
    told.world.bodyless = True
    told.go(30)
    assert told.count("start", name="drain") == 1


def test_the_first_document_may_be_old_as_well(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    told.go(3)
    event = told.schedule(start_on="all_approvals")
    freeze(told, event)
    told.turns(5)
    assert told.outcomes() == ["unseen"]
    assert told.count("start", name="start-again") == 1


def test_a_restart_does_not_forget_how_old_a_document_was(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    event = told.schedule(start_on="all_approvals")
    told.go(3)
    freeze(told, event)
    told.restart()
    told.go(5)
    assert told.outcomes() == ["unseen"]


def test_what_is_listed_twice_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Story(tmp_path, [("web", [match("a", "hold")])])
    told.schedule(notice=50.0)
    told.go(3)
    assert not told.ready()
    plain = World.document

    def twice(self: World, vm: str) -> Any:
        document = plain(self, vm)
        event = document.events[0].as_dict()
        events = [{**event, "Resources": ["web_1"]}, event]
        return parse_document(json.dumps({"DocumentIncarnation": document.incarnation, "Events": events}))

    monkeypatch.setattr(World, "document", twice)
    told.go(3)
    assert not told.ready()


def test_what_is_in_doubt_wakes_nobody(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a", "hold", **DRAIN)])])
    told.fail = {"drain"}
    event = told.schedule()
    told.go(3)
    told.world.change(event, fields={"DurationInSeconds": "soon"})
    told.go(25)
    n = told.turns(20.0)
    assert n < 60
