# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which the hooks of one event run, and what happens to the others when one fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.policy.decision import APPROVE, HOLD, Verdict
from forewarn.runner.hooks.plan import Plan
from forewarn.runner.hooks.run import FAILED, LEFT, PREPARE, RECOVER, RUNNING, SKIPPED, SUCCEEDED, WAITING, Run
from hypothesis import given
from hypothesis import strategies as st


def hook(name: str) -> dict[str, Any]:
    return {"run": [f"/opt/{name}"], "timeout_seconds": 60.0}


def verdict(policy: str = "web", prepare: str = "", recover: str = "", **values: Any) -> Verdict:
    """Return a verdict; the words of two texts name its hooks."""
    made = Verdict(policy, APPROVE, "drain", "because", "web.yml:1:1", **values)
    return made._replace(prepare=tuple(map(hook, prepare.split())), recover=tuple(map(hook, recover.split())))


def plan(*verdicts: Verdict) -> Plan:
    made = Plan()
    made.update(verdicts)
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


def fail(run: Run, now: float = 0.0) -> None:
    begin(run)
    run.fail("exit code 1", now)


def recovering(*verdicts: Verdict) -> Plan:
    """Return a plan whose prepare hooks have succeeded, and which recovers."""
    made = plan(*verdicts)
    for run in made.of_phase(PREPARE):
        finish(run)
    assert made.start_recovering()
    return made


# Making a plan


def stages(made: Plan) -> list[tuple[list[str], list[str]]]:
    """Return the names of each stage's prepare and recover hooks."""
    return [(names(stage.prepare), names(stage.recover)) for stage in made.wanted_stages()]


def test_each_verdict_with_hooks_is_a_stage() -> None:
    made = plan(verdict("net", "announce", "withdraw"), verdict("app"), verdict("db", "flush sync", "open"))
    assert stages(made) == [(["announce"], ["withdraw"]), (["flush", "sync"], ["open"])]
    assert {run.policy for run in made.runs} == {"net", "db"}


def test_equal_stage_is_planned_once() -> None:
    made = plan(verdict("app", "drain", "undrain"))
    finish(named(made, "drain"))
    assert not made.update([verdict("app", "drain", "undrain")])
    assert made.update([verdict("app", "drain", "undrain"), verdict("db", "flush")])
    assert names(made.runs) == ["drain", "undrain", "flush"]
    assert stages(made) == [(["drain"], ["undrain"]), (["flush"], [])]


@pytest.mark.parametrize("other", [{"rule": "renamed"}, {"policy": "other"}, {"reason": "another"}], ids=str)
def test_hook_identity_does_not_depend_on_the_rule(other: dict[str, Any]) -> None:
    made = plan(verdict("app", "drain", "undrain"))
    finish(named(made, "drain"))
    assert not made.update([verdict("app", "drain", "undrain")._replace(**other)])
    assert made.preparation()[0] == SUCCEEDED


def test_another_timeout_or_retry_makes_no_other_hook() -> None:
    made = plan(verdict("app", "drain flush"))
    finish(named(made, "drain"))
    other = [{**hook(name), "timeout_seconds": 5.0, "retry": {"attempts": 3}} for name in ("drain", "flush")]
    made.update([verdict("app")._replace(prepare=tuple(other))])
    assert len(made.runs) == 2
    assert [run.hook["timeout_seconds"] for run in made.runs] == [60.0, 5.0], "what runs later has the new one"


def test_two_policies_that_share_hooks_run_them_once() -> None:
    made = plan(verdict("app", "drain flush", "undrain"), verdict("db", "flush drain", "undrain"))
    assert names(made.runs) == ["drain", "flush", "undrain"]
    assert stages(made) == [(["drain", "flush"], ["undrain"]), (["flush", "drain"], ["undrain"])]


def test_unrequested_hook_is_dropped_unless_begun() -> None:
    made = plan(verdict("app", "drain", "undrain"), verdict("db", "flush", "open"))
    finish(named(made, "drain"))
    made.update([])
    assert names(made.runs) == ["drain", "undrain"]
    assert made.preparation()[0] == SUCCEEDED, "nothing is asked for"
    made.stop_preparing("gone")
    made.start_recovering()
    assert names(made.due_to_recover(0.0)) == ["undrain"]


