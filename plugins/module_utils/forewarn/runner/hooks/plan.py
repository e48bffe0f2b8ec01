# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of one event: which there are, in which order they run, and the outcome of each.

The stages that the decision asks for now are *wanted*; stages of earlier decisions stay if their preparation had begun,
to be recovered. Stages are prepared one after another, in the order of the policies. Recover hooks run in the order of
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

# How the reason begins why a recover hook is left out that a person has seen to.
BY_A_PERSON = "dealt with by a person"


class Plan:
    """The hooks of one event, and the stages that they make up."""

    def __init__(self, runs: Sequence[Run] = (), stages: Sequence[Stage] = ()) -> None:
        self.runs = list(runs)
        self.stages = list(stages)

    # Making it

    def update(self, verdicts: Sequence[Verdict], revision: int = 0) -> bool:
        """Let the plan hold what the verdicts ask for now; return whether that changes anything.

        Verdicts that ask for no hooks count for nothing. What is no longer wanted and was never begun is dropped;
        what was begun stays, to be recovered.
        """
        before = [(stage.key, stage.wanted) for stage in self.stages], [(run.status, run.hook) for run in self.runs]
        for stage in self.stages:
            stage.wanted = False
        asked = [self._add_stage(verdict, revision) for verdict in verdicts if verdict.prepare or verdict.recover]
        self._merge_hook_settings(verdicts, revision)
        self.stages = [stage for stage in self.stages if not stage.wanted and stage.begun]
        self.stages += {id(stage): stage for stage in asked}.values()
        kept = {id(run) for stage in self.stages for run in (*stage.prepare, *stage.recover)}
        self.runs = [run for run in self.runs if id(run) in kept]
        for run in self.of_phase(PREPARE):
            asking = [stage for stage in self.stages if stage.wanted and run in stage.prepare]
            if not asking and run.status in (WAITING, FAILED):
                run.end(SKIPPED, run.reason or "the policies no longer ask for it")
            elif asking and run.status == SKIPPED:
                run.wait(run.reason if run.attempts else "")
            if asking:
                run.on_failure = APPROVE if all(stage.on_failure == APPROVE for stage in asking) else HOLD
                if run.status == FAILED and not run.exhausted:
                    run.wait(run.reason)
                elif run.status == WAITING and run.failures and run.exhausted:
                    run.end(FAILED, run.reason)
                elif run.status == WAITING and run.attempts and run.once_only:
                    run.requeue(run.reason)  # at a time when it might have run again
        after = [(stage.key, stage.wanted) for stage in self.stages], [(run.status, run.hook) for run in self.runs]
        return before != after

    def add_recovery(self, verdicts: Sequence[Verdict], revision: int = 0) -> bool:
        """Add what the verdicts recover after an event that has started already; return whether that changes anything.

        Nothing is prepared then, and what was planned before stays.
        """
        before = len(self.stages)
        asking = [verdict._replace(prepare=()) for verdict in verdicts if verdict.recover_when == STARTED]
        for verdict in asking:
            if verdict.recover:
                self._add_stage(verdict, revision)
        self._merge_hook_settings([verdict._replace(prepare=()) for verdict in verdicts], revision, owed=True)
        return len(self.stages) != before

    def _add_stage(self, verdict: Verdict, revision: int) -> Stage:
        prepare = [self._run_of(PREPARE, verdict, hook, revision) for hook in verdict.prepare]
        recover = [self._run_of(RECOVER, verdict, hook, revision) for hook in verdict.recover]
        made = Stage(verdict, revision, _distinct(prepare), _distinct(recover))
        known = next((stage for stage in self.stages if stage.key == made.key), None)
        if known is None:
            self.stages.append(made)
            return made
        known.wanted = True
        return known

    def _run_of(self, phase: str, verdict: Verdict, hook: Mapping[str, Any], revision: int) -> Run:
        """Return the hook's run: the one there is, if these words were asked for before."""
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

    def _merge_hook_settings(self, verdicts: Sequence[Verdict], revision: int, *, owed: bool = False) -> None:
        """Let each hook have the most careful ``timeout`` and ``retry`` of the rules that ask for it now.

        ``owed``: and of those that asked before.
        """
        asked: dict[int, tuple[Run, list[tuple[Mapping[str, Any], float]]]] = {}
        for verdict in verdicts:
            for phase, hooks in ((PREPARE, verdict.prepare), (RECOVER, verdict.recover)):
                for hook in hooks:
                    run = self._find_run(phase, hook, revision)
                    if run is not None and run.status != SUCCEEDED:
                        limit = retry_limit(hook, accepted=phase == PREPARE and verdict.on_failure == APPROVE)
                        earlier = [(run.hook, retry_limit(run.hook, accepted=False))] if owed else []
                        asked.setdefault(id(run), (run, earlier))[1].append((hook, limit))
        for run, found in asked.values():
            run.hook = _most_careful(found)

    # Looking at it

    def of_phase(self, phase: str) -> Iterator[Run]:
        """Yield the runs of one phase."""
        return (run for run in self.runs if run.phase == phase)

    def wanted_stages(self) -> list[Stage]:
        """Return the stages that the decision asks for now."""
        return [stage for stage in self.stages if stage.wanted]

    def has_begun(self) -> bool:
        """Return whether a prepare hook has ever been started."""
        return any(run.attempts for run in self.of_phase(PREPARE))

    def active_runs(self, phase: str | None = None) -> list[Run]:
        """Return what runs now."""
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
        """Try prepare hooks that have failed again by the monotonic time ``latest``."""
        for run in self.of_phase(PREPARE):
            if run.retry_at is not None:
                run.retry_at = min(run.retry_at, latest)

    def enter_stages(self, run: Run, left_seconds: float | None) -> None:
        """Note that a prepare hook is started ``left_seconds`` before NotBefore."""
        for stage in self.wanted_stages():
            if run in stage.prepare and stage.begins_in(left_seconds) <= 0.0:
                stage.entered = True

    def preparation(self, late: bool = False) -> tuple[str, Run | None]:
        """Return how far the wanted stages are, as ``Stage.preparation`` does. No hooks: ``succeeded``.

        What runs for an earlier decision is waited for as well.
        """
        running = self.active_runs(PREPARE)
        if running:
            return RUNNING, running[0]
        found = [stage.preparation(late) for stage in self.wanted_stages()]
        return next((item for state in (WAITING, FAILED) for item in found if item[0] == state), (SUCCEEDED, None))

    def stop_preparing(self, reason: str) -> None:
        """Leave out the prepare hooks that do not run."""
        for run in self.of_phase(PREPARE):
            if run.status == WAITING:
                run.end(SKIPPED, run.reason or reason)

    # Recovering

    def start_recovering(self, had_started: bool = False) -> bool:
        """Leave out the recover hooks of stages that need none; return whether any are left to run.

        ``had_started``: the event has started, or may have.
        """
        owed = {id(run) for stage in self.stages if stage.needs_recovery(had_started) for run in stage.recover}
        for run in self.of_phase(RECOVER):
            if run.status == WAITING and id(run) not in owed:
                run.end(SKIPPED, "its preparation had not begun")
        return not self.is_recovered()

    def due_to_recover(self, now: float) -> list[Run]:
        """Return the recover hooks that may start at the monotonic time ``now``."""
        return [run for run in self.heads() if run.may_start(now)]

    def heads(self) -> list[Run]:
        """Return the recover hooks that come next: nothing before them, in any stage that has them, is left to do."""
        queues = [[run for run in stage.recover if run.status not in NOTHING_LEFT_TO_DO] for stage in self.stages]
        heads = _distinct([queue[0] for queue in queues if queue])
        free = [run for run in heads if not any(run in queue[1:] for queue in queues)]
        return free or heads  # two stages that have them in opposite orders must not wait for each other

    def is_recovered(self) -> bool:
        """Return whether no recover hook is left to run."""
        return all(run.status in NOTHING_LEFT_TO_DO for run in self.of_phase(RECOVER))

    def retry_recovery(self) -> list[Run]:
        """Let the recover hooks that have failed, and do not run, run again now; return them."""
        waiting = (run for run in self.of_phase(RECOVER) if run.status in (WAITING, FAILED))
        runs = [run for run in waiting if run.failures]
        for run in runs:
            run.failures = 0
            run.wait(run.reason)
        return runs

    def skip_recovery(self, note: str) -> list[Run]:
        """Leave out the recover hooks that are left and do not run, since a person has seen to it; return them."""
        runs = [run for run in self.of_phase(RECOVER) if run.status in (WAITING, FAILED)]
        for run in runs:
            run.end(SKIPPED, f"{BY_A_PERSON}: {note}")
        return runs

    def failing_runs(self) -> list[Run]:
        """Return the recover hooks that a person should look at: they have failed three times, or are not retried."""
        return [run for run in self.of_phase(RECOVER) if run.status not in NOTHING_LEFT_TO_DO and run.failing]

    def retry_in(self, now: float, phase: str) -> float | None:
        """Return the seconds until a hook of a phase is to be tried again, None if none is."""
        asked = {id(run) for stage in self.wanted_stages() for run in stage.prepare}
        runs = self.heads() if phase == RECOVER else [run for run in self.of_phase(phase) if id(run) in asked]
        pending = (run for run in runs if run.status in (WAITING, FAILED) and not run.exhausted)
        times = [run.retry_at - now for run in pending if run.retry_at is not None]
        return max(0.0, min(times)) if times else None

    # Keeping it

    def as_json(self) -> dict[str, Any]:
        """Return ``plan`` and ``stages`` as the journal keeps them."""
        place = {id(run): number for number, run in enumerate(self.runs)}
        return {
            "plan": [run.as_json() for run in self.runs],
            "stages": [stage.as_json(place) for stage in self.stages],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Plan:
        """Return what ``as_json`` wrote. Raises KeyError, TypeError, IndexError or ValueError for anything else."""
        runs = [Run.of(run) for run in data["plan"]]
        if "stages" in data:
            return cls(runs, [Stage.of(stage, runs) for stage in data["stages"]])
        # As the first version kept it: the number of the stage, on_failure and parallel beside each hook.
        stages: dict[int, dict[str, Any]] = {}
        for number, (run, kept) in enumerate(zip(runs, data["plan"])):
            found = stages.setdefault(
                kept["stage"],
                {
                    "policy": run.policy,
                    "rule": run.rule,
                    "revision": 0,
                    "on_failure": kept["on_failure"],
                    "parallel": kept["parallel"],
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
        """Return what ran when the runner ended, and let it run again. Their ``pid`` is still there."""
        runs = self.active_runs()
        for run in runs:
            pid = run.pid, run.pid_started
            run.requeue("the runner ended while it ran")
            run.pid, run.pid_started = pid
        return runs


def _most_careful(found: Sequence[tuple[Mapping[str, Any], float]]) -> Mapping[str, Any]:
    """Return one hook for the same one of several rules, each with its ``retry_limit``: what is most careful of each.

    It has the longest timeout. ``retry: never`` outweighs any other; else the one that tries most often counts.
    """
    never = (hook for hook, _limit in found if (hook.get("retry") or {}).get("attempts") == 1)
    chosen = next(never, max(found, key=lambda each: each[1])[0])
    longest = max((hook for hook, _limit in found), key=lambda hook: float(hook.get("timeout_seconds", 0.0)))
    return {**chosen, **{key: longest[key] for key in ("timeout_seconds",) if key in longest}}


def _distinct(runs: Sequence[Run]) -> list[Run]:
    return list({id(run): run for run in runs}.values())
