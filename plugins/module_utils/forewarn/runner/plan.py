# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks of one event: which there are, in which order they run, what has become of each.

A stage is what one rule of one policy asks for. Stages are prepared one after another, in the order of the policies;
within a stage the prepare hooks run in order, or side by side, and the first that fails ends the stage. Recover hooks
run only for stages whose preparation had begun, in order, and stop at one that keeps failing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..policy.decision import APPROVE, HOLD, Verdict

PREPARE, RECOVER = "prepare", "recover"
WAITING, RUNNING, SUCCEEDED, FAILED, SKIPPED, LEFT = "waiting", "running", "succeeded", "failed", "skipped", "left"
ENDED = (SUCCEEDED, FAILED, SKIPPED, LEFT)

# A recovery that fails is tried again: right after a reboot much of what it needs may not be up yet.
RECOVER_RETRY_SECONDS = (10.0, 60.0)


class Run:
    """One hook in the plan of one event. ``retry_at`` is monotonic and forgotten by a restart: it then runs at once."""

    def __init__(self, phase: str, stage: int, policy: str, rule: str | None, hook: Mapping[str, Any]) -> None:
        self.phase = phase
        self.stage = stage
        self.policy = policy
        self.rule = rule
        self.hook = hook
        self.on_failure = HOLD
        self.parallel = False
        self.status = WAITING
        self.attempts = 0
        self.pid: int | None = None
        self.pid_started: int | None = None
        self.seconds: float | None = None
        self.exit_code: int | None = None
        self.reason = ""
        self.retry_at: float | None = None

    @property
    def identity(self) -> str:
        """What makes two hooks the same: everything that is written about them."""
        return json.dumps(self.hook, sort_keys=True)

    def as_json(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return {key: value for key, value in vars(self).items() if key != "retry_at"}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Run:
        """Return what ``as_json`` wrote. Raises KeyError for anything else."""
        run = cls(data["phase"], data["stage"], data["policy"], data["rule"], data["hook"])
        for key in vars(run):
            if key != "retry_at":
                setattr(run, key, data[key])
        return run

    def end(self, status: str, reason: str = "") -> None:
        """Take it off the list of what is still to do."""
        self.status = status
        self.reason = reason
        self.pid = self.pid_started = None


class Plan:
    """The runs of one event, in order."""

    def __init__(self, runs: Sequence[Run] = ()) -> None:
        self.runs = list(runs)

    def extend(self, verdicts: Sequence[Verdict]) -> bool:
        """Add the stages of verdicts that prepare and are not in the plan yet; return whether there were any."""
        known = {self._stage_identity(stage) for stage in self.stages()}
        added = False
        for verdict in verdicts:
            runs = self._runs_of(verdict, len({run.stage for run in self.runs}))
            identity = self._stage_identity(runs)
            if runs and identity not in known:
                known.add(identity)
                self.runs.extend(runs)
                added = True
        return added

    @staticmethod
    def _runs_of(verdict: Verdict, stage: int) -> list[Run]:
        runs = []
        for phase, hooks in ((PREPARE, verdict.prepare), (RECOVER, verdict.recover)):
            for hook in hooks if verdict.prepare else ():
                run = Run(phase, stage, verdict.policy, verdict.rule, hook)
                run.on_failure = verdict.on_failure
                run.parallel = verdict.parallel
                runs.append(run)
        return runs

    @staticmethod
    def _stage_identity(runs: Sequence[Run]) -> tuple[object, ...]:
        return tuple((run.phase, run.policy, run.rule, run.identity, run.on_failure, run.parallel) for run in runs)

    def stages(self, phase: str | None = None) -> list[list[Run]]:
        """Return the runs by stage; of one phase, if that is asked for."""
        found: dict[int, list[Run]] = {}
        for run in self.runs:
            if phase in (None, run.phase):
                found.setdefault(run.stage, []).append(run)
        return list(found.values())

    def begun(self, stage: int | None = None) -> bool:
        """Tell whether a prepare hook has been started, of any stage or of one."""
        return any(run.attempts for run in self.runs if run.phase == PREPARE and stage in (None, run.stage))

    def of_phase(self, phase: str) -> Iterator[Run]:
        """Yield the runs of one phase."""
        return (run for run in self.runs if run.phase == phase)

    def running(self, phase: str | None = None) -> list[Run]:
        """Return what runs now."""
        return [run for run in self.runs if run.status == RUNNING and phase in (None, run.phase)]

    def due_to_prepare(self) -> list[Run]:
        """Return the prepare hooks that may start now."""
        for runs in self.stages(PREPARE):
            if any(run.status == FAILED and run.on_failure != APPROVE for run in runs):
                for run in runs:
                    if run.status == WAITING:
                        run.end(SKIPPED, "a hook before it failed")
            waiting = [run for run in runs if run.status == WAITING]
            if waiting and runs[0].parallel:
                return waiting
            if any(run.status not in ENDED for run in runs):
                return waiting[:1] if all(run.status != RUNNING for run in runs) else []
        return []

    def preparation(self) -> str:
        """Tell how far the prepare hooks are: ``waiting``, ``running``, ``succeeded`` or ``failed``.

        With ``on_failure: approve`` a failed hook counts as ended. No hooks: ``succeeded``.
        """
        runs = list(self.of_phase(PREPARE))
        if any(run.status == RUNNING for run in runs):
            return RUNNING
        if any(run.status == WAITING for run in runs):
            return WAITING
        failed = any(run.status in (FAILED, SKIPPED) and run.on_failure != APPROVE for run in runs)
        return FAILED if failed else SUCCEEDED

    def failure(self) -> Run | None:
        """Return the first hook that failed, in either phase, for people to read why."""
        return next((run for run in self.runs if run.status == FAILED), None)

    def stop_preparing(self, reason: str) -> None:
        """Leave out the prepare hooks that have not been started."""
        for run in self.of_phase(PREPARE):
            if run.status == WAITING:
                run.end(SKIPPED, reason)

    def start_recovering(self) -> bool:
        """Leave out the recover hooks of stages that were never begun; return whether any are left to run."""
        for run in self.of_phase(RECOVER):
            if run.status == WAITING and not self.begun(run.stage):
                run.end(SKIPPED, "its preparation had not begun")
        return any(run.status in (WAITING, RUNNING) for run in self.of_phase(RECOVER))

    def due_to_recover(self, now: float) -> list[Run]:
        """Return the recover hooks that may start at the monotonic time ``now``."""
        due = []
        for runs in self.stages(RECOVER):
            if any(run.status == FAILED for run in runs):
                for run in runs:
                    if run.status == WAITING:
                        run.end(SKIPPED, "a hook before it failed")
            first = next((run for run in runs if run.status not in ENDED), None)
            if first is not None and first.status == WAITING and (first.retry_at is None or now >= first.retry_at):
                due.append(first)
        return due

    def recovered(self) -> bool:
        """Tell whether no recover hook is left to run."""
        return all(run.status in ENDED for run in self.of_phase(RECOVER))

    def retry_in(self, now: float) -> float | None:
        """Return the seconds until a recover hook is to be tried again, None if none is."""
        times = [run.retry_at - now for run in self.runs if run.status == WAITING and run.retry_at is not None]
        return max(0.0, min(times)) if times else None

    def interrupted(self) -> list[Run]:
        """Return what ran when the runner ended, and let it run again."""
        runs = self.running()
        for run in runs:
            run.status = WAITING
        return runs
