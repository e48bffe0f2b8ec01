# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which the hooks of one event run, and what becomes of the others when one fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.policy.decision import APPROVE, HOLD, Verdict
from forewarn.runner.plan import (
    FAILED,
    LEFT,
    PREPARE,
    RECOVER,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Plan,
    Run,
)
from hypothesis import given
from hypothesis import strategies as st


def hook(name: str) -> dict[str, Any]:
    return {"run": [f"/opt/{name}"], "timeout_seconds": 60.0}


def verdict(policy: str = "web", prepare: str = "", recover: str = "", **values: Any) -> Verdict:
    """Return a verdict whose hooks are named by the words of two texts."""
    made = Verdict(policy, APPROVE, "drain", "because", "web.yml:1:1", **values)
    return made._replace(prepare=tuple(map(hook, prepare.split())), recover=tuple(map(hook, recover.split())))


def plan(*verdicts: Verdict) -> Plan:
    made = Plan()
    made.extend(verdicts)
    return made


def named(made: Plan, name: str) -> Run:
    (run,) = (run for run in made.runs if run.hook == hook(name))
    return run


def names(runs: list[Run]) -> list[str]:
    return [run.hook["run"][0].rpartition("/")[2] for run in runs]


def begin(run: Run) -> None:
    run.status = RUNNING
    run.attempts += 1


def finish(run: Run, status: str = SUCCEEDED) -> None:
    begin(run)
    run.end(status, "" if status == SUCCEEDED else "exit code 1")


# Making a plan


def test_each_verdict_that_prepares_is_a_stage_in_the_order_of_the_policies() -> None:
    made = plan(verdict("net", "announce", "withdraw"), verdict("app"), verdict("db", "flush sync", "open"))
    assert [(run.stage, run.phase, names([run])[0]) for run in made.runs] == [
        (0, PREPARE, "announce"),
        (0, RECOVER, "withdraw"),
        (1, PREPARE, "flush"),
        (1, PREPARE, "sync"),
        (1, RECOVER, "open"),
    ]
    assert {run.policy for run in made.runs} == {"net", "db"}


def test_recover_without_prepare_is_no_stage() -> None:
    assert plan(verdict(recover="undrain")).runs == []


def test_the_same_stage_is_planned_once_and_another_one_is_added() -> None:
    made = plan(verdict("app", "drain", "undrain"))
    finish(named(made, "drain"))
    assert not made.extend([verdict("app", "drain", "undrain")])
    assert made.extend([verdict("app", "drain", "undrain"), verdict("db", "flush")])
    assert names(made.runs) == ["drain", "undrain", "flush"]
    assert [run.stage for run in made.runs] == [0, 0, 1]


def test_a_stage_that_differs_in_what_follows_from_a_failure_is_another_one() -> None:
    made = plan(verdict("app", "drain"))
    assert made.extend([verdict("app", "drain", on_failure=APPROVE)])
    assert made.extend([verdict("app", "drain", parallel=True)])
    assert not made.extend([verdict("app", "drain", parallel=True)])
    assert len(made.stages()) == 3


def test_one_call_with_two_equal_verdicts_plans_one_stage() -> None:
    assert len(plan(verdict("app", "drain"), verdict("app", "drain")).stages()) == 1


# Preparing


def test_prepare_hooks_run_one_after_another_and_stages_too() -> None:
    made = plan(verdict("net", "announce settle"), verdict("app", "drain"))
    order = []
    while made.preparation() != SUCCEEDED:
        (due,) = made.due_to_prepare()
        begin(due)
        assert made.due_to_prepare() == [], "nothing beside what runs"
        assert made.preparation() == RUNNING
        due.end(SUCCEEDED)
        order += names([due])
    assert order == ["announce", "settle", "drain"]


def test_parallel_hooks_are_due_together_and_the_next_stage_waits_for_all() -> None:
    made = plan(verdict("net", "left right", parallel=True), verdict("app", "drain"))
    left, right = made.due_to_prepare()
    begin(left)
    assert made.due_to_prepare() == [right], "one that could not start with the other is still due"
    begin(right)
    left.end(SUCCEEDED)
    assert made.due_to_prepare() == []
    right.end(SUCCEEDED)
    assert names(made.due_to_prepare()) == ["drain"]


