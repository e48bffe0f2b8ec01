# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks without a journal, and after a crash."""

from __future__ import annotations

from forewarn.runner import event_record as states
from forewarn.runner.journal.writer import EventRow
from tools.worlds.stage import Stage

# Without a journal


def test_nothing_is_prepared_that_could_not_be_recovered(stage: Stage) -> None:
    record = stage.listed("A", "drain", "undrain")
    stage.disk.broken = True
    stage.work()
    stage.work()
    assert stage.started() == []
    assert not record.plan.has_begun()
    (line,) = stage.log.named("hook-ended")
    assert (line["result"], "journal" in line["reason"]) == ("not-started", True)
    stage.disk.broken = False
    stage.journal.commit()
    stage.work()
    assert stage.running() == ["drain"]
    assert stage.latest("drain").attempt == 1


def test_recovery_runs_all_the_same(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.disk.broken = True
    stage.gone(record)
    assert stage.running() == ["undrain"]
    stage.end("undrain")
    assert record.state == states.DONE


# After a crash


def test_interrupted_hook_is_ended_and_repeated(stage: Stage) -> None:
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
    record = stage.prepared("A", "drain", "undrain open")
    stage.gone(record)
    stage.end("undrain")
    assert stage.running() == ["open"]
    stage.restart()
    stage.work()
    assert stage.running() == ["open"]
    assert stage.latest("open").attempt == 2
    assert stage.started().count("undrain") == 1


def test_restart_forgets_pauses_but_not_attempts(stage: Stage) -> None:
    record = stage.prepared("A")
    stage.gone(record)
    stage.end("undrain", "failed")
    stage.restart()
    stage.work()
    assert stage.latest("undrain").attempt == 2
    assert stage.running() == ["undrain"]


def test_hook_ended_before_its_state_was_saved_counts(stage: Stage) -> None:
    """Else it would be approved in a state that knows no approval."""
    record = stage.listed("A", "drain")
    stage.work()
    record.plan.runs[0].end("succeeded")
    stage.journal.save(record.as_row())
    stage.journal.commit()
    assert record.state == states.PREPARING
    stage.restart()
    assert [record.state for record in stage.scheduler.records] == [states.PREPARED]


def test_damaged_record_is_reported_and_others_resume(stage: Stage) -> None:
    stage.listed("A", "drain")
    stage.journal.save(EventRow(1, "b", states.PREPARED, True, {"id": 1, "event": {"EventId": "B"}, "drill": False}))
    stage.journal.commit()
    stage.restart()
    assert [record.event.event_id for record in stage.scheduler.records] == ["A"]
    (line,) = stage.log.named("journal-trouble")
    assert line["event_key"] == "b"


def test_identifiers_grow_although_the_clock_is_set_back(stage: Stage) -> None:
    first = stage.listed("A")
    second = stage.listed("B")
    stage.world.wall_error = -3600.0
    third = stage.listed("C")
    assert first.identifier < second.identifier < third.identifier
