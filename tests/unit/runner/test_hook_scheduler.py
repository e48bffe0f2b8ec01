# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of several events: when they start, what they wait for, what a restart makes of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.policy.decision import APPROVE, Verdict
from forewarn.runner import event_record as states
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks import notifications
from forewarn.runner.hooks.commands import HookSettings
from forewarn.runner.hooks.notifications import MOST_NOTIFYING
from forewarn.runner.hooks.scheduler import CEILING, MOST_RUNNING, HookScheduler
from forewarn.runner.journal.writer import EventRow
from forewarn.runner.telemetry.metrics import Metrics
from tools.runner_profiles import hook
from tools.runner_world import EPOCH, Hook, Lines, World, WorldExecutor, leftovers_in
from tools.watched_journals import Kept, MemoryJournal


class Stage:
    """A scheduler with hooks that end when a test says so."""

    def __init__(self) -> None:
        self.world = World()
        self.kept = Kept()
        self.begin()

    def begin(self) -> None:
        """Begin a runner on what is kept."""
        self.executor: Any = WorldExecutor(self.world)
        executor: Any = self.executor
        self.log = Lines()
        self.journal = MemoryJournal(self.world, self.kept)
        self.scheduler = HookScheduler(
            executor,
            self.journal,
            self.log,
            Metrics(),
            self.world.clocks(),
            HookSettings(),
            lambda: datetime.fromtimestamp(self.world.wall, timezone.utc),
        )

    def restart(self) -> None:
        """Kill the runner, and begin another."""
        self.world.kill()
        self.begin()
        with leftovers_in(self.world):
            self.scheduler.resume()

    def event(self, event_id: str, not_before: float | None = 900.0) -> Event:
        moment = None
        if not_before is not None:
            moment = datetime.fromtimestamp(EPOCH + self.world.now + not_before, timezone.utc)
        return Event(event_id, "Reboot", "VirtualMachine", ("web_0",), "Scheduled", moment)

    def listed(
        self, event_id: str, prepare: str = "", recover: str = "", not_before: float | None = 900.0, **values: Any
    ) -> EventRecord:
        """Return the record of an event that was just seen, with a plan."""
        record = self.scheduler.open_record(self.event(event_id, not_before), False)
        record.confirmed = True
        self.scheduler.plan(record, [verdict(prepare, recover, **values)])
        return record

    def work(self, seconds: float = 0.0) -> None:
        self.world.clock.advance(seconds)
        self.scheduler.collect()
        self.scheduler.advance()
        self.journal.commit()

    def running(self, *phases: str) -> list[str]:
        return [hook.name for hook in self.world.running() if not phases or hook.phase in phases]

    def end(self, name: str, result: str = "succeeded") -> None:
        """Let a hook end, and the runner notice."""
        (found,) = (hook for hook in self.world.running() if hook.name == name)
        found.ends_at, found.result = self.world.now, result
        self.work()

    def started(self) -> list[str]:
        return [entry.fields["name"] for entry in self.world.ledger if entry.kind == "start"]

    def latest(self, name: str) -> Hook:
        return [hook for hook in self.world.hooks if hook.name == name][-1]

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [fields for _level, line, fields in self.log.lines if line == name]


def verdict(prepare: str, recover: str = "", **values: Any) -> Verdict:
    made = Verdict("web", APPROVE, "drain", "because", "web.yml:1:1", **values)
    return made._replace(prepare=tuple(map(hook, prepare.split())), recover=tuple(map(hook, recover.split())))


@pytest.fixture
def stage() -> Stage:
    return Stage()


# Preparing


def test_events_are_prepared_side_by_side_the_soonest_first(stage: Stage) -> None:
    stage.listed("A", "late", not_before=900)
    stage.listed("B", "never", not_before=None)
    stage.listed("C", "soon", not_before=30)
    stage.work()
    assert stage.started() == ["soon", "late", "never"]


def test_a_hook_gets_its_own_timeout_or_what_is_left_before_not_before(stage: Stage) -> None:
    stage.listed("A", "drain", not_before=900)
    stage.listed("B", "hurry", not_before=20)
    stage.work()
    stage.work()
    told = [line["timeout_seconds"] for line in stage.lines("hook-started")]
    assert told == [17.0, 30.0]
    assert stage.scheduler.next_in() == pytest.approx(17.0)
    stage.world.clock.advance(17.0)
    stage.work()
    asked = [entry.at for entry in stage.world.ledger if entry.kind == "asked"]
    assert asked == [pytest.approx(17.0)]