def test_what_is_asked_for_again_goes_on() -> None:
    made = plan(verdict("app", "drain flush"))
    finish(named(made, "drain"))
    made.update([])
    assert named(made, "flush").status == SKIPPED
    made.update([verdict("app", "drain flush")])
    assert names(made.due_to_prepare(0.0)) == ["flush"]


# Preparing


def test_prepare_hooks_and_stages_run_in_sequence() -> None:
    made = plan(verdict("net", "announce settle"), verdict("app", "drain"))
    order = []
    while made.preparation()[0] != SUCCEEDED:
        (due,) = made.due_to_prepare(0.0)
        begin(due)
        assert made.due_to_prepare(0.0) == [], "nothing beside what runs"
        assert made.preparation()[0] == RUNNING
        due.end(SUCCEEDED)
        order += names([due])
    assert order == ["announce", "settle", "drain"]


def test_parallel_hooks_are_due_together() -> None:
    made = plan(verdict("net", "left right", parallel=True), verdict("app", "drain"))
    left, right = made.due_to_prepare(0.0)
    begin(left)
    assert made.due_to_prepare(0.0) == [right], "one that could not start with the other is still due"
    begin(right)
    left.end(SUCCEEDED)
    assert made.due_to_prepare(0.0) == []
    right.end(SUCCEEDED)
    assert names(made.due_to_prepare(0.0)) == ["drain"]


def test_failed_stage_does_not_stop_others() -> None:
    made = plan(verdict("net", "announce settle"), verdict("app", "drain"))
    finish(named(made, "announce"), FAILED)
    assert names(made.due_to_prepare(0.0)) == ["drain"], "a hold may well drain"
    assert made.preparation()[0] == WAITING
    finish(named(made, "drain"))
    assert made.preparation() == (FAILED, named(made, "announce"))


def test_retry_delays_only_its_own_stage() -> None:
    made = plan(verdict("net", "announce settle"), verdict("app", "drain"))
    announce = named(made, "announce")
    fail(announce, 100.0)
    assert names(made.due_to_prepare(100.0)) == ["drain"]
    assert names(made.due_to_prepare(101.0)) == ["announce", "drain"]
    finish(named(made, "drain"))
    assert made.preparation() == (WAITING, announce)
    finish(announce)
    assert names(made.due_to_prepare(101.0)) == ["settle"]


def test_failure_with_on_failure_approve_ends_nothing() -> None:
    made = plan(verdict("app", "drain flush", on_failure=APPROVE))
    drain = named(made, "drain")
    fail(drain)
    assert drain.status == FAILED, "its failure is accepted: it is not tried again"
    assert names(made.due_to_prepare(0.0)) == ["flush"]
    assert made.preparation()[0] == WAITING
    finish(named(made, "flush"), FAILED)
    assert made.preparation()[0] == SUCCEEDED


