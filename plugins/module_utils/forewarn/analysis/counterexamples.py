# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirmed counterexamples: the product's own engine decides each event before it is shown."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Mapping, NamedTuple, Optional

from ..policy.decision import HOLD, Decision, Verdict
from ..policy.engine import PolicySet
from ..policy.params import convert
from .symbolic.concrete import Witness
from .symbolic.decide import Decided, JointDecision
from .symbolic.limits import refuses
from .symbolic.reading import Reading
from .symbolic.space import Space
from .symbolic.symbols import Symbol

_TRIES = 200  # events tried for a set of classes over expressions that are not understood
_OTHER_TIMES = 40  # of these tried again, at several times


Instead = Optional[Mapping[Symbol, Any]]  # concrete values that replace those of a class
Making = Callable[[int, Instead], Witness]
Beside = Callable[[int, Instead], bool]


class AnalysisError(Exception):
    """The analysis and the engine disagree: a defect of forewarn, never to be reported as a fact about a policy."""


class Example(NamedTuple):
    """One event, its class, and the engine's decision for it."""

    number: int
    witness: Witness
    decision: Decision


class Prover:
    """Decides single events by the engine."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._declared = {entry["name"] for entry in reading.artifact.params}
        self._engines: dict[str, PolicySet] = {}

    def decide(self, witness: Witness) -> Decision:
        """Return the engine's decision for an event; with parameters that policies refuse, nothing is approved."""
        given = {**self.reading.fixed, **{k: v for k, v in witness.params.items() if k in self._declared}}
        for name, entry in self.reading.limits.items():
            if name in given and refuses(self.reading.limits, name, convert(given[name], entry["type"])):
                return self._refused(witness, f"the policies do not run with {given[name]} as parameter {name}")
        key = json.dumps(given, sort_keys=True)
        if key not in self._engines:
            self._engines[key] = PolicySet(self.reading.artifact, given)
        return self._engines[key].decide(witness.document, witness.facts)[0]

    def _refused(self, witness: Witness, reason: str) -> Decision:
        names = [policy.name for policy in self.reading.policies]
        verdicts = tuple(Verdict(name, HOLD, None, reason, "") for name in names)
        return Decision(witness.document.events[0], HOLD, names[0], None, reason, verdicts=verdicts)

    def example(
        self, decided: Decided, classes: int, witness: Making | None = None, beside: Beside | None = None
    ) -> Example | None:
        """Return an event of a set of classes, one that the service sends if there is one.

        ``witness`` makes an event of a class instead of the space; it must be one of the same class. ``beside`` returns
        whether another event was found to compare an event with.
        Returns None if the set is empty, or if its classes differ only in expressions that are not understood and no
        event was found that agrees with its class. Raises AnalysisError where engine and analysis disagree.
        """
        space = decided.space
        usual = classes & space.normal
        numbers = itertools.chain(space.members(usual), space.members(classes ^ usual))
        for number, instead in tried(space, numbers, _TRIES):
            seen = (witness or space.witness)(number, instead)
            decision = self.decide(seen)
            outcome = decided.outcome(number)
            if agrees(outcome, decision):
                if beside is None or beside(number, instead):
                    return Example(number, seen, decision)
            elif not space.opaque_terms:
                raise AnalysisError(
                    f"forewarn disagrees with itself about an event: {json.dumps(dict(seen.event))} is "
                    f"{outcome.output} by {outcome.policy}/{outcome.rule} for the analysis, and "
                    f"{decision.output} by {decision.policy}/{decision.rule} for the engine"
                )
        return None


def tried(space: Space, numbers: Iterable[int], most: int) -> Iterator[tuple[int, Instead]]:
    """Yield the first ``most`` classes, and some again with the times of ``Space.breakpoints``."""
    first = []
    for number in itertools.islice(numbers, most):
        first.append(number)
        yield number, None
    for number in first[:_OTHER_TIMES]:
        for instead in space.breakpoints(number):
            yield number, instead


def agrees(outcome: JointDecision, decision: Decision) -> bool:
    """Return whether a class's outcome is the engine's decision."""
    verdicts: Any = tuple((one.policy, one.output, one.rule) for one in decision.verdicts)
    return (
        outcome.rules == verdicts
        and (outcome.output, outcome.policy, outcome.rule) == (decision.output, decision.policy, decision.rule)
        and (outcome.approver, outcome.group) == (decision.approver, decision.group)
        and (outcome.prepare, outcome.recover, outcome.notify) == (decision.prepare, decision.recover, decision.notify)
    )
