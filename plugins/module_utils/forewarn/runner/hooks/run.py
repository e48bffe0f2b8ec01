# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One hook of an event, and the stages of hooks.

A hook is identified by its definition and by the content of the event that it prepares for, not by its rule: two rules
with the same hook share one ``Run``. A ``Stage`` has the hooks of one rule. Within a stage the prepare
hooks run in order, or side by side. A hook that failed is tried again, and holds up the rest of its stage only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from ...policy.decision import APPROVE, HOLD, PHASES, Verdict

PREPARE, RECOVER = PHASES[:2]
WAITING, RUNNING, SUCCEEDED, FAILED, SKIPPED, LEFT = "waiting", "running", "succeeded", "failed", "skipped", "left"
NOTHING_LEFT_TO_DO = (SUCCEEDED, SKIPPED, LEFT)  # of a recover hook; one that failed is still to be run

STARTED = "started"  # of recover_when: also where the event started without a preparation

# Pauses in seconds before a recover hook is tried again; the last one repeats. Right after a reboot much of what a
# recovery needs may not be up yet.
RECOVER_PAUSES = (10.0, 60.0, 300.0, 900.0, 3600.0)
# From this failure on a recovery needs a person. It is still tried again.
FAILING = 3
# Before a prepare hook is tried again: the first and the longest pause. It doubles each time.
PREPARE_PAUSES = (1.0, 60.0)

_NOT_IN_KEY = ("timeout_seconds", "retry")  # how long and how often, not what
_NOT_SAVED = ("retry_at", "waits_for")


def hook_key(hook: Mapping[str, Any]) -> str:
    """Return the identity of a hook: its definition, without how long it may take and how often it is tried."""
    return json.dumps({key: value for key, value in hook.items() if key not in _NOT_IN_KEY}, sort_keys=True)


class Run:
    """One hook in the plan of one event. ``policy`` and ``rule`` are those that had it first.

    ``revision`` is that of the event's content (``EventRecord.revision``). ``attempts`` counts starts. ``failures``
    counts those that ``retry`` limits: a hook that a restart interrupted has not failed. ``retry_at`` is monotonic. A
    restart forgets it: the hook then runs at once.
    """

    def __init__(self, phase: str, policy: str, rule: str | None, hook: Mapping[str, Any], revision: int = 0) -> None:
        self.phase = phase
        self.policy = policy
        self.rule = rule
        self.hook = hook
        self.revision = revision
        self.on_failure = HOLD
        self.status = WAITING
        self.attempts = 0
        self.failures = 0
        self.pid: int | None = None
        self.pid_started: int | None = None
        self.pid_boot: str | None = None
        self.seconds: float | None = None
        self.exit_code: int | None = None
        self.reason = ""
        self.retry_at: float | None = None
        self.waits_for = ""  # why a recovery that is due was not started, as logged

    @property
    def key(self) -> str:
        """The identity of the hook."""
        return hook_key(self.hook)

    @property
    def once_only(self) -> bool:
        """Whether it has ``retry: never``: not even an interrupted start is repeated."""
        return self._retry.get("attempts") == 1

    @property
    def exhausted(self) -> bool:
        """Whether it is not tried again."""
        return self.failures >= retry_limit(self.hook, accepted=self.on_failure == APPROVE and self.phase == PREPARE)

    @property
    def failing(self) -> bool:
        """Whether it needs a person."""
        return self.failures >= FAILING or self.exhausted

    @property
    def _retry(self) -> Mapping[str, Any]:
        return self.hook.get("retry") or {}

    def pause(self) -> float:
        """Return the seconds from the latest failure to the next attempt."""
        count = max(0, self.failures - 1)
        if self.phase == RECOVER and not {"delay_seconds", "max_delay_seconds"} & set(self._retry):
            return RECOVER_PAUSES[min(count, len(RECOVER_PAUSES) - 1)]
        pauses = PREPARE_PAUSES if self.phase == PREPARE else RECOVER_PAUSES
        delay = float(self._retry.get("delay_seconds", pauses[0]))
        longest = float(self._retry.get("max_delay_seconds", max(delay, pauses[-1])))
        return min(longest, delay * 2.0 ** min(count, 32))

    def as_json(self) -> dict[str, Any]:
        """Return it for the journal."""
        return {key: value for key, value in vars(self).items() if key not in _NOT_SAVED}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Run:
        """Return what ``as_json`` wrote, in this version or an earlier one. Raises KeyError for anything else."""
        run = cls(data["phase"], data["policy"], data["rule"], data["hook"])
        later = {"revision": 0, "failures": 0, "pid_boot": None}  # fields that the first version did not have
        for key in vars(run):
            if key not in _NOT_SAVED:
                setattr(run, key, data.get(key, later[key]) if key in later else data[key])
        return run

    def end(self, status: str, reason: str = "") -> None:
        """End it with a status."""
        self.status = status
        self.reason = reason
        self.pid = self.pid_started = self.retry_at = None

    def wait(self, reason: str = "", retry_at: float | None = None) -> None:
        """Let it run again, not before ``retry_at``."""
        self.status = WAITING
        self.reason = reason
        self.pid = self.pid_started = None
        self.retry_at = retry_at

    def fail(self, reason: str, now: float, most_seconds: float | None = None) -> None:
        """Count a failure. It is tried again after a pause, of at most ``most_seconds``, unless it is exhausted."""
        self.failures += 1
        if self.exhausted and self.phase == PREPARE:
            self.end(FAILED, reason)
            return
        pause = self.pause()
        self.wait(reason, now + (pause if most_seconds is None else min(pause, most_seconds)))
        if self.phase == RECOVER and self.failing:
            self.status = FAILED

    def requeue(self, reason: str) -> None:
        """Let it run again after it was ended from outside: that is not a failure, unless it may run once only."""
        if self.once_only:
            self.failures += 1
            self.end(FAILED, f"{reason}, and it may run once only")
        else:
            self.wait(reason)

    def may_start(self, now: float) -> bool:
        """Return whether earlier attempts allow a start now."""
        if self.status == FAILED:
            return self.phase == RECOVER and not self.exhausted and (self.retry_at is None or now >= self.retry_at)
        return self.status == WAITING and (self.retry_at is None or now >= self.retry_at)


