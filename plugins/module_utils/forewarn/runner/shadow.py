# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second artifact that decides beside the live one and never acts: it reports what it would do differently."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..events import Document, Event
from ..policy.decision import ABSTAIN, APPROVE, HOLD, RECOVER_WHEN, Decision, Facts, Limit
from ..policy.engine import PolicySet
from ..texts import exact_text
from .hooks import commands

_VERBS = {APPROVE: "approves", HOLD: "holds"}
_SHOWN_HOOKS = 3


class Disagreement(NamedTuple):
    """``what`` is a sentence about what the shadow would do differently; ``other`` is a hold if it failed."""

    event: Event
    live: Decision
    other: Decision
    what: str


class _Effect(NamedTuple):
    """What a decision leads to. Hooks are JSON text: prepare hooks with ``on_failure``, ``parallel`` and
    ``prepare_within_seconds``, recover hooks with ``recover_when``. ``limit`` has all limits.
    """

    output: str
    approver: str
    group: str
    limit: tuple[Limit, ...]
    prepare: tuple[tuple[str, str, bool, float | None], ...]
    recover: tuple[tuple[str, str], ...]


class Shadow:
    """Compares the decisions of ``policies`` with the live ones."""

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies
        self._reported: dict[str, set[object]] = {}  # Event.key -> pairs of effects

    @property
    def time_dependent(self) -> bool:
        """Whether the shadow's decisions may change without a new document."""
        return self._policies.time_dependent

    def compare(self, document: Document, facts: Facts, decisions: Sequence[Decision]) -> list[Disagreement]:
        """Return where the shadow differs from ``decisions``, which are about the same document and facts.

        For each event, each pair of answers is reported once. Never raises: a shadow that fails is reported too.
        """
        try:
            return list(self._compared(decisions, self._policies.decide(document, facts)))
        except Exception as error:  # no defect of the shadow may disturb the live decision
            return list(self._failed(decisions, error))

    def forget(self, key: str) -> None:
        """Drop what was reported of an event that is no longer listed; ``key`` is ``Event.key``."""
        self._reported.pop(key, None)

    def _compared(self, decisions: Sequence[Decision], others: Sequence[Decision]) -> Iterable[Disagreement]:
        found = []
        for live, other in zip(decisions, others):
            effects = _effect(live), _effect(other)
            if effects[0] != effects[1]:
                found.append((effects, Disagreement(live.event, live, other, _difference_text(live, other, *effects))))
        # Only now: if one comparison fails, all decisions are reported as failed.
        return [disagreement for effects, disagreement in found if self._is_news(disagreement.event, effects)]

    def _failed(self, decisions: Sequence[Decision], error: Exception) -> Iterable[Disagreement]:
        kind = error.__class__.__name__
        for live in decisions:
            if self._is_news(live.event, (live.output, kind)):
                reason = f"the shadow could not decide: {kind}"
                other = Decision(live.event, HOLD, None, None, reason)
                yield Disagreement(live.event, live, other, f"live {_answer(live)}, {reason}")

    def _is_news(self, event: Event, pair: object) -> bool:
        reported = self._reported.setdefault(event.key, set())
        if pair in reported:
            return False
        reported.add(pair)
        return True


def _effect(decision: Decision) -> _Effect:
    """Return what would happen. The approver is empty if nobody approves and nothing is prepared."""
    acting = [verdict for verdict in decision.verdicts if verdict.output != ABSTAIN]
    prepare = tuple(
        (_text(hook), verdict.on_failure, verdict.parallel and len(verdict.prepare) > 1, verdict.prepare_within_seconds)
        for verdict in acting
        for hook in verdict.prepare
    )
    recover = tuple(
        (_text(hook), verdict.recover_when)
        for verdict in acting
        if verdict.prepare or verdict.recover_when != RECOVER_WHEN[0]
        for hook in verdict.recover
    )
    if decision.output != APPROVE and not prepare:
        return _Effect(decision.output, "", "", (), (), recover)
    return _Effect(decision.output, decision.approver, decision.group, decision.limits, prepare, recover)


def _text(hook: Mapping[str, Any]) -> str:
    return json.dumps(hook, sort_keys=True)


def _difference_text(live: Decision, other: Decision, one: _Effect, two: _Effect) -> str:
    if one.output != two.output:
        return f"live {_answer(live)}, shadow {_answer(other)}"
    differences = []
    for name in ("approver", "group"):
        mine, theirs = getattr(one, name), getattr(two, name)
        if mine != theirs:
            differences.append(f"live with {name} {mine or 'unset'}, shadow with {theirs or 'unset'}")
    if one.limit != two.limit:
        differences.append(f"live with {_limits(one.limit)}, shadow with {_limits(two.limit)}")
    if one.prepare != two.prepare:
        mine, theirs = _hooks(one.prepare), _hooks(two.prepare)
        if mine == theirs:  # the difference does not show in one line: a header, or a timeout
            differences.append(f"both prepare {mine}, but with different settings")
        else:
            differences.append(f"live prepares {mine}, shadow {theirs}")
    if one.recover != two.recover:
        mine, theirs = _recovers(one.recover), _recovers(two.recover)
        if mine == theirs:
            differences.append(f"both recover by {mine}, but with different settings")
        else:
            differences.append(f"live recovers by {mine}, shadow by {theirs}")
    rules = f"live by {_rule(live)}, shadow by {_rule(other)}"
    return f"both {live.output}, {rules}, but {'; '.join(differences)}"


def _limits(found: Sequence[Limit]) -> str:
    return f"limit {', '.join(limit.text for limit in found)}" if found else "no limit"


def _hooks(found: Iterable[tuple[Any, ...]]) -> str:
    texts = []
    for text, *settings in found:
        shown = commands.describe(json.loads(text))
        on_failure, parallel, within = settings or (HOLD, False, None)
        marks = [f"on_failure {on_failure}"] if on_failure != HOLD else []
        marks += ["parallel"] if parallel else []
        marks += [f"within {exact_text(within)} of NotBefore"] if within is not None else []
        texts.append(f"{shown} ({', '.join(marks)})" if marks else shown)
    more = len(texts) - _SHOWN_HOOKS
    return ", ".join(texts[:_SHOWN_HOOKS]) + (f" and {more} more" if more > 0 else "") or "nothing"


def _recovers(found: Sequence[tuple[str, str]]) -> str:
    started = any(when == RECOVER_WHEN[1] for _hook, when in found)
    return _hooks((hook,) for hook, _when in found) + (" also after a start without preparation" if started else "")


def _answer(decision: Decision) -> str:
    why = decision.reason
    if decision.rule is not None:
        applies = f"rule {decision.rule} applies"  # the rule is named already
        why = why[len(applies) :].lstrip(": ") if why.startswith(applies) else why
        why = f"{_rule(decision)}: {why}" if why else _rule(decision)
    return f"{_VERBS.get(decision.output, decision.output)} ({why})"


def _rule(decision: Decision) -> str:
    return "no rule" if decision.rule is None else f"rule {decision.rule} of {decision.policy}"
