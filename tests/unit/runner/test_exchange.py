# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows which request, and what goes on while one is under way: the runner's own loop, in virtual time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Document, Vm
from forewarn.imds.client import READ_TIMEOUT_SECONDS
from forewarn.imds.errors import TIMEOUT, PassingFault
from forewarn.imds.transport import Response
from forewarn.runner.requester import APPROVAL, DOCUMENT, INSTANCE
from tools.fixtures.requesters import InlineRequester
from tools.judges.promises import BrokenPromise
from tools.judges.waiting_promises import NobodyWaits
from tools.worlds.runner_world import VMS, Hook
from tools.worlds.stories import ProfileStory

HOOK_SECONDS = 0.5


def _half_a_second(hook: Hook) -> None:
    hook.ends_at = hook.started_at + HOOK_SECONDS


class Story(ProfileStory):
    """A world in which time passes in the runner's own waits."""

    def begun(self) -> dict[str, float]:
        """Return when each hook began, as "PHASE NAME"."""
        starts = [entry for entry in self.world.ledger if entry.kind == "start" and entry.fields["phase"] != "notify"]
        return {f"{entry.fields['phase']} {entry.fields['name']}": entry.at for entry in starts}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, _half_a_second)


def test_hooks_follow_each_other_while_nobody_answers(story: Story) -> None:
    story.turns(3)
    story.schedule("steps", notice=60.0)
    story.turns(1.1)
    story.world.stuck = frozenset({DOCUMENT})
    story.turns(5)
    begun = story.begun()
    times = [begun[f"prepare step-{number}"] for number in (1, 2, 3)]
    assert [round(b - a, 1) for a, b in zip(times, times[1:])] == [HOOK_SECONDS] * 2
    judge = NobodyWaits()
    judge.read(story.world.ledger)
    assert judge.judged >= 5
    assert story.times("post") == [], "no document says that it is still listed"
    story.world.stuck = frozenset()
    story.turns(READ_TIMEOUT_SECONDS + 12)
    assert len(story.times("post")) == 1


def test_judge_notices_requests_made_in_the_loop(story: Story) -> None:
    """The judge would notice: a runner that makes its requests in the loop starts its hooks too late."""
    story.turns(3)
    story.schedule("steps", notice=60.0)
    story.turns(0.3)
    world, client = story.world, story.instance.client

    def hang() -> Document:
        world.clock.advance(READ_TIMEOUT_SECONDS)
        raise PassingFault("no answer", "", kind=TIMEOUT)

    client.read_once = hang  # to make it worse than it is
    story.instance.runner._exchange._requester = InlineRequester(story.instance.clocks.monotonic)
    story.turns(30)
    with pytest.raises(BrokenPromise, match=r"taken in at once|starts at once"):
        NobodyWaits().read(world.ledger)


def test_a_recovery_is_resumed_before_anybody_answers(story: Story) -> None:
    story.turns(3)
    event = story.schedule("steps", notice=60.0)
    story.turns(4)
    story.world.model.finish(event)
    story.turns(1.2)
    assert "recover back-1" in story.begun()
    story.world.stuck = frozenset({DOCUMENT, INSTANCE, APPROVAL})
    restarted = story.world.now
    story.crash()
    story.turns(3)
    assert story.begun()["recover back-2"] >= restarted, "it went on"
    NobodyWaits().read(story.world.ledger)


@pytest.mark.parametrize("name", ["plain", "drain"])
def test_approval_is_the_first_request_after_a_document(story: Story, name: str) -> None:
    """Who this VM is is asked after the first document, so another follows before the approval."""
    story.world.latency = 0.02
    story.schedule(name, notice=600.0)
    story.turns(5)
    assert len(story.times("post")) == 1
    (post,) = [entry.fields for entry in story.world.ledger if entry.kind == "post"]
    assert post["after"] == DOCUMENT
    if name == "plain":
        assert story.times("post")[0] < 0.5, "at once, not at the next tick"


def test_hooks_do_not_wait_for_the_vm_name(story: Story) -> None:
    story.world.stuck = frozenset({INSTANCE})
    story.instance.identity.vm = Vm(name=VMS[0])  # as given by --vm-name
    story.world.note("known")
    story.schedule("drain", notice=600.0)
    story.turns(0.3)
    assert story.begun()["prepare drain"] <= 0.1
    story.turns(6)
    assert len(story.times("post")) == 1, "once the question has been given up"


def test_late_vm_name_is_decided_upon_at_once(story: Story) -> None:
    story.world.latency = 0.3
    story.schedule("drain", notice=600.0)
    story.turns(0.6)
    assert story.begun() == {}, "nobody knows yet whether it affects this VM"
    story.turns(0.4)
    assert story.begun()["prepare drain"] == pytest.approx(0.6, abs=0.01), "with the answer, not with the next document"
    story.turns(1)
    assert len(story.times("post")) == 1