class Stage:
    """The hooks of one rule. ``within_seconds`` before NotBefore its preparation begins; None: at once.

    ``entered``: it has begun, in its own time. Another stage may have begun the hooks that both have before.
    """

    def __init__(self, verdict: Verdict, revision: int, prepare: Sequence[Run], recover: Sequence[Run]) -> None:
        self.policy = verdict.policy
        self.rule = verdict.rule
        self.revision = revision
        self.on_failure = verdict.on_failure
        self.parallel = verdict.parallel
        self.within_seconds: float | None = verdict.prepare_within_seconds
        self.recover_when: str = verdict.recover_when
        self.prepare = list(prepare)
        self.recover = list(recover)
        self.wanted = True
        self.entered = False

    @property
    def key(self) -> tuple[object, ...]:
        """The identity of the stage: not the rule."""
        runs = tuple(map(id, self.prepare)), tuple(map(id, self.recover))
        return (self.revision, *runs, self.on_failure, self.parallel, self.within_seconds, self.recover_when)

    @property
    def begun(self) -> bool:
        """Whether one of its prepare hooks has ever been started."""
        return any(run.attempts for run in self.prepare)

    def begins_in(self, left_seconds: float | None) -> float:
        """Return the seconds until its preparation begins, 0 if it may now or has; ``left_seconds``: to NotBefore."""
        if self.within_seconds is None or left_seconds is None or self.entered:
            return 0.0
        return max(0.0, left_seconds - self.within_seconds)

    def needs_recovery(self, had_started: bool) -> bool:
        """Return whether it needs recovery; ``had_started``: the event has started, or may have."""
        return self.begun or (had_started and self.recover_when == STARTED)

    def preparation(self, late: bool = False) -> tuple[str, Run | None]:
        """Return ``waiting``, ``running``, ``succeeded`` or ``failed``, and the hook that decides it.

        With ``on_failure: approve`` a hook that failed for good counts as ended, and one for which it is too ``late``.
        """
        ended: tuple[str, ...] = (SUCCEEDED,)
        if self.on_failure == APPROVE:
            ended = (SUCCEEDED, FAILED, WAITING, SKIPPED) if late else (SUCCEEDED, FAILED)
        open_runs = [run for run in self.prepare if run.status not in ended]
        if not open_runs:
            return SUCCEEDED, None
        if not self.parallel:
            status = open_runs[0].status
            return WAITING if status == SKIPPED else status, open_runs[0]
        for status in (RUNNING, FAILED):
            for run in open_runs:
                if run.status == status:
                    return status, run
        return WAITING, open_runs[0]

    def next_to_prepare(self) -> list[Run]:
        """Return the hooks that come next: several where they run side by side, none once one has failed for good."""
        _state, run = self.preparation()
        if run is None or run.status == FAILED:
            return []
        if not self.parallel:
            return [run]
        failed = self.on_failure != APPROVE and any(run.status == FAILED for run in self.prepare)
        return [run for run in self.prepare if run.status == RUNNING or (run.status == WAITING and not failed)]

    def as_json(self, place: Mapping[int, int]) -> dict[str, Any]:
        """Return it for the journal; ``place`` maps the id() of a run to its place in the plan."""
        data = dict(vars(self))
        for phase in (PREPARE, RECOVER):
            data[phase] = [place[id(run)] for run in data[phase]]
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any], runs: Sequence[Run]) -> Stage:
        """Return what ``as_json`` wrote, of these runs. Raises KeyError, IndexError or TypeError for anything else."""
        verdict = Verdict(data["policy"], HOLD, data["rule"], "", "")
        stage = cls(verdict, int(data["revision"]), *([runs[at] for at in data[phase]] for phase in (PREPARE, RECOVER)))
        for key in ("on_failure", "parallel", "within_seconds", "recover_when", "wanted"):
            setattr(stage, key, data[key])
        stage.entered = bool(data.get("entered", stage.begun))  # which earlier versions did not save
        return stage


def retry_limit(hook: Mapping[str, Any], *, accepted: bool) -> float:
    """Return after how many failures a hook is not tried again; ``accepted``: its failure holds up no approval."""
    if "retry" not in hook:
        return 1.0 if accepted else inf
    limit = (hook["retry"] or {}).get("attempts")
    return inf if limit is None else float(limit)
