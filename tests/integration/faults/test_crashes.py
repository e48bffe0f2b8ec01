# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner that is killed at any point keeps its promises, which docs/runner-states.md lists.

Crashes in virtual time, and proof that the judge would notice a broken promise. For other scenarios each time, and for
as long as you like, there is ``make soak``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from forewarn.imds.client import Client
from forewarn.imds.errors import PassingFault
from forewarn.imds.transport import Response
from forewarn.runner.approval_gate import ApprovalGate
from forewarn.runner.approvals import Approvals
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks.open_records import OpenRecords
from forewarn.runner.hooks.plan import Plan
from forewarn.runner.hooks.run import RECOVER, SKIPPED, Run
from forewarn.runner.hooks.scheduler import HookScheduler
from forewarn.runner.operator_pause import OperatorPause
from forewarn.runner.tracker import Tracker
from tools.judges.promises import BrokenPromise
from tools.suite.sizes import NAME, SEED, SIZE, seeds
from tools.worlds.crash_runner import Kill
from tools.worlds.crash_scripts import HeldApprovals, Script, Silence, make_script
from tools.worlds.crashes import EACH, CrashRun, play, some_kills
from tools.worlds.runner_profiles import GENERATIONS, policies
from tools.worlds.runner_world import World
from tools.worlds.world_runner import WorldTransport


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    for generation in range(len(GENERATIONS)):
        policies(generation)  # so that no runner has to