def test_without_time_nothing_is_started_and_that_is_a_failure(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain", not_before=3.5)
    stage.work()
    stage.work()
    assert stage.started() == []
    assert record.state == states.FAILED
    assert "no time left" in record.obstacle
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.started() == [], "and what was never prepared is not recovered"
    assert record.state == states.DONE


def test_an_event_that_no_document_has_confirmed_is_not_prepared(stage: Stage) -> None:
    record = stage.listed("A", "drain")
    record.confirmed = False
    stage.work()
    assert stage.started() == []


def test_a_crowd_of_hooks_waits_its_turn(stage: Stage) -> None:
    records = [stage.listed(f"E{number:03}", f"drain-{number}", "undrain") for number in range(60)]
    stage.work()
    assert len(stage.running()) == MOST_RUNNING
    for _ in range(60):
        for name in stage.running()[:5]:
            stage.end(name)
        assert len(stage.running()) <= MOST_RUNNING
    assert all(record.state == states.PREPARED for record in records)
    assert len(stage.started()) == 60


def test_hooks_that_are_to_be_tried_again_do_not_make_it_spin(stage: Stage) -> None:
    """With all places taken nothing can start, so nothing is to be waited for but the end of a hook."""
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain", "failed")
    assert stage.scheduler.next_in() == pytest.approx(10.0)
    for number in range(MOST_RUNNING):
        stage.listed(f"E{number:03}", f"drain-{number}")
    stage.work()
    stage.work(11.0)
    assert stage.running().count("undrain") == 0
    assert stage.scheduler.next_in() not in (0.0, None)
    stage.end("drain-3")
    assert stage.running().count("undrain") == 1


def test_a_program_that_cannot_be_started_is_a_failure_and_was_an_attempt(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.world.not_startable = True
    stage.work()
    stage.work()
    assert record.state == states.PREPARING
    assert (record.plan.runs[0].attempts, record.plan.runs[0].failures) == (1, 1)
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"], "half a drain may have happened: nobody knows"


def test_a_hook_that_may_not_be_run_is_a_failure_that_says_why(stage: Stage) -> None:
    record = stage.scheduler.open_record(stage.event("A"), False)
    record.confirmed = True
    missing = {"run": ["/nonexistent/drain"], "timeout_seconds": 60.0}
    stage.scheduler.plan(record, [verdict("")._replace(prepare=(missing,))])
    stage.work()
    assert record.state == states.PREPARING, "it is tried again: the program may be there by then"
    (line,) = stage.lines("hook-ended")
    assert line["result"] == "not-started"
    assert "/nonexistent/drain" in line["reason"]


# Recovering


def test_recovery_waits_until_the_prepare_hook_has_ended(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain")
    stage.work()
    stage.latest("drain").patience = 1.5
    stage.scheduler.gone(record, states.CALLED_OFF)
    stage.work()
    assert (stage.running(), record.state) == (["drain"], states.RECOVERING)
    stage.work(1.0)
    assert stage.running() == ["drain"]
    stage.work(1.0)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.CANCELLED
    assert stage.scheduler.records == []
    assert [row.open for row in stage.kept.records()] == [False]


def test_without_recover_hooks_the_end_of_the_prepare_hook_is_waited_for_all_the_same(stage: Stage) -> None:
    record = stage.listed("A", "drain")
    stage.work()
    stage.latest("drain").patience = 1.5
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert record.state == states.RECOVERING
    stage.work(2.0)
    assert record.state == states.DONE


def test_a_recovery_that_fails_is_tried_again_with_growing_pauses_until_it_succeeds(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain open")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    for seconds in (10.0, 60.0, 300.0, 900.0, 3600.0, 3600.0):
        stage.end("undrain", "failed")
        assert stage.scheduler.next_in() == pytest.approx(seconds)
        stage.work(seconds - 0.1)
        assert stage.running() == []
        stage.work(0.2)
        assert stage.running() == ["undrain"]
        assert record.state == states.RECOVERING
    assert [run.hook["run"][1] for run in record.plan.failing()] == ["undrain"], "a person should look at it"
    assert "open" not in stage.started()
    stage.end("undrain")
    assert record.plan.failing() == []
    stage.end("open")
    assert record.state == states.DONE


def test_a_recovery_that_may_run_once_only_waits_for_a_person(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    for run in record.plan.of_phase("recover"):
        run.hook = {**run.hook, "retry": {"attempts": 1}}
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain", "failed")
    stage.work(86400.0)
    assert stage.started().count("undrain") == 1
    assert record.state == states.RECOVERING
    stage.restart()
    (record,) = stage.scheduler.records
    stage.work(86400.0)
    assert stage.started().count("undrain") == 1, "nor does a restart run it again"
    stage.scheduler.recover_again(record)
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.DONE


def test_a_person_may_have_dealt_with_a_recovery(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain open")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain", "failed")
    stage.scheduler.dealt_with(record, "put back by hand")
    stage.work(86400.0)
    assert stage.started() == ["drain", "undrain"]
    assert record.state == states.DONE
    reasons = [run.reason for run in record.plan.of_phase("recover")]
    assert reasons == ["dealt with by a person: put back by hand"] * 2


def test_orderly_restarts_are_no_failures_of_a_recovery(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    for attempt in range(2, 8):
        stage.restart()
        stage.work()
        assert stage.latest("undrain").attempt == attempt
    (record,) = stage.scheduler.records
    stage.end("undrain", "failed")
    assert record.plan.failing() == []
    assert stage.scheduler.next_in() == pytest.approx(10.0)


def test_a_shared_recovery_is_left_to_the_event_that_is_listed_longest(stage: Stage) -> None:
    records = [stage.listed(name, f"drain-{name}", "undrain") for name in "ABC"]
    stage.work()
    for name in "ABC":
        stage.end(f"drain-{name}")
    for record in records:
        stage.scheduler.gone(record, states.FINISHED)
        stage.work()
        assert stage.running() == (["undrain"] if record is records[-1] else [])
    assert [line["event_id"] for line in stage.lines("hook-left")] == ["A", "B"]
    stage.end("undrain")
    assert stage.started().count("undrain") == 1
    assert [record.state for record in records] == [states.DONE] * 3


def test_what_comes_after_a_recovery_that_is_left_runs_at_once(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain open")
    stage.listed("B", "flush", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running("recover") == ["open"]


def test_a_real_event_leaves_no_recovery_to_a_drill(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    drill = stage.listed("B", "drain", "undrain")
    drill.drill = True
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert (stage.running("recover"), stage.lines("hook-left")) == ([], [])
    stage.scheduler.gone(drill, states.FINISHED)
    stage.work()
    stage.end("undrain")
    stage.end("undrain")
    assert stage.started().count("undrain") == 2
    assert record.state == states.DONE


def test_a_recovery_is_not_left_to_an_event_that_has_prepared_nothing(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    other = stage.listed("B", "drain", "undrain")
    other.confirmed = False
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    other.confirmed = True
    stage.work()
    assert stage.running() == ["undrain"], "and the other one waits until it is undone"
    stage.end("undrain")
    assert stage.running() == ["drain"]
    assert other.state == states.PREPARING


def test_what_the_next_event_needs_too_is_not_undone_and_done_again(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.listed("B", "drain", "undrain")
    stage.work()
    assert stage.running() == ["drain"]
    assert stage.lines("hook-left")


def test_what_is_undone_for_one_event_is_not_prepared_for_another_at_the_same_time(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.listed("B", "drain", "undrain")
    stage.listed("C", "flush", "reopen")
    stage.work()
    assert stage.running() == ["undrain", "flush"]
    stage.end("undrain", "failed")
    assert sorted(stage.running()) == ["drain", "flush"]
    stage.work(20.0)
    assert stage.started().count("undrain") == 1, "tried again it would undo the other's"
    assert stage.lines("hook-left")


def test_an_id_that_is_listed_again_while_it_is_undone_is_another_event(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    again = stage.listed("A", "drain", "undrain")
    assert again.identifier > record.identifier
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.running() == ["drain"]
    assert (record.state, again.state) == (states.DONE, states.PREPARING)


def test_events_that_end_together_run_the_same_recovery_once(stage: Stage) -> None:
    records = [stage.listed(name, f"drain-{name}", "undrain") for name in "ABC"]
    stage.work()
    for name in "ABC":
        stage.end(f"drain-{name}")
    for record in records:
        stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain", "failed")
    stage.work(9.0)
    assert stage.running() == [], "a failure counts for all three"
    stage.work(1.1)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.started().count("undrain") == 2
    assert [record.state for record in records] == [states.DONE] * 3


def test_after_an_event_that_started_unannounced_only_what_says_so_is_recovered(stage: Stage) -> None:
    for event_id, when in (("A", "prepared"), ("B", "started")):
        record = stage.scheduler.open_record(replace(stage.event(event_id, None), event_status="Started"), False)
        record.confirmed = True
        stage.scheduler.plan(record, [verdict("", f"start-{event_id}", recover_when=when)])
        stage.scheduler.started(record)
    stage.work()
    assert stage.running() == [], "not before the event has left the list (SE-23)"
    for record in list(stage.scheduler.records):
        stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["start-B"]


def test_what_was_cancelled_before_it_started_needs_no_recovery_without_preparation(stage: Stage) -> None:
    record = stage.listed("A", "", "start", recover_when="started")
    stage.work()
    stage.scheduler.gone(record, states.CALLED_OFF)
    stage.work()
    assert stage.started() == []


# Content, retries, and what is due first


def test_a_hook_of_two_rules_runs_once(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.plan(record, [verdict("drain", "undrain")._replace(rule="renamed", policy="other")])
    stage.scheduler.plan(record, [verdict("drain flush", "undrain")._replace(rule="late")])
    stage.work()
    assert stage.running() == ["flush"]
    stage.end("flush")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain")
    assert stage.started() == ["drain", "flush", "undrain"]


def test_another_content_ends_what_prepares_and_is_prepared_anew(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain")
    stage.work()
    stage.end("drain")
    changed = replace(record.event, event_type="Redeploy")
    assert record.changed_to(changed)
    record.event = changed
    stage.scheduler.content_changed(record)
    stage.scheduler.plan(record, [verdict("drain", "undrain")])
    stage.work()
    assert stage.running() == ["drain"], "flush is not wanted any more"
    assert stage.latest("drain").attempt == 1
    stage.end("drain")
    assert record.state == states.PREPARED
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.started() == ["drain", "flush", "drain", "undrain"]


def test_a_prepare_hook_that_fails_is_tried_again_while_there_is_time(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=100.0)
    stage.work()
    times = []
    while record.state == states.PREPARING:
        if stage.running():
            times.append(stage.world.now)
            stage.end("drain", "failed")
        stage.work(0.1)
    pauses = [round(later - earlier) for earlier, later in zip(times, times[1:])]
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert record.state == states.FAILED
    assert "no time left" in record.obstacle
    assert times[-1] > stage.world.now - 5, "the last attempt is near the end"


def test_a_hook_is_ended_in_time_where_not_before_is_brought_forward(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=900.0)
    stage.work()
    assert stage.latest("drain").timeout_at == 30.0
    record.event = replace(record.event, not_before=datetime.fromtimestamp(EPOCH + 20.0, timezone.utc))
    stage.work(5.0)
    stage.work(11.9)
    assert stage.running() == ["drain"]
    stage.work(0.2)
    assert stage.running() == []
    assert stage.latest("drain").over == "ended"


def test_a_clock_that_is_set_ends_no_hook(stage: Stage) -> None:
    stage.listed("A", "drain", "undrain", not_before=900.0)
    stage.work()
    stage.world.wall_error = 3600.0
    stage.work(20.0)
    assert stage.running() == ["drain"]


def test_a_failed_preparation_goes_on_when_time_comes_back(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=100.0)
    stage.world.wall_error = 3600.0
    stage.work()
    assert (record.state, stage.started()) == (states.FAILED, [])
    stage.world.wall_error = 0.0
    stage.work()
    assert stage.running() == ["drain"]
    stage.end("drain")
    assert record.state == states.PREPARED


def test_a_hook_that_may_run_once_only_is_not_tried_again(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    record.plan.runs[0].hook = {**record.plan.runs[0].hook, "retry": {"attempts": 1}}
    stage.work()
    stage.end("drain", "failed")
    stage.work(60.0)
    assert (record.state, stage.started()) == (states.FAILED, ["drain"])


def test_a_hook_that_may_run_once_only_does_not_run_again_after_a_crash(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    record.plan.runs[0].hook = {**record.plan.runs[0].hook, "retry": {"attempts": 1}}
    stage.work()
    stage.restart()
    (record,) = stage.scheduler.records
    record.confirmed = True
    stage.work()
    assert (record.state, stage.started()) == (states.FAILED, ["drain"])
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"]


def test_preparation_begins_when_not_before_is_near_enough(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=7 * 86400.0, prepare_within_seconds=900.0)
    stage.work()
    assert stage.started() == []
    assert stage.scheduler.next_in() == pytest.approx(7 * 86400.0 - 900.0)
    stage.work(7 * 86400.0 - 900.5)
    assert stage.started() == []
    stage.work(1.0)
    assert stage.running() == ["drain"]
    stage.end("drain")
    assert record.state == states.PREPARED


def test_what_is_due_first_finds_room_beside_all_that_is_due_later(stage: Stage) -> None:
    stage.listed("A", " ".join(f"slow-{number}" for number in range(20)), parallel=True, not_before=600.0)
    stage.work()
    assert len(stage.running()) == MOST_RUNNING
    stage.listed("B", "preempted", not_before=30.0)
    stage.work()
    assert "preempted" in stage.running()


def test_at_the_ceiling_what_is_due_last_makes_room(stage: Stage) -> None:
    for number in range(CEILING // MOST_RUNNING):
        names = " ".join(f"slow-{number}-{place}" for place in range(MOST_RUNNING))
        stage.listed(f"A{number}", names, parallel=True, not_before=6000.0 - 1000.0 * number)
        stage.work()
    assert len(stage.running()) == CEILING
    stage.listed("B", "preempted", not_before=30.0)
    stage.work()
    stage.work(0.1)
    assert "preempted" in stage.running()
    assert len(stage.running()) == CEILING
    ended = [found.name for found in stage.world.hooks if found.over == "ended"]
    assert [name.rpartition("-")[0] for name in ended] == ["slow-0"]


def test_a_recovery_makes_way_for_a_preparation_that_it_would_leave_no_time(stage: Stage) -> None:
    earlier = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(earlier, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"]
    stage.listed("B", "drain-quickly", "undrain", not_before=30.0)
    stage.work()
    stage.work(0.1)
    assert stage.running() == ["drain-quickly"]
    assert stage.lines("hook-left"), "the recovery is due again when B is over"
    assert all(run.failures == 0 for run in earlier.plan.runs)


def test_a_recovery_that_leaves_enough_time_is_waited_for_and_named(stage: Stage) -> None:
    earlier = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(earlier, states.FINISHED)
    stage.work()
    record = stage.listed("B", "drain-slowly", "undrain", not_before=900.0)
    stage.work()
    assert stage.running() == ["undrain"]
    assert "undrain" in record.obstacle
    assert "event A" in record.obstacle


# Without a journal


def test_nothing_is_prepared_that_could_not_be_recovered(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.kept.broken = True
    stage.work()
    stage.work()
    assert stage.started() == []
    assert not record.plan.begun()
    stage.kept.broken = False
    stage.journal.commit()
    stage.work()
    assert stage.running() == ["drain"]
    assert stage.latest("drain").attempt == 1


def test_recovery_runs_all_the_same(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.kept.broken = True
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.DONE


# After a crash


def test_an_interrupted_hook_is_ended_and_runs_again_once_the_event_is_seen(stage: Stage) -> None:
    stage.listed("A", "drain flush", "undrain")
    stage.work()
    stage.end("drain")
    left = stage.latest("flush")
    stage.restart()
    assert left.over == "ended"
    (record,) = stage.scheduler.records
    stage.work()
    assert stage.running() == []
    record.confirmed = True
    stage.work()
    assert stage.running() == ["flush"]
    assert stage.latest("flush").attempt == 2
    assert record.state == states.PREPARING
    stage.end("flush")
    assert record.state == states.PREPARED
    assert stage.started() == ["drain", "flush", "flush"], "what had succeeded does not run again"


def test_an_interrupted_recovery_runs_again_at_once(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain open")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain")
    assert stage.running() == ["open"]
    stage.restart()
    stage.work()
    assert stage.running() == ["open"]
    assert stage.latest("open").attempt == 2
    assert stage.started().count("undrain") == 1


def test_a_pause_before_the_next_attempt_is_forgotten_but_not_the_attempts(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.work()
    stage.end("drain")
    stage.scheduler.gone(record, states.FINISHED)
    stage.work()
    stage.end("undrain", "failed")
    stage.restart()
    stage.work()
    assert stage.latest("undrain").attempt == 2
    assert stage.running() == ["undrain"]


def test_what_had_ended_before_its_state_was_kept_is_prepared_when_it_is_taken_up(stage: Stage) -> None:
    """Else it would be approved in a state that knows no approval."""
    record = stage.listed("A", "drain")
    stage.work()
    record.plan.runs[0].end("succeeded")
    stage.journal.save(record.as_row())
    stage.journal.commit()
    assert record.state == states.PREPARING
    stage.restart()
    assert [record.state for record in stage.scheduler.records] == [states.PREPARED]


def test_a_hook_that_was_not_started_for_the_journal_s_sake_is_told(stage: Stage) -> None:
    stage.listed("A", "drain")
    stage.kept.broken = True
    stage.work()
    stage.work()
    assert stage.started() == []
    (line,) = stage.lines("hook-ended")
    assert (line["result"], "journal" in line["reason"]) == ("not-started", True)
    stage.kept.broken = False
    stage.journal.commit()
    stage.work()
    assert stage.started() == ["drain"]


def test_a_damaged_record_is_told_and_the_others_are_taken_up(stage: Stage) -> None:
    stage.listed("A", "drain")
    stage.journal.save(EventRow(1, "b", states.PREPARED, True, {"id": 1, "event": {"EventId": "B"}, "drill": False}))
    stage.journal.commit()
    stage.restart()
    assert [record.event.event_id for record in stage.scheduler.records] == ["A"]
    (line,) = stage.lines("journal-trouble")
    assert line["event_key"] == "b"


def test_births_are_told_apart_even_if_the_clock_stands_still_or_is_set_back(stage: Stage) -> None:
    first = stage.listed("A")
    second = stage.listed("B")
    stage.world.wall_error = -3600.0
    third = stage.listed("C")
    assert first.identifier < second.identifier < third.identifier


# Notifications


def test_notifications_hold_up_nothing_and_are_few_at_a_time(stage: Stage) -> None:
    record = stage.listed("A", "drain")
    record.notify = [hook(f"tell-{number}") for number in range(10)]
    stage.scheduler.notify(record, "decided")
    stage.work()
    assert stage.running("notify") == [f"tell-{number}" for number in range(MOST_NOTIFYING)]
    assert stage.running("prepare") == ["drain"]
    stage.end("drain")
    assert record.state == states.PREPARED
    for number in range(10):
        stage.end(f"tell-{number}", "failed" if number % 2 else "succeeded")
    assert stage.scheduler.idle()
    assert [line["result"] for line in stage.lines("notified")][:2] == ["succeeded", "failed"]
    assert record.state == states.PREPARED


def test_notifications_that_nobody_gets_through_do_not_fill_the_memory(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "MOST_WAITING_NOTICES", 100)
    record = stage.listed("A")
    record.notify = [hook("tell")]
    for _ in range(150):
        stage.scheduler.notify(record, "decided")
    stage.work()
    assert len(stage.running("notify")) == MOST_NOTIFYING
    for _ in range(100):
        for found in stage.world.running():
            found.ends_at = stage.world.now
        stage.work()
    assert stage.scheduler.idle()
    assert len(stage.started()) == 100
    assert sum(line["dropped"] or 0 for line in stage.lines("notified")) == 50


def test_a_hook_learns_how_many_others_are_prepared_for(stage: Stage) -> None:
    told: list[str] = []
    start = stage.executor.start

    def noted(token: Any, command: Any) -> Any:
        told.append(command.environment["FOREWARN_OTHER_EVENTS"])
        return start(token, command)

    stage.executor.start = noted
    stage.listed("A", "one", "undo")
    stage.work()
    stage.listed("B", "two", "undo")
    stage.work()
    assert told == ["0", "1"]
