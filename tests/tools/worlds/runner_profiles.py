# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies that try everything a match can ask of the runner: an event's Description says which match is meant."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any, NamedTuple

from forewarn.policy.artifact import load
from forewarn.policy.engine import PolicySet

# The real checks of hook programs apply to it; nobody runs it.
PROGRAM = "/bin/true"
HOOK_SECONDS = 30.0
# They differ, so that NotBefore does not cut all of them short, nor recoveries take the same time.
SECONDS = {"flush": 100.0, "approach": 10.0, "close-door": 5.0, "step-2": 200.0, "undrain": 120.0, "open-door": 300.0}


class Stage(NamedTuple):
    """What one match of one policy asks for. Hooks are named by one argument, which is theirs in all tests."""

    policy: str
    output: str
    prepare: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()
    on_failure: str = "hold"
    parallel: bool = False
    approver: str = "leader"
    group: str = "independent"
    within: float | None = None  # prepare_within, seconds
    recover_when: str = "prepared"
    attempts: int | None = None  # of its prepare hooks, as in ``retry``; 1: never again

    @property
    def limit(self) -> float:
        """After how many failures a prepare hook of it is not tried again."""
        if self.attempts is None:
            return 1.0 if self.on_failure == "approve" else inf
        return float(self.attempts)


class Profile(NamedTuple):
    """What the policies do with an event of this Description; until its age is ``after`` seconds it is held.

    ``early``: meanwhile the same hooks are asked for already.
    """

    name: str
    stages: tuple[Stage, ...]
    after: float = 0.0
    early: bool = False

    @property
    def approves(self) -> bool:
        """Whether the policies approve."""
        return all(stage.output == "approve" for stage in self.stages)

    @property
    def witness(self) -> bool:
        """Whether a VM that is not affected may approve."""
        return all(stage.approver == "witness" for stage in self.stages)

    @property
    def holds_groups(self) -> bool:
        """Whether an event of several VMs is held."""
        return any(stage.group == "hold" for stage in self.stages) and any(stage.prepare for stage in self.stages)

    def stages_for(self, affected: bool) -> list[Stage]:
        """Return the stages whose hooks a VM is to run."""
        return [
            stage
            for stage in self.stages
            if (stage.prepare or stage.recover) and (affected or stage.approver == "witness")
        ]


def _one(name: str, output: str = "approve", prepare: str = "", recover: str = "", **values: Any) -> Profile:
    return Profile(name, (Stage("web", output, tuple(prepare.split()), tuple(recover.split()), **values),))