@pytest.mark.parametrize("seed", seeds(SIZE.runner_crashes // EACH))
def test_promises_hold_after_kills_and_reboots(seed: int) -> None:
    script = make_script(seed + 1)  # 0 is one that others play at each of its points
    for kills in some_kills(seed, play(script).points, EACH):
        assert play(script, kills).killed >= 1


ONE, CHANGED = make_script(0), make_script(-1)


def kinds(played: CrashRun) -> dict[str, int]:
    """Return how often each kind of thing happened; hooks are counted by phase."""
    found: dict[str, int] = {}
    for entry in played.ledger:
        kind = entry.fields["phase"] if entry.kind == "start" else entry.kind
        found[kind] = found.get(kind, 0) + 1
    return found


def test_the_same_crash_is_the_same_each_time() -> None:
    script = make_script(5)
    kills = [Kill(play(script).points // 2, 0.5), Kill(3, 2.0, reboot=True)]
    first = play(script, kills)
    assert first.killed == 2
    assert first == play(script, kills)


@pytest.mark.parametrize("text", ["12:0", "7:0.5", "3:40:reboot"])
def test_the_report_of_a_crash_repeats_it(text: str) -> None:
    assert str(Kill.of(text)) == text


def test_without_a_crash_all_is_done_once() -> None:
    found = kinds(play(ONE))
    assert (found["prepare"], found["post"], found["recover"]) == (2, 1, 2)


STEP = 3 if NAME == "small" else 1


def test_at_every_point_of_one_scenario() -> None:
    points = play(ONE).points
    again = {"prepare": 0, "post": 0, "recover": 0}
    # Every point at size full; at small some, and others with another seed.
    for point in range(1 + SEED % STEP, points + 1, STEP):
        found = kinds(play(ONE, [Kill(point)]))
        assert found["kill"] == 1
        for kind, once, at_once in (("prepare", 2, 1), ("post", 1, 1), ("recover", 2, 2)):
            assert once <= found[kind] <= once + at_once, f"{kind} after a crash at point {point}"
            again[kind] += found[kind] > once
    # Killed between an effect and the journal: what can happen twice does, so the points lie where it matters.
    assert all(again.values()) if STEP == 1 else any(again.values())


def test_changed_event_is_prepared_before_its_next_approval() -> None:
    found = kinds(play(CHANGED))
    assert (found["prepare"], found["recover"]) == (2, 1)
    assert found["post"] >= 2


PAUSED = ONE._replace(pauses=(HeldApprovals(1.0, 20.0, None),))


@pytest.mark.parametrize(
    "script", [PAUSED, ONE._replace(pauses=(HeldApprovals(3.5, None, 30.0),))], ids=["ends", "resumed"]
)
def test_an_operators_pause_outlives_every_crash(script: Script) -> None:
    points = play(script).points
    step = 12 if NAME == "small" else 1
    for point in range(1 + SEED % step, points + 1, step):
        kill = Kill(point, 5.0, reboot=True) if point % 2 else Kill(point)
        assert kinds(play(script, [kill]))["post"] >= 1, "once it is over"


# The judge would notice


def test_an_approval_during_a_pause_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApprovalGate, "blocker", ApprovalGate._unready)
    play(PAUSED)  # it is asked for again, right before the approval is sent
    monkeypatch.setattr(OperatorPause, "blocker", lambda _self: None)
    with pytest.raises(BrokenPromise, match="no approval while an operator has paused approvals"):
        play(PAUSED)


@pytest.mark.parametrize(
    "broken",
    [
        (EventRecord, "update_content", lambda *_: False),  # no change is seen
        (ApprovalGate, "blocker", lambda *_: None),  # what was prepared for another content counts
    ],
    ids=lambda broken: broken[1],
)
def test_an_approval_for_another_content_is_noticed(broken: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*broken)
    with pytest.raises(BrokenPromise, match="no approval before every prepare hook has succeeded"):
        play(CHANGED)


def send_whatever_the_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorldTransport, "fresh_seconds", 1000.0)


def send_again_without_an_answer(patch: pytest.MonkeyPatch) -> None:
    exchange = WorldTransport.exchange

    def again(self: WorldTransport, *given: Any) -> Response:
        try:
            return exchange(self, *given)
        except PassingFault:
            return exchange(self, *given)

    patch.setattr(WorldTransport, "exchange", again)
    patch.setattr(Client, "_admit_approval", lambda self, _not_after: self.limiter.take())


@pytest.mark.parametrize(
    ("fault", "break_it", "promise"),
    [
        ("frozen", send_whatever_the_time, "an approval rests on a fresh document"),
        ("closed", send_again_without_an_answer, "each approval has a document of its own"),
    ],
)
def test_an_approval_without_its_document_is_noticed(
    fault: str, break_it: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ONE._replace(silences=(Silence(0.0, 15.0, fault),))
    play(script)
    break_it(monkeypatch)
    with pytest.raises(BrokenPromise, match=promise):
        play(script)


def replaced(owner: type, name: str, value: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def break_it(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, value)

    break_it.__name__ = name
    return break_it


def commit_nothing_of_a_start(patch: pytest.MonkeyPatch) -> None:
    write = OpenRecords.write

    def forgetful(self: OpenRecords, line: str, *arguments: Any, **options: Any) -> None:
        if line != "hook-started":
            write(self, line, *arguments, **options)

    patch.setattr(OpenRecords, "write", forgetful)


def leave_out_interrupted_recoveries(patch: pytest.MonkeyPatch) -> None:
    interrupted = Plan.requeue_running

    def lazy(self: Plan) -> list[Run]:
        runs = interrupted(self)
        for run in runs:
            if run.phase == RECOVER:
                run.end(SKIPPED, "it had run already")
        return runs

    patch.setattr(Plan, "requeue_running", lazy)


def recover_nothing_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    resume_records = HookScheduler.resume_records

    def hasty(self: HookScheduler, *late: Any) -> list[EventRecord]:
        records = resume_records(self, *late)
        for record in records:
            for run in record.plan.of_phase(RECOVER):
                run.end(SKIPPED, "the runner was restarted")
        return records

    patch.setattr(HookScheduler, "resume_records", hasty)


def forget_approvals(patch: pytest.MonkeyPatch) -> None:
    of = EventRecord.of

    def forgetful(row: Any) -> EventRecord:
        record = of(row)
        record.approvals, record.approved_at, record.state = 0, None, "prepared"
        return record

    patch.setattr(EventRecord, "of", forgetful)


def recover_what_is_listed(patch: pytest.MonkeyPatch) -> None:
    resume_records = HookScheduler.resume_records

    def eager(self: HookScheduler, *late: Any) -> list[EventRecord]:
        records = resume_records(self, *late)
        for record in records:
            if record.listed and record.plan.has_begun():
                record.plan.stop_preparing("the runner was restarted")
                record.step("leave")
        return records

    patch.setattr(HookScheduler, "resume_records", eager)


@pytest.mark.parametrize(
    ("break_it", "promise"),
    [
        (commit_nothing_of_a_start, "a start is in the journal before it happens"),
        (leave_out_interrupted_recoveries, "what was prepared is recovered"),
        (recover_nothing_after_a_restart, "what was prepared is recovered"),
        (
            replaced(Tracker, "restore", lambda *_: None),
            "attempts are counted|no prepare hook that has succeeded runs again|has not come to rest",
        ),
        (
            replaced(HookScheduler, "resume", lambda self: self._journal.open() and None),
            "attempts are counted|no prepare hook that has succeeded|what was prepared is recovered",
        ),
        (forget_approvals, "an approval that was taken is not repeated"),
        (replaced(Approvals, "_write_ahead", lambda *_: True), "an approval is in the journal before it is sent"),
        (replaced(World, "end_leftovers", lambda *_: set()), "no hook runs twice at the same time"),
        (replaced(ApprovalGate, "blocker", lambda *_: None), "no approval before every prepare hook has succeeded"),
        (recover_what_is_listed, "recovered is what was prepared, and has left the list|no prepare hook that"),
        (replaced(Approvals, "next_request", lambda *_: None), "what is prepared is approved at once"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.in_turn(3)
def test_a_broken_promise_is_noticed(
    break_it: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(BrokenPromise, match=promise) as raised:
        play_until_broken()
    assert "--seed 0 --kill" in str(raised.value)


def play_until_broken() -> None:
    points = list(range(1, play(ONE).points + 1))
    random.Random(0).shuffle(points)  # what breaks it lies late for some
    for point in points:
        play(ONE, [Kill(point)])