def test_after_a_failure_the_rest_of_the_stage_is_skipped_and_other_stages_go_on() -> None:
    made = plan(verdict("net", "announce settle"), verdict("app", "drain"))
    finish(named(made, "announce"), FAILED)
    assert names(made.due_to_prepare()) == ["drain"], "a hold may well drain"
    assert named(made, "settle").status == SKIPPED
    assert named(made, "settle").reason
    assert made.preparation() == WAITING
    finish(named(made, "drain"))
    assert made.preparation() == FAILED
    assert made.failure() is named(made, "announce")


def test_a_failure_that_is_to_be_approved_skips_nothing() -> None:
    made = plan(verdict("app", "drain flush", on_failure=APPROVE))
    finish(named(made, "drain"), FAILED)
    assert names(made.due_to_prepare()) == ["flush"]
    assert made.preparation() == WAITING
    finish(named(made, "flush"), FAILED)
    assert made.preparation() == SUCCEEDED


def test_of_two_stages_the_one_that_holds_on_failure_decides() -> None:
    made = plan(verdict("app", "drain", on_failure=APPROVE), verdict("db", "flush"))
    finish(named(made, "drain"), FAILED)
    finish(named(made, "flush"))
    assert made.preparation() == SUCCEEDED
    made = plan(verdict("app", "drain", on_failure=APPROVE), verdict("db", "flush"))
    finish(named(made, "drain"))
    finish(named(made, "flush"), FAILED)
    assert made.preparation() == FAILED


def test_nothing_to_prepare_is_prepared() -> None:
    assert Plan().preparation() == SUCCEEDED
    assert Plan().due_to_prepare() == []
    assert not Plan().begun()
    assert Plan().recovered()


def test_what_was_not_started_is_left_out_when_preparing_stops() -> None:
    made = plan(verdict("app", "drain flush", "undrain"))
    begin(named(made, "drain"))
    made.stop_preparing("the event had started")
    assert [run.status for run in made.runs] == [RUNNING, SKIPPED, WAITING]
    assert named(made, "flush").reason == "the event had started"


# Recovering


def test_only_stages_that_had_begun_are_recovered() -> None:
    made = plan(verdict("net", "announce", "withdraw"), verdict("app", "drain", "undrain"))
    finish(named(made, "announce"), FAILED)
    made.stop_preparing("gone")
    assert [made.begun(), made.begun(0), made.begun(1)] == [True, True, False]
    assert made.start_recovering()
    assert names(made.due_to_recover(0.0)) == ["withdraw"]
    assert named(made, "undrain").status == SKIPPED
    finish(named(made, "withdraw"))
    assert made.recovered()


def test_nothing_begun_leaves_nothing_to_recover() -> None:
    made = plan(verdict("app", "drain", "undrain"))
    made.stop_preparing("gone")
    assert not made.start_recovering()
    assert made.recovered()
    assert made.due_to_recover(0.0) == []


def test_recover_hooks_run_in_order_and_those_of_stages_side_by_side() -> None:
    made = plan(verdict("net", "announce", "settle withdraw"), verdict("app", "drain", "undrain"))
    for run in made.of_phase(PREPARE):
        finish(run)
    assert made.start_recovering()
    assert names(made.due_to_recover(0.0)) == ["settle", "undrain"]
    begin(named(made, "settle"))
    assert names(made.due_to_recover(0.0)) == ["undrain"]
    finish(named(made, "undrain"))
    named(made, "settle").end(SUCCEEDED)
    assert names(made.due_to_recover(0.0)) == ["withdraw"]


def test_a_recovery_that_is_to_be_tried_again_waits_for_its_time_and_holds_up_the_rest_of_its_stage() -> None:
    made = plan(verdict("app", "drain", "undrain open"))
    finish(named(made, "drain"))
    made.start_recovering()
    undrain = named(made, "undrain")
    begin(undrain)
    undrain.status, undrain.retry_at = WAITING, 110.0
    assert made.retry_in(100.0) == 10.0
    assert made.due_to_recover(109.9) == []
    assert made.due_to_recover(110.0) == [undrain]
    assert made.retry_in(120.0) == 0.0
    assert not made.recovered()