PROFILES = {
    profile.name: profile
    for profile in (
        _one("plain"),
        _one("anyone", approver="any"),
        _one("refuse", "hold"),
        _one("drain", prepare="drain", recover="undrain"),
        _one("steps", prepare="step-1 step-2 step-3", recover="back-1 back-2", group="hold"),
        _one("sides", prepare="left right middle", recover="straighten", parallel=True),
        _one("careless", prepare="try-1 try-2", recover="untry", on_failure="approve"),
        _one("sit", "hold", prepare="sit-down", recover="stand-up"),
        _one("oneway", prepare="leave"),
        _one("watch", prepare="look", recover="look-away", approver="witness"),
        # Two that share both hooks, and one that shares a recover hook only.
        _one("share-a", prepare="close-door", recover="open-door"),
        _one("share-b", prepare="close-door lock", recover="unlock open-door"),
        _one("share-c", "hold", prepare="close-window", recover="open-door open-window"),
        Profile(
            "two",
            (
                Stage("web", "approve", ("drain-two",), ("undrain-two",)),
                Stage("db", "approve", ("flush",), ("reopen",), on_failure="approve"),
            ),
        ),
        Profile(
            "split",
            (
                Stage("web", "approve", ("drain-split",), ("undrain-split",)),
                Stage("db", "hold", ("flush-split",), ("reopen-split",)),
            ),
        ),
        _one("later", prepare="late", recover="unlate")._replace(after=20.0),
        # Hooks that several rules and policies have
        _one("early", prepare="drain", recover="undrain")._replace(after=20.0, early=True),
        Profile(
            "both",
            (
                Stage("web", "approve", ("drain", "announce"), ("undrain",)),
                Stage("db", "approve", ("announce", "flush"), ("undrain", "reopen")),
            ),
        ),
        # The same hook, which may run once only for the one, and is to be tried often for the other
        Profile(
            "agreed",
            (
                Stage("web", "approve", ("announce", "warn"), ("unannounce",), attempts=1),
                Stage("db", "approve", ("announce", "flush"), ("reopen",), on_failure="approve", attempts=3),
            ),
        ),
        Profile(
            "agreeable",
            (
                Stage("web", "approve", ("ask",), ("unask",), on_failure="approve"),
                Stage("db", "approve", ("ask",), ("unask",), on_failure="approve", attempts=3),
            ),
        ),
        # More than may run at once
        _one("crowd", prepare=" ".join(f"crowd-{number}" for number in range(20)), recover="disperse", parallel=True),
        _one("once", prepare="once-1 once-2", recover="unonce", attempts=1),
        _one("near", prepare="approach", recover="retreat", within=60.0),
        Profile(
            "nearby",
            (
                Stage("web", "approve", ("announce",), ("unannounce",)),
                Stage("db", "approve", ("announce", "stop-db"), ("start-db",), within=60.0),
            ),
        ),
        _one("afterwards", recover="start-again", recover_when="started"),
        _one("always", prepare="stop", recover="start-again", recover_when="started"),
    )
}
# The same Descriptions, after a change of the policies: rules have other names, hooks come and go.
_CHANGED = {
    profile.name: profile
    for profile in (
        _one("plain", prepare="drain", recover="undrain"),
        _one("drain", prepare="drain late", recover="undrain unlate"),
        _one("steps", prepare="step-1 step-2", recover="back-1", group="independent"),
        _one("sit", prepare="sit-down", recover="stand-up"),
        _one("oneway"),
        _one("share-a", "hold", prepare="close-door", recover="open-door"),
        _one("refuse"),
        # Hooks that stay, and whose failures count otherwise
        _one("careless", prepare="try-1 try-2", recover="untry"),
        _one("once", prepare="once-1 once-2", recover="unonce"),
        _one("sides", prepare="left right middle", recover="straighten", parallel=True, on_failure="approve"),
    )
}
GENERATIONS = (PROFILES, {**PROFILES, **_CHANGED})
NOTIFY = "tell"


def hook(name: str, attempts: int | None = None) -> dict[str, Any]:
    """Return the hook of a name, in the form of an artifact."""
    made: dict[str, Any] = {"run": [PROGRAM, name], "timeout_seconds": SECONDS.get(name, HOOK_SECONDS)}
    return made if attempts is None else {**made, "retry": {"attempts": attempts}}


@cache
def policies(generation: int = 0, *, timed: bool = True) -> PolicySet:
    """Return the policies of all profiles, before or after they were changed; of those that do not depend on the time
    alone, unless ``timed``.
    """
    return PolicySet(load(artifact(generation, timed=timed)))


def artifact(generation: int = 0, *, timed: bool = True) -> dict[str, Any]:
    """Return the artifact of ``policies``."""
    from tools.fixtures.policy_data import artifact_data, policy  # here: a VM has no compiler

    matches: dict[str, list[dict[str, Any]]] = {"web": [], "db": []}
    suffix = "-renamed" if generation else ""
    for profile in GENERATIONS[generation].values():
        if profile.after and not timed:
            continue
        condition = f'event.Description == "{profile.name}"'
        for stage in profile.stages:
            match = _match(f"{profile.name}{suffix}", condition, stage)
            if profile.after:
                early = f'{condition} && age < duration("{profile.after:g}s")'
                held: dict[str, Any] = {"id": f"{profile.name}-early", "condition": early, "output": "hold"}
                matches[stage.policy].append({**match, **held} if profile.early else held)
            matches[stage.policy].append(match)
    return artifact_data(*(policy(*found, name=name) for name, found in matches.items()))


def _match(rule: str, condition: str, stage: Stage) -> dict[str, Any]:
    match: dict[str, Any] = {"id": rule, "condition": condition, "output": stage.output}
    match.update(approver=stage.approver, group=stage.group, notify=[hook(NOTIFY)])
    match.update(on_failure=stage.on_failure, parallel=stage.parallel, recover_when=stage.recover_when)
    match["prepare"] = [hook(name, stage.attempts) for name in stage.prepare]
    match["recover"] = [hook(name) for name in stage.recover]
    if stage.within is not None:
        match["prepare_within_seconds"] = stage.within
    return match