@pytest.mark.parametrize(
    ("retry", "pauses"),
    [
        (None, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        ({"attempts": 3}, [1.0, 2.0]),
        ({"attempts": 1}, []),
        ({"delay_seconds": 5.0, "max_delay_seconds": 15.0}, [5.0, 10.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0]),
        ({"attempts": 4, "delay_seconds": 90.0}, [90.0, 90.0, 90.0]),
    ],
    ids=str,
)
def test_prepare_hook_is_retried_with_its_pauses(retry: dict[str, float] | None, pauses: list[float]) -> None:
    written = hook("drain") if retry is None else {**hook("drain"), "retry": retry}
    made = plan(verdict("app")._replace(prepare=(written,)))
    (run,) = made.runs
    found: list[float] = []
    while run.status == WAITING and len(found) < 8:
        fail(run, 1000.0)
        if run.retry_at is not None:
            found.append(run.retry_at - 1000.0)
    assert found == pauses


def test_on_failure_approve_retries_where_configured() -> None:
    made = plan(verdict("app", on_failure=APPROVE)._replace(prepare=({**hook("drain"), "retry": {"attempts": 2}},)))
    (run,) = made.runs
    fail(run)
    assert made.preparation()[0] == WAITING
    fail(run, 1.0)
    assert made.preparation()[0] == SUCCEEDED


def test_stage_that_holds_on_failure_decides() -> None:
    made = plan(verdict("app", "drain", on_failure=APPROVE), verdict("db", "flush"))
    finish(named(made, "drain"), FAILED)
    finish(named(made, "flush"))
    assert made.preparation()[0] == SUCCEEDED
    made = plan(verdict("app", "drain", on_failure=APPROVE), verdict("db", "flush"))
    finish(named(made, "drain"))
    finish(named(made, "flush"), FAILED)
    assert made.preparation()[0] == FAILED


def test_hook_needed_by_one_stage_is_required() -> None:
    made = plan(verdict("app", "drain", on_failure=APPROVE), verdict("db", "drain"))
    (run,) = made.runs
    fail(run)
    assert run.status == WAITING
    assert made.preparation()[0] == WAITING


def test_nothing_to_prepare_is_prepared() -> None:
    assert Plan().preparation()[0] == SUCCEEDED
    assert Plan().due_to_prepare(0.0) == []
    assert not Plan().has_begun()
    assert Plan().is_recovered()


def test_unstarted_hooks_are_skipped_when_preparing_stops() -> None:
    made = plan(verdict("app", "drain flush", "undrain"))
    begin(named(made, "drain"))
    made.stop_preparing("the event had started")
    assert [run.status for run in made.runs] == [RUNNING, SKIPPED, WAITING]
    assert named(made, "flush").reason == "the event had started"


def test_stage_waits_for_prepare_within() -> None:
    made = plan(verdict("app", "drain", prepare_within_seconds=900.0), verdict("db", "flush"))
    assert names(made.due_to_prepare(0.0, 1000.0)) == ["flush"]
    assert names(made.due_to_prepare(0.0, 900.0)) == ["drain"]
    assert names(made.due_to_prepare(0.0, None)) == ["drain"], "where nobody knows when, it is now"
    finish(named(made, "flush"))
    assert made.preparation()[0] == WAITING, "so nothing is approved before"


# Recovering


def test_only_stages_that_had_begun_are_recovered() -> None:
    made = plan(verdict("net", "announce", "withdraw"), verdict("app", "drain", "undrain"))
    finish(named(made, "announce"), FAILED)
    made.stop_preparing("gone")
    assert [stage.begun for stage in made.stages] == [True, False]
    assert made.start_recovering()
    assert names(made.due_to_recover(0.0)) == ["withdraw"]
    assert named(made, "undrain").status == SKIPPED
    finish(named(made, "withdraw"))
    assert made.is_recovered()


def test_recover_hooks_run_in_order_and_stages_parallel() -> None:
    made = recovering(verdict("net", "announce", "settle withdraw"), verdict("app", "drain", "undrain"))
    assert names(made.due_to_recover(0.0)) == ["settle", "undrain"]
    begin(named(made, "settle"))
    assert names(made.due_to_recover(0.0)) == ["undrain"]
    finish(named(made, "undrain"))
    named(made, "settle").end(SUCCEEDED)
    assert names(made.due_to_recover(0.0)) == ["withdraw"]


def test_shared_recover_hook_waits_for_predecessors_everywhere() -> None:
    made = recovering(verdict("net", "announce", "settle open"), verdict("app", "drain", "open"))
    assert names(made.due_to_recover(0.0)) == ["settle"]
    finish(named(made, "settle"))
    assert names(made.due_to_recover(0.0)) == ["open"]


def test_opposite_recover_orders_do_not_deadlock() -> None:
    made = recovering(verdict("net", "announce", "a b"), verdict("app", "drain", "b a"))
    while not made.is_recovered():
        due = made.due_to_recover(0.0)
        assert due
        for run in due:
            finish(run)


def test_circular_recover_orders_wake_the_runner_when_due() -> None:
    made = recovering(verdict("net", "announce", "a b"), verdict("app", "drain", "b c"), verdict("db", "flush", "c a"))
    finish(named(made, "a"))
    for name, now in (("c", 0.0), ("b", 5.0)):
        fail(named(made, name), now)
    wait = made.retry_in(5.0, RECOVER)
    assert wait is not None
    assert made.due_to_recover(5.0 + wait) == [named(made, "b")], "and not when c could run, which waits for b"


# Keeping it


@pytest.mark.parametrize("missing", ["status", "attempts", "hook", "on_failure", "pid"])
def test_a_damaged_run_is_refused(missing: str) -> None:
    data = plan(verdict("app", "drain")).runs[0].as_json()
    del data[missing]
    with pytest.raises(KeyError):
        Run.of(data)


def test_a_plan_of_the_first_version_is_understood() -> None:
    """As forewarn 0.1.0 wrote it."""
    common: dict[str, Any] = {"policy": "app", "rule": "drain", "on_failure": "hold", "parallel": False, "pid": None}
    common.update(pid_started=None, seconds=1.5, exit_code=0, reason="")
    kept = [
        {"phase": "prepare", "stage": 0, "hook": hook("drain"), "status": "succeeded", "attempts": 1, **common},
        {"phase": "recover", "stage": 0, "hook": hook("undrain"), "status": "waiting", "attempts": 0, **common},
        {"phase": "prepare", "stage": 1, "hook": hook("flush"), "status": "waiting", "attempts": 0, **common},
        {"phase": "recover", "stage": 1, "hook": hook("open"), "status": "waiting", "attempts": 0, **common},
    ]
    made = Plan.of({"plan": kept})
    assert stages(made) == [(["drain"], ["undrain"]), (["flush"], ["open"])]
    made.stop_preparing("gone")
    made.start_recovering()
    assert names(made.due_to_recover(0.0)) == ["undrain"]


STATUSES = st.sampled_from([WAITING, RUNNING, SUCCEEDED, FAILED, SKIPPED, LEFT])
VERDICTS = st.builds(
    verdict,
    st.sampled_from(["net", "app"]),
    st.lists(st.sampled_from("abc"), max_size=3).map(" ".join),
    st.lists(st.sampled_from("xyz"), max_size=2).map(" ".join),
    on_failure=st.sampled_from([HOLD, APPROVE]),
    parallel=st.booleans(),
    prepare_within_seconds=st.none() | st.just(900.0),
    recover_when=st.sampled_from(["prepared", "started"]),
)


@given(st.lists(VERDICTS, max_size=4), st.lists(VERDICTS, max_size=2), st.data())
def test_a_plan_survives_being_written_down(verdicts: list[Verdict], later: list[Verdict], data: st.DataObject) -> None:
    made = plan(*verdicts)
    for run in made.runs:
        run.status = data.draw(STATUSES)
        run.attempts = data.draw(st.integers(0, 3))
        run.failures = data.draw(st.integers(0, 3))
        run.retry_at = data.draw(st.none() | st.floats(0, 100))
    made.update(later, data.draw(st.integers(0, 2)))
    again = Plan.of(json.loads(json.dumps(made.as_json())))
    assert again.as_json() == made.as_json()
    assert all(run.retry_at is None for run in again.runs), "it means nothing after a restart"


@given(st.lists(VERDICTS, max_size=4), st.data())
def test_every_plan_ends_however_hooks_end(verdicts: list[Verdict], data: st.DataObject) -> None:
    """And prepared is only what has succeeded, or may fail; no hook runs twice but after a failure."""
    made = plan(*verdicts)
    now = 0.0
    starts = 0
    while starts < 60:
        due = made.due_to_prepare(now)
        for run in due:
            assert run.status == WAITING
            begin(run)
            starts += 1
        running = made.active_runs(PREPARE)
        if not running:
            wait = made.retry_in(now, PREPARE)
            if wait is None:
                break
            now += wait
            continue
        ended = data.draw(st.sampled_from(running))
        if starts > 40 or data.draw(st.booleans()):
            ended.end(SUCCEEDED)
        else:
            ended.fail("exit code 1", now)
    for stage in made.wanted_stages():
        done = all(run.status == SUCCEEDED for run in stage.prepare)
        accepted = stage.on_failure == APPROVE and all(run.status in (SUCCEEDED, FAILED) for run in stage.prepare)
        assert (stage.preparation()[0] == SUCCEEDED) == (done or accepted)
    assert made.preparation()[0] == SUCCEEDED
    made.start_recovering()
    owed = {run.key for stage in made.stages if stage.prepare for run in stage.recover}
    while not made.is_recovered():
        wait = made.retry_in(now, RECOVER)
        now += wait or 0.0
        due = made.due_to_recover(now)
        assert due
        for run in due:
            begin(run)
            assert run.key in owed
            if data.draw(st.booleans()):
                run.end(SUCCEEDED)
            else:
                run.fail("exit code 1", now)