def test_a_recovery_that_has_failed_for_good_ends_its_stage() -> None:
    made = plan(verdict("net", "announce", "withdraw close"), verdict("app", "drain", "undrain"))
    for run in made.of_phase(PREPARE):
        finish(run)
    made.start_recovering()
    finish(named(made, "withdraw"), FAILED)
    assert names(made.due_to_recover(0.0)) == ["undrain"]
    assert named(made, "close").status == SKIPPED
    finish(named(made, "undrain"))
    assert made.recovered()


def test_what_is_left_to_another_event_is_done() -> None:
    made = plan(verdict("app", "drain", "undrain open"))
    finish(named(made, "drain"))
    made.start_recovering()
    named(made, "undrain").end(LEFT, "left to event B")
    assert names(made.due_to_recover(0.0)) == ["open"]


# Keeping it


def test_what_ran_when_the_runner_ended_runs_again() -> None:
    made = plan(verdict("app", "drain flush", "undrain"))
    begin(named(made, "drain"))
    named(made, "drain").pid = 4711
    assert made.interrupted() == [named(made, "drain")]
    assert named(made, "drain").status == WAITING
    assert named(made, "drain").attempts == 1, "the hook is told that it is not the first attempt"
    assert named(made, "drain").pid == 4711, "still needed to end what was left over"
    assert made.due_to_prepare() == [named(made, "drain")]
    assert made.begun(), "so it is recovered even if it never runs again"


@pytest.mark.parametrize("missing", ["status", "attempts", "hook", "on_failure", "pid"])
def test_a_damaged_run_is_refused(missing: str) -> None:
    data = plan(verdict("app", "drain")).runs[0].as_json()
    del data[missing]
    with pytest.raises(KeyError):
        Run.of(data)


STATUSES = st.sampled_from([WAITING, RUNNING, SUCCEEDED, FAILED, SKIPPED, LEFT])
VERDICTS = st.builds(
    verdict,
    st.sampled_from(["net", "app"]),
    st.lists(st.sampled_from("abc"), max_size=3).map(" ".join),
    st.lists(st.sampled_from("xyz"), max_size=2).map(" ".join),
    on_failure=st.sampled_from([HOLD, APPROVE]),
    parallel=st.booleans(),
)


@given(st.lists(VERDICTS, max_size=4), st.data())
def test_a_plan_survives_being_written_down(verdicts: list[Verdict], data: st.DataObject) -> None:
    made = plan(*verdicts)
    for run in made.runs:
        run.status = data.draw(STATUSES)
        run.attempts = data.draw(st.integers(0, 3))
        run.retry_at = data.draw(st.none() | st.floats(0, 100))
    again = Plan([Run.of(json.loads(json.dumps(run.as_json()))) for run in made.runs])
    assert [run.as_json() for run in again.runs] == [run.as_json() for run in made.runs]
    assert all(run.retry_at is None for run in again.runs), "it means nothing after a restart"
    assert not again.extend(verdicts), "after a restart nothing is planned anew"


@given(st.lists(VERDICTS, max_size=4), st.data())
def test_however_hooks_end_every_plan_comes_to_its_end(verdicts: list[Verdict], data: st.DataObject) -> None:
    """And prepared is only what has succeeded, or may fail."""
    made = plan(*verdicts)
    started: list[Run] = []
    while True:
        for run in made.due_to_prepare():
            begin(run)
            started.append(run)
        running = made.running(PREPARE)
        if not running:
            break
        stages = {run.stage for run in running}
        assert len(stages) == 1, "one stage at a time"
        assert len(running) == 1 or running[0].parallel
        ended = data.draw(st.sampled_from(running))
        ended.end(data.draw(st.sampled_from([SUCCEEDED, FAILED])))
    assert len(started) == len(set(map(id, started))), "none of them twice"
    careless = all(run.status == SUCCEEDED or run.on_failure == APPROVE for run in made.of_phase(PREPARE))
    assert made.preparation() == (SUCCEEDED if careless else FAILED)
    assert made.start_recovering() == any(run.attempts for run in made.of_phase(PREPARE) if _recovers(made, run.stage))
    while not made.recovered():
        due = made.due_to_recover(0.0)
        assert len({run.stage for run in due}) == len(due), "one after another within a stage"
        for run in due:
            assert made.begun(run.stage)
            finish(run, data.draw(st.sampled_from([SUCCEEDED, FAILED])))
        made.due_to_recover(0.0)


def _recovers(made: Plan, stage: int) -> bool:
    return any(run.stage == stage for run in made.of_phase(RECOVER))