def test_pending_approval_blocks_other_requests(story: Story) -> None:
    story.turns(3)
    story.world.stuck = frozenset({APPROVAL})
    story.schedule("plain", notice=600.0)
    story.turns(1.5)
    (posted,) = story.times("post")
    story.world.stuck = frozenset()
    drained = story.schedule("drain", notice=600.0)
    story.turns(READ_TIMEOUT_SECONDS - 2.0)
    documents = [entry.at for entry in story.world.ledger if entry.kind == "document" and entry.at > posted]
    assert not [at for at in documents if at < posted + READ_TIMEOUT_SECONDS]
    story.turns(6)
    assert [drained] in [line["event_ids"] for line in story.instance.log.named("approved")]
    (failed,) = story.instance.log.named("approval-failed")
    assert failed["kind"] == "timeout"


def test_document_older_than_a_freeze_approves_nothing(story: Story) -> None:
    story.turns(3)
    story.world.latency = 0.2
    story.schedule("plain", notice=600.0)
    while not story.instance.requester.busy:
        story.instance.runner.step()
    answered_at = story.world.now + 0.2
    story.world.clock.advance(30.0)
    story.turns(2)
    (posted,) = story.times("post")
    assert posted >= answered_at + 29.9, "it was asked anew"


def test_polls_keep_their_ticks_with_slow_answers(story: Story) -> None:
    story.world.latency = 0.4
    asked: list[float] = []
    client: Any = story.instance.client
    read = client.read_once

    def watched() -> Any:
        asked.append(story.world.now)
        return read()

    client.read_once = watched
    story.turns(90)
    late = asked[65:]  # by then the question who this VM is has been made up for
    assert [b - a for a, b in zip(late, late[1:])] == pytest.approx([1.0] * (len(late) - 1), abs=1e-4)


@pytest.mark.parametrize("retry_after", [None, "3600"])
def test_no_answer_slows_the_polls_beyond_five_seconds(story: Story, retry_after: str | None) -> None:
    """A Preempt leaves 30 s: whatever the status, and whatever the service asks for."""
    story.turns(3)
    asked: list[float] = []
    carrier: Any = story.instance.client.carrier
    exchange = carrier.exchange

    def watched(*given: Any) -> Response:
        asked.append(story.world.now)
        answer: Response = exchange(*given)
        return answer._replace(headers={} if retry_after is None else {"retry-after": retry_after})

    carrier.exchange = watched
    for status in range(100, 600):
        story.world.read_fault = status
        number = len(asked)
        story.turns(5.1)
        assert len(asked) > number, status
    assert max(b - a for a, b in pairwise(asked)) <= 5.1


def test_heartbeats_continue_while_the_service_is_silent(story: Story) -> None:
    story.turns(3)
    kept: list[float] = []
    health = story.instance.runner.health
    keep = health.report

    def watched() -> None:
        kept.append(story.world.now)
        keep()

    health.report = watched  # type: ignore[method-assign]  # to see when
    story.world.stuck = frozenset({DOCUMENT})
    begin = story.world.now
    story.turns(9)
    assert max(b - a for a, b in zip([begin, *kept], kept)) <= 1.2


# Stopping


def test_stop_does_not_wait_for_a_poll(story: Story) -> None:
    story.turns(3)
    story.world.stuck = frozenset({DOCUMENT})
    story.turns(1.5)
    before = story.world.now
    story.instance.runner._stopped()
    assert story.world.now == before, "nobody needs that answer"
    assert [name for _level, name, _fields in story.instance.log.lines][-2:] == ["interrupted", "stopped"]


def test_stop_waits_briefly_for_an_approval(story: Story) -> None:
    story.turns(3)
    story.world.latency = 0.3
    story.schedule("plain", notice=600.0)
    while not story.times("post"):
        story.instance.runner.step()
    story.instance.runner._stopped()
    assert [name for _level, name, _fields in story.instance.log.lines][-2:] == ["approved", "stopped"]


def test_unanswered_approval_may_have_had_an_effect(story: Story) -> None:
    story.turns(3)
    story.world.stuck = frozenset({APPROVAL})
    event = story.schedule("plain", notice=600.0)
    while not story.times("post"):
        story.instance.runner.step()
    before = story.world.now
    story.instance.runner._stopped()
    assert story.world.now - before <= 0.5
    (interrupted,) = story.instance.log.named("interrupted")
    assert "is unknown" in interrupted["reason"]
    (failed,) = story.instance.log.named("approval-failed")
    assert (failed["event_ids"], failed["kind"]) == ([event], "timeout")
    (tracked,) = story.instance.runner.controller.reconciler.tracker._tracked.values()
    assert tracked.record.unanswered
