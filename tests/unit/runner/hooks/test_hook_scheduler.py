# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of several events: when they start, and what they wait for."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.runner import event_record as states
from forewarn.runner.hooks.notifications import MOST_NOTIFYING
from forewarn.runner.hooks.running_hooks import CEILING, MOST_RUNNING
from tools.worlds.runner_profiles import hook
from tools.worlds.runner_world import EPOCH
from tools.worlds.stage import Stage, verdict

# Preparing


def test_events_are_prepared_in_parallel_soonest_first(stage: Stage) -> None:
    stage.listed("A", "late", not_before=900)
    stage.listed("B", "never", not_before=None)
    stage.listed("C", "soon", not_before=30)
    stage.work()
    assert stage.started() == ["soon", "late", "never"]


def test_timeout_is_limited_by_not_before(stage: Stage) -> None:
    stage.listed("A", "drain", not_before=900)
    stage.listed("B", "hurry", not_before=20)
    stage.work()
    stage.work()
    reported = [line["timeout_seconds"] for line in stage.log.named("hook-started")]
    assert reported == [17.0, 30.0]
    assert stage.scheduler.next_in() == pytest.approx(17.0)
    stage.world.clock.advance(17.0)
    stage.work()
    asked = [entry.at for entry in stage.world.ledger if entry.kind == "asked"]
    assert asked == [pytest.approx(17.0)]


def test_hook_without_time_left_is_a_failure(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain", not_before=3.5)
    stage.work()
    stage.work()
    assert stage.started() == []
    assert record.state == states.FAILED
    assert "no time left" in record.obstacle
    stage.gone(record)
    assert stage.started() == [], "and what was never prepared is not recovered"
    assert record.state == states.DONE


def test_unconfirmed_event_is_not_prepared(stage: Stage) -> None:
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


def test_pending_retries_do_not_cause_a_busy_loop(stage: Stage) -> None:
    """With all places taken nothing can start, so nothing is to be waited for but the end of a hook."""
    record = stage.prepared("A")
    stage.gone(record)
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


def test_program_that_cannot_start_is_a_failed_attempt(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.world.not_startable = True
    stage.work()
    stage.work()
    assert record.state == states.PREPARING
    assert (record.plan.runs[0].attempts, record.plan.runs[0].failures) == (1, 1)
    stage.gone(record)
    assert stage.running() == ["undrain"], "half a drain may have happened: nobody knows"


def test_refused_hook_is_a_failure_with_a_reason(stage: Stage) -> None:
    record = stage.scheduler.records.open(stage.event("A"), False)
    record.confirmed = True
    missing = {"run": ["/nonexistent/drain"], "timeout_seconds": 60.0}
    stage.scheduler.plan(record, [verdict("")._replace(prepare=(missing,))])
    stage.work()
    assert record.state == states.PREPARING, "it is tried again: the program may be there by then"
    (line,) = stage.log.named("hook-ended")
    assert line["result"] == "not-started"
    assert "/nonexistent/drain" in line["reason"]


# Content, retries, and what is due first


def test_a_hook_of_two_rules_runs_once(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.scheduler.plan(record, [verdict("drain", "undrain")._replace(rule="renamed", policy="other")])
    stage.scheduler.plan(record, [verdict("drain flush", "undrain")._replace(rule="late")])
    stage.work()
    assert stage.running() == ["flush"]
    stage.end("flush")
    stage.gone(record)
    stage.end("undrain")
    assert stage.started() == ["drain", "flush", "undrain"]


def test_changed_content_restarts_the_preparation(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain")
    stage.work()
    stage.end("drain")
    changed = record.event._replace(event_type="Redeploy")
    assert record.update_content(changed)
    record.event = changed
    stage.scheduler.reset_preparation(record)
    stage.scheduler.plan(record, [verdict("drain", "undrain")])
    stage.work()
    assert stage.running() == ["drain"], "flush is not wanted any more"
    assert stage.latest("drain").attempt == 1
    stage.end("drain")
    assert record.state == states.PREPARED
    stage.gone(record)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.started() == ["drain", "flush", "drain", "undrain"]


def test_failed_prepare_hook_is_retried_before_not_before(stage: Stage) -> None:
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


def test_earlier_not_before_ends_a_hook_in_time(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=900.0)
    stage.work()
    assert stage.latest("drain").timeout_at == 30.0
    record.event = record.event._replace(not_before=datetime.fromtimestamp(EPOCH + 20.0, timezone.utc))
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


def test_failed_preparation_resumes_when_time_returns(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain", not_before=100.0)
    stage.world.wall_error = 3600.0
    stage.work()
    assert (record.state, stage.started()) == (states.FAILED, [])
    stage.world.wall_error = 0.0
    stage.work()
    assert stage.running() == ["drain"]
    stage.end("drain")
    assert record.state == states.PREPARED


def test_single_attempt_hook_is_not_repeated_after_crash(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    record.plan.runs[0].hook = {**record.plan.runs[0].hook, "retry": {"attempts": 1}}
    stage.work()
    stage.restart()
    (record,) = stage.scheduler.records
    record.confirmed = True
    stage.work()
    assert (record.state, stage.started()) == (states.FAILED, ["drain"])
    stage.gone(record)
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


def test_urgent_hook_starts_beside_all_later_ones(stage: Stage) -> None:
    stage.listed("A", " ".join(f"slow-{number}" for number in range(20)), parallel=True, not_before=600.0)
    stage.work()
    assert len(stage.running()) == MOST_RUNNING
    stage.listed("B", "preempted", not_before=30.0)
    stage.work()
    assert "preempted" in stage.running()


def test_urgent_hook_replaces_the_latest_at_the_ceiling(stage: Stage) -> None:
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


def test_recovery_yields_to_a_preparation_without_time(stage: Stage) -> None:
    earlier = stage.prepared("A")
    stage.gone(earlier)
    assert stage.running() == ["undrain"]
    stage.listed("B", "drain-quickly", "undrain", not_before=30.0)
    stage.work()
    stage.work(0.1)
    assert stage.running() == ["drain-quickly"]
    assert stage.log.named("hook-left"), "the recovery is due again when B is over"
    assert all(run.failures == 0 for run in earlier.plan.runs)


def test_recovery_that_leaves_time_is_awaited(stage: Stage) -> None:
    earlier = stage.prepared("A")
    stage.gone(earlier)
    record = stage.listed("B", "drain-slowly", "undrain", not_before=900.0)
    stage.work()
    assert stage.running() == ["undrain"]
    assert "undrain" in record.obstacle
    assert "event A" in record.obstacle


# Notifications


def test_notifications_block_nothing_and_are_few(stage: Stage) -> None:
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
    assert [line["result"] for line in stage.log.named("notified")][:2] == ["succeeded", "failed"]
    assert record.state == states.PREPARED


def test_hook_learns_the_number_of_other_events(stage: Stage) -> None:
    reported: list[str] = []
    start = stage.executor.start

    def noted(token: Any, command: Any) -> Any:
        reported.append(command.environment["FOREWARN_OTHER_EVENTS"])
        return start(token, command)

    stage.executor.start = noted
    stage.listed("A", "one", "undo")
    stage.work()
    stage.listed("B", "two", "undo")
    stage.work()
    assert reported == ["0", "1"]
