# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of one event, their order, and the outcome of each.

The stages of the current decision are *wanted*; stages of earlier decisions stay if their preparation had begun, to be
recovered. Stages are prepared one after another, in the order of the policies. Recover hooks run in the order of
their stage, for stages whose preparation had begun, and are tried again until they succeed or a person ends them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...policy.decision import APPROVE, HOLD, Verdict
from .run import (
    FAILED,
    NOTHING_LEFT_TO_DO,
    PREPARE,
    RECOVER,
    RUNNING,
    SKIPPED,
    STARTED,
    SUCCEEDED,
    WAITING,
    Run,
    Stage,
    hook_key,
    retry_limit,
)

# Begins the reason of a recover hook that a person has dealt with.
BY_A_PERSON = "dealt with by a person"


class Plan:
    """The hooks of one event, and their stages."""

    def __init__(self, runs: Sequence[Run] = (), stages: Sequence[Stage] = ()) -> None:
        self.runs = list(runs)
        self.stages = list(stages)

    # Changing it

    def update(self, verdicts: Sequence[Verdict], revision: int = 0) -> bool:
        """Update the plan to the hooks of these verdicts; return whether that changes anything.

        A stage that is no longer wanted is dropped, unless it was begun: then it stays, to be recovered.
        """
        before = [(stage.key, stage.wanted) for stage in self.stages], [(run.status, run.hook) for run in self.runs]
        for stage in self.stages:
            stage.wanted = False
        stages = [self._add_stage(verdict, revision) for verdict in verdicts if verdict.prepare or verdict.recover]
        self._merge_hook_settings(verdicts, revision)
        self.stages = [stage for stage in self.stages if not stage.wanted and stage.begun]
        self.stages += {id(stage): stage for stage in stages}.values()
        used = {id(run) for stage in self.stages for run in (*stage.prepare, *stage.recover)}
        self.runs = [run for run in self.runs if id(run) in used]
        for run in self.of_phase(PREPARE):
            users = [stage for stage in self.stages if stage.wanted and run in stage.prepare]
            if not users and run.status in (WAITING, FAILED):
                run.end(SKIPPED, run.reason or "the policies no longer ask for it")
            elif users and run.status == SKIPPED:
                run.wait(run.reason if run.attempts else "")
            if users:
                run.on_failure = APPROVE if all(stage.on_failure == APPROVE for stage in users) else HOLD
                if run.status == FAILED and not run.exhausted:
                    run.wait(run.reason)
                elif run.status == WAITING and run.failures and run.exhausted:
                    run.end(FAILED, run.reason)
                elif run.status == WAITING and run.attempts and run.once_only:
                    run.requeue(run.reason)  # at a time when it might have run again
        after = [(stage.key, stage.wanted) for stage in self.stages], [(run.status, run.hook) for run in self.runs]
        return before != after

    def add_recovery(self, verdicts: Sequence[Verdict], revision: int = 0) -> bool:
        """Add the recover hooks of these verdicts after an event that has started; return whether any is new."""
        before = len(self.stages)
        started = [verdict._replace(prepare=()) for verdict in verdicts if verdict.recover_when == STARTED]
        for verdict in started:
            if verdict.recover:
                self._add_stage(verdict, revision)
        self._merge_hook_settings([verdict._replace(prepare=()) for verdict in verdicts], revision, with_earlier=True)
        return len(self.stages) != before

    def _add_stage(self, verdict: Verdict, revision: int) -> Stage:
        prepare = [self._run_of(PREPARE, verdict, hook, revision) for hook in verdict.prepare]
        recover = [self._run_of(RECOVER, verdict, hook, revision) for hook in verdict.recover]
        stage = Stage(verdict, revision, _distinct(prepare), _distinct(recover))
        known = next((each for each in self.stages if each.key == stage.key), None)
        if known is None:
            self.stages.append(stage)
            return stage
        known.wanted = True
        return known

    def _run_of(self, phase: str, verdict: Verdict, hook: Mapping[str, Any], revision: int) -> Run:
        """Return the run of a hook, a new one if the plan has none."""
        run = self._find_run(phase, hook, revision)
        if run is None:
            run = Run(phase, verdict.policy, verdict.rule, hook, revision)
            self.runs.append(run)
        return run

    def _find_run(self, phase: str, hook: Mapping[str, Any], revision: int) -> Run | None:
        wanted = hook_key(hook)
        for run in self.runs:
            if run.phase == phase and run.key == wanted and (phase == RECOVER or run.revision == revision):
                return run
        return None

    def _merge_hook_settings(self, verdicts: Sequence[Verdict], revision: int, *, with_earlier: bool = False) -> None:
        """Give each hook the most careful ``timeout`` and ``retry`` of all rules that have it now.

        ``with_earlier``: and of those that had it before.
        """
        settings: dict[int, tuple[Run, list[tuple[Mapping[str, Any], float]]]] = {}
        for verdict in verdicts:
            for phase, hooks in ((PREPARE, verdict.prepare), (RECOVER, verdict.recover)):
                for hook in hooks:
                    run = self._find_run(phase, hook, revision)
                    if run is not None and run.status != SUCCEEDED:
                        limit = retry_limit(hook, accepted=phase == PREPARE and verdict.on_failure == APPROVE)
                        earlier = [(run.hook, retry_limit(run.hook, accepted=False))] if with_earlier else []
                        settings.setdefault(id(run), (run, earlier))[1].append((hook, limit))
        for run, found in settings.values():
            run.hook = _most_careful(found)

    # Reading it

    def of_phase(self, phase: str) -> Iterator[Run]:
        """Return the runs of one phase."""
        return (run for run in self.runs if run.phase == phase)

    def wanted_stages(self) -> list[Stage]:
        """Return the stages of the current decision."""
        return [stage for stage in self.stages if stage.wanted]

    def has_begun(self) -> bool:
        """Return whether a prepare hook has ever been started."""
        return any(run.attempts for run in self.of_phase(PREPARE))

    def active_runs(self, phase: str | None = None) -> list[Run]:
        """Return the hooks that run now, of one phase or of all."""
        return [run for run in self.runs if run.status == RUNNING and phase in (None, run.phase)]

    # Preparing

    def due_to_prepare(self, now: float, left_seconds: float | None = None) -> list[Run]:
        """Return the prepare hooks that may start at the monotonic time ``now``, ``left_seconds`` before NotBefore."""
        due: list[Run] = []
        running = {run.key for run in self.active_runs(PREPARE)}  # perhaps for an earlier content of the event
        for stage in self.wanted_stages():
            if stage.begins_in(left_seconds) > 0.0:
                continue
            following = stage.next_to_prepare()
            due += [run for run in following if run.may_start(now) and run not in due and run.key not in running]
            if any(run.status == RUNNING or not run.failures for run in following):
                break  # the next stage waits for this one, but not for what is tried again
        return due

    def retry_by(self, latest: float) -> None:
        """Let prepare hooks that have failed be tried again by the monotonic time ``latest``."""
        for run in self.of_phase(PREPARE):
            if run.retry_at is not None:
                run.retry_at = min(run.retry_at, latest)

    def enter_stages(self, run: Run, left_seconds: float | None) -> None:
        """Enter the stages whose prepare hook is started ``left_seconds`` before NotBefore."""
        for stage in self.wanted_stages():
            if run in stage.prepare and stage.begins_in(left_seconds) <= 0.0:
                stage.entered = True

    def preparation(self, late: bool = False) -> tuple[str, Run | None]:
        """Return the state of the wanted stages together, as ``Stage.preparation`` does. No hooks: ``succeeded``.

        Hooks of an earlier decision that still run count too.
        """
        running = self.active_runs(PREPARE)
        if running:
            return RUNNING, running[0]
        found = [stage.preparation(late) for stage in self.wanted_stages()]
        return next((item for state in (WAITING, FAILED) for item in found if item[0] == state), (SUCCEEDED, None))

    def stop_preparing(self, reason: str) -> None:
        """Skip the prepare hooks that wait."""
        for run in self.of_phase(PREPARE):
            if run.status == WAITING:
                run.end(SKIPPED, run.reason or reason)

    # Recovering

    def start_recovering(self, had_started: bool = False) -> bool:
        """Skip the recover hooks of stages that need no recovery; return whether any are left to run.

        ``had_started``: the event has started, or may have.
        """
        needed = {id(run) for stage in self.stages if stage.needs_recovery(had_started) for run in stage.recover}
        for run in self.of_phase(RECOVER):
            if run.status == WAITING and id(run) not in needed:
                run.end(SKIPPED, "its preparation had not begun")
        return not self.is_recovered()

    def due_to_recover(self, now: float) -> list[Run]:
        """Return the recover hooks that may start at the monotonic time ``now``."""
        return [run for run in self.heads() if run.may_start(now)]

    def heads(self) -> list[Run]:
        """Return the recover hooks that come next: all before them are done, in each of their stages."""
        queues = [[run for run in stage.recover if run.status not in NOTHING_LEFT_TO_DO] for stage in self.stages]
        heads = _distinct([queue[0] for queue in queues if queue])
        free = [run for run in heads if not any(run in queue[1:] for queue in queues)]
        return free or heads  # two stages that have them in opposite orders must not wait for each other

    def is_recovered(self) -> bool:
        """Return whether no recover hook is left to run."""
        return all(run.status in NOTHING_LEFT_TO_DO for run in self.of_phase(RECOVER))

    def retry_recovery(self) -> list[Run]:
        """Let the recover hooks that have failed, and do not run, run now; return them."""
        waiting = (run for run in self.of_phase(RECOVER) if run.status in (WAITING, FAILED))
        runs = [run for run in waiting if run.failures]
        for run in runs:
            run.failures = 0
            run.wait(run.reason)
        return runs

    def skip_recovery(self, note: str) -> list[Run]:
        """Skip the recover hooks that wait or have failed, since a person has dealt with it; return them."""
        runs = [run for run in self.of_phase(RECOVER) if run.status in (WAITING, FAILED)]
        for run in runs:
            run.end(SKIPPED, f"{BY_A_PERSON}: {note}")
        return runs

    def failing_runs(self) -> list[Run]:
        """Return the recover hooks that need a person: they have failed three times, or are not tried again."""
        return [run for run in self.of_phase(RECOVER) if run.status not in NOTHING_LEFT_TO_DO and run.failing]

    def retry_in(self, now: float, phase: str) -> float | None:
        """Return the seconds until a hook of a phase is to be tried again, None if none is."""
        wanted = {id(run) for stage in self.wanted_stages() for run in stage.prepare}
        runs = self.heads() if phase == RECOVER else [run for run in self.of_phase(phase) if id(run) in wanted]
        pending = (run for run in runs if run.status in (WAITING, FAILED) and not run.exhausted)
        times = [run.retry_at - now for run in pending if run.retry_at is not None]
        return max(0.0, min(times)) if times else None

    # Saving it

    def as_json(self) -> dict[str, Any]:
        """Return ``plan`` and ``stages`` of the record in the journal."""
        place = {id(run): number for number, run in enumerate(self.runs)}
        return {"plan": [run.as_json() for run in self.runs], "stages": [stage.as_json(place) for stage in self.stages]}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Plan:
        """Return what ``as_json`` wrote. Raises KeyError, TypeError, IndexError or ValueError for anything else."""
        runs = [Run.of(run) for run in data["plan"]]
        if "stages" in data:
            return cls(runs, [Stage.of(stage, runs) for stage in data["stages"]])
        # The form of the first version: the number of the stage, on_failure and parallel beside each hook.
        stages: dict[int, dict[str, Any]] = {}
        for number, (run, stored) in enumerate(zip(runs, data["plan"])):
            found = stages.setdefault(
                stored["stage"],
                {
                    "policy": run.policy,
                    "rule": run.rule,
                    "revision": 0,
                    "on_failure": stored["on_failure"],
                    "parallel": stored["parallel"],
                    "within_seconds": None,
                    "recover_when": "prepared",
                    "wanted": True,
                    PREPARE: [],
                    RECOVER: [],
                },
            )
            found[run.phase].append(number)
        return cls(runs, [Stage.of(stage, runs) for stage in stages.values()])

    def requeue_running(self) -> list[Run]:
        """Let the hooks that ran when the runner ended run again; return them, with their ``pid``."""
        runs = self.active_runs()
        for run in runs:
            pid = run.pid, run.pid_started
            run.requeue("the runner ended while it ran")
            run.pid, run.pid_started = pid
        return runs


def _most_careful(found: Sequence[tuple[Mapping[str, Any], float]]) -> Mapping[str, Any]:
    """Return one hook for the same one of several rules, each with its ``retry_limit``.

    It has the longest timeout. ``retry: never`` outweighs any other; else the one that tries most often counts.
    """
    never = (hook for hook, _limit in found if (hook.get("retry") or {}).get("attempts") == 1)
    chosen = next(never, max(found, key=lambda each: each[1])[0])
    longest = max((hook for hook, _limit in found), key=lambda hook: float(hook.get("timeout_seconds", 0.0)))
    return {**chosen, **{key: longest[key] for key in ("timeout_seconds",) if key in longest}}


def _distinct(runs: Sequence[Run]) -> list[Run]:
    return list({id(run): run for run in runs}.values())
