# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recover hooks of several events: when they start, what they wait for, to whom they are left."""

from __future__ import annotations

import pytest
from forewarn.runner import event_record as states
from tools.worlds.stage import Stage, verdict


def test_recovery_waits_until_the_prepare_hook_has_ended(stage: Stage) -> None:
    record = stage.listed("A", "drain flush", "undrain")
    stage.work()
    stage.latest("drain").patience = 1.5
    stage.gone(record, states.CALLED_OFF)
    assert (stage.running(), record.state) == (["drain"], states.RECOVERING)
    stage.work(1.0)
    assert stage.running() == ["drain"]
    stage.work(1.0)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.CANCELLED
    assert stage.scheduler.records == []
    assert [row.open for row in stage.disk.records()] == [False]


def test_end_of_a_prepare_hook_is_awaited(stage: Stage) -> None:
    """There are no recover hooks."""
    record = stage.listed("A", "drain")
    stage.work()
    stage.latest("drain").patience = 1.5
    stage.gone(record)
    assert record.state == states.RECOVERING
    stage.work(2.0)
    assert record.state == states.DONE


def test_failed_recovery_is_retried_with_growing_pauses(stage: Stage) -> None:
    record = stage.prepared("A", "drain", "undrain open")
    stage.gone(record)
    for seconds in (10.0, 60.0, 300.0, 900.0, 3600.0, 3600.0):
        stage.end("undrain", "failed")
        assert stage.scheduler.next_in() == pytest.approx(seconds)
        stage.work(seconds - 0.1)
        assert stage.running() == []
        stage.work(0.2)
        assert stage.running() == ["undrain"]
        assert record.state == states.RECOVERING
    assert [run.hook["run"][1] for run in record.plan.failing_runs()] == ["undrain"], "a person should look at it"
    assert "open" not in stage.started()
    stage.end("undrain")
    assert record.plan.failing_runs() == []
    stage.end("open")
    assert record.state == states.DONE


def test_single_attempt_recovery_waits_for_an_operator(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    for run in record.plan.of_phase("recover"):
        run.hook = {**run.hook, "retry": {"attempts": 1}}
    stage.work()
    stage.end("drain")
    stage.gone(record)
    stage.end("undrain", "failed")
    stage.work(86400.0)
    assert stage.started().count("undrain") == 1
    assert record.state == states.RECOVERING
    stage.restart()
    (record,) = stage.scheduler.records
    stage.work(86400.0)
    assert stage.started().count("undrain") == 1, "nor does a restart run it again"
    record.plan.retry_recovery()
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.DONE


def test_orderly_restarts_are_no_failures_of_a_recovery(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.gone(record)
    for attempt in range(2, 8):
        stage.restart()
        stage.work()
        assert stage.latest("undrain").attempt == attempt
    (record,) = stage.scheduler.records
    stage.end("undrain", "failed")
    assert record.plan.failing_runs() == []
    assert stage.scheduler.next_in() == pytest.approx(10.0)


def test_shared_recovery_is_left_to_the_last_event(stage: Stage) -> None:
    records = [stage.listed(name, f"drain-{name}", "undrain") for name in "ABC"]
    stage.work()
    for name in "ABC":
        stage.end(f"drain-{name}")
    for record in records:
        stage.gone(record)
        assert stage.running() == (["undrain"] if record is records[-1] else [])
    assert [line["event_id"] for line in stage.log.named("hook-left")] == ["A", "B"]
    stage.end("undrain", "failed")
    stage.work(9.0)
    assert stage.running() == [], "a failure counts for all three"
    stage.work(1.1)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.started().count("undrain") == 2
    assert [record.state for record in records] == [states.DONE] * 3


def test_hook_after_a_deferred_recovery_runs_at_once(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain open")
    stage.listed("B", "flush", "undrain")
    stage.work()
    stage.end("drain")
    stage.gone(record)
    assert stage.running("recover") == ["open"]


def test_real_event_defers_no_recovery_to_a_drill(stage: Stage) -> None:
    record = stage.prepared("A")
    drill = stage.listed("B", "drain", "undrain")
    drill.drill = True
    stage.work()
    stage.end("drain")
    stage.gone(record)
    assert (stage.running("recover"), stage.log.named("hook-left")) == ([], [])
    stage.work()
    (line,) = stage.log.named("hook-waits")
    assert line["reason"] == "it would undo what the drill B, which is listed, has prepared"
    stage.gone(drill)
    stage.end("undrain")
    stage.end("undrain")
    assert stage.started().count("undrain") == 2
    assert record.state == states.DONE


def test_recovery_is_not_deferred_to_an_unprepared_event(stage: Stage) -> None:
    record = stage.prepared("A")
    other = stage.listed("B", "drain", "undrain")
    other.confirmed = False
    stage.gone(record)
    other.confirmed = True
    stage.work()
    assert stage.running() == ["undrain"], "and the other one waits until it is undone"
    stage.end("undrain")
    assert stage.running() == ["drain"]
    assert other.state == states.PREPARING


def test_preparation_shared_with_the_next_event_is_kept(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.scheduler.end_event(record, states.FINISHED)
    stage.listed("B", "drain", "undrain")
    stage.work()
    assert stage.running() == ["drain"]
    assert stage.log.named("hook-left")


def test_running_recovery_delays_the_same_preparation(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.gone(record)
    stage.listed("B", "drain", "undrain")
    stage.listed("C", "flush", "reopen")
    stage.work()
    assert stage.running() == ["undrain", "flush"]
    stage.end("undrain", "failed")
    assert sorted(stage.running()) == ["drain", "flush"]
    stage.work(20.0)
    assert stage.started().count("undrain") == 1, "tried again it would undo the other's"
    assert stage.log.named("hook-left")


def test_id_listed_again_during_recovery_is_another_event(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.gone(record)
    again = stage.listed("A", "drain", "undrain")
    assert again.identifier > record.identifier
    stage.work()
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert stage.running() == ["drain"]
    assert (record.state, again.state) == (states.DONE, states.PREPARING)


def test_unannounced_start_recovers_only_marked_rules(stage: Stage) -> None:
    for event_id, when in (("A", "prepared"), ("B", "started")):
        record = stage.scheduler.records.open(stage.event(event_id, None)._replace(event_status="Started"), False)
        record.confirmed = True
        stage.scheduler.plan(record, [verdict("", f"start-{event_id}", recover_when=when)])
        stage.scheduler.note_started(record)
    stage.work()
    assert stage.running() == [], "not before the event has left the list (SE-23)"
    for record in list(stage.scheduler.records):
        stage.gone(record)
    assert stage.running() == ["start-B"]


def test_event_cancelled_before_its_start_recovers_nothing(stage: Stage) -> None:
    record = stage.listed("A", "", "start", recover_when="started")
    stage.work()
    stage.gone(record, states.CALLED_OFF)
    assert stage.started() == []
