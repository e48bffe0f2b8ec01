# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What policies do with one event, with all that a runner acts on. behaviour_change says how two differ.

Equality is exact: any difference in what is done, when and by whom makes two behaviours unequal. Nothing here knows how
the event was found.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from ...policy.decision import (
    ABSTAIN,
    APPROVE,
    APPROVERS,
    GROUPS,
    HOLD,
    HOOK_TIMEOUT_SECONDS,
    RECOVER_WHEN,
    strictest_group,
)
from ...policy.hook_body import with_body_source
from ..artifacts import Json
from ..hook_wording import hook_text, seconds_text
from ..limits import LimitTerms, limit_terms
from ..policy_outcome import DOUBT, ERROR, EXPLANATION, LIMIT, REFUSED, M, PolicyOutcome

_NO_POLICY = {DOUBT: "unknown EventType or EventStatus", REFUSED: "a parameter that is refused"}
_HOW = {ERROR: " (no value)", EXPLANATION: " (explanation without value)", LIMIT: " (limit without a group)"}


class Hook(NamedTuple):
    """A hook. ``content`` is all that the artifact says of it, ``action`` what it is known by if the rest changes."""

    content: Hashable
    action: Hashable
    text: str


class PrepareTerms(NamedTuple):
    """What a rule prepares; ``within`` in seconds before NotBefore, None at once."""

    hooks: tuple[Hook, ...]
    on_failure: str
    parallel: bool
    within: float | None

    @property
    def text(self) -> str:
        """``drain (60 s) [parallel]``."""
        notes = (
            ("approve on failure", self.on_failure == APPROVE),
            ("parallel", self.parallel),
            (f"within {seconds_text(self.within or 0)}", self.within is not None),
        )
        return list_text(self.hooks) + _notes([word for word, is_so in notes if is_so])


class RecoverTerms(NamedTuple):
    """What a rule recovers; ``when`` is one of RECOVER_WHEN."""

    hooks: tuple[Hook, ...]
    when: str

    @property
    def text(self) -> str:
        """``undrain (60 s) [when started]``."""
        return list_text(self.hooks) + _notes(["when started"] if self.when == RECOVER_WHEN[1] else [])


class Reason(NamedTuple):
    """What decided. All is None where no rule of any policy applies; ``policy`` is None in doubt and if refused."""

    policy: str | None
    rule: str | None
    how: str | None

    @property
    def text(self) -> str:
        """``web-tier/brief-freeze``."""
        if self.policy is None:
            return _NO_POLICY.get(self.how or "", "no rule applies")
        return (
            f"{self.policy}/{self.rule}{_HOW.get(self.how or '', '')}" if self.rule else f"{self.policy} ({self.how})"
        )


class Behaviour(NamedTuple):
    """What all policies together do with an event: like the engine's Decision, with all that a runner acts on.

    ``preparing`` and ``recover``: of each rule that acts, in the order of the policies; ``limits`` likewise, each
    once. ``explanation`` is the expression of the rule that decides, as the file has it.
    """

    output: str
    approver: str
    group: str
    preparing: tuple[PrepareTerms, ...]
    recover: tuple[RecoverTerms, ...]
    notify: tuple[Hook, ...]
    reason: Reason
    explanation: str | None
    limits: tuple[LimitTerms, ...] = ()

    @property
    def abstains(self) -> bool:
        """Whether the event is held only because no rule applies."""
        return self.reason == Reason(None, None, None)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Every prepare hook, in order."""
        return tuple(hook for one in self.preparing for hook in one.hooks)


def behaviour(outcomes: Sequence[PolicyOutcome[M]]) -> Behaviour:
    """Combine the policies' outcomes for one event, by the rule of policy.engine."""
    acting = [one for one in outcomes if one.output != ABSTAIN]
    deciding = next((one for one in acting if one.output == HOLD), acting[0] if acting else None)
    data = [one.data for one in acting]
    reason = Reason(None, None, None)
    if deciding is not None:
        in_doubt = deciding.how in (DOUBT, REFUSED)
        policy, rule = (None, None) if in_doubt else (deciding.policy, deciding.rule)
        reason = Reason(policy, rule, deciding.how)
    explanation = None if deciding is None else deciding.data.get("explanation")
    prepares = any(entry.get("prepare") for entry in data)
    limits = (limit_terms(one.data, one.limit_group) for one in acting)
    return Behaviour(
        HOLD if deciding is None else deciding.output,
        min((entry.get("approver", APPROVERS[0]) for entry in data), key=APPROVERS.index, default=APPROVERS[0]),
        strictest_group([entry.get("group", GROUPS[0]) for entry in data], prepares=prepares),
        tuple(one for one in map(_preparation, data) if one != _preparation({})),
        tuple(one for one in map(_recovery, data) if one != _recovery({})),
        tuple(hook_of(hook) for entry in data for hook in entry.get("notify", ())),
        reason,
        None if explanation is None else explanation["source"],
        tuple(dict.fromkeys(one for one in limits if one is not None)),
    )


def list_text(hooks: Sequence[Hook]) -> str:
    """Describe hooks, in their order."""
    return ", ".join(hook.text for hook in hooks) or "nothing"


def _notes(notes: Sequence[str]) -> str:
    return f" [{', '.join(notes)}]" if notes else ""


def _preparation(data: Json) -> PrepareTerms:
    return PrepareTerms(
        tuple(map(hook_of, data.get("prepare", ()))),
        data.get("on_failure", HOLD),
        bool(data.get("parallel", False)),
        data.get("prepare_within_seconds"),
    )


def _recovery(data: Json) -> RecoverTerms:
    return RecoverTerms(tuple(map(hook_of, data.get("recover", ()))), data.get("recover_when", RECOVER_WHEN[0]))


def hook_of(data: Json) -> Hook:
    """Return a hook of an artifact, with its timeout if it is the default."""
    content = {"timeout_seconds": HOOK_TIMEOUT_SECONDS, **with_body_source(data)}
    if "run" in data:
        action: tuple[str, ...] = ("run", data["run"][0])
    elif "unit" in data:
        action = ("unit", data["unit"], data["action"])
    elif "kind" in data:
        action = (data["kind"],)
    else:
        action = ("http", data["http"].partition("#")[0].partition("?")[0])
    return Hook(_frozen(content), action, hook_text(data))


def _frozen(value: Any) -> Hashable:
    """Return a JSON value as one that can be compared and hashed."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(one)) for key, one in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
