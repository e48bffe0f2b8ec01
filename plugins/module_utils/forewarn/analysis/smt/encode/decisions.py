# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of policies as formulas: which match decides where, in the order in which the engine tries them.

``_Walk`` has the meaning of ``policy.program``, and ``Decisions`` that of ``policy.engine``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....events import EVENT_STATUSES, EVENT_TYPE_SINCE
from ....policy.decision import ABSTAIN, APPROVE, HOLD
from ....policy.forms import read_form
from ....policy.program import is_conditional
from ...artifacts import Json
from ...limits import named
from ...policy_outcome import (
    DOUBT,
    ERROR,
    EXPLANATION,
    LIMIT,
    NO_RULE,
    REFUSED,
    RULE,
    PolicyMatch,
    PolicyOutcome,
    with_inner,
)
from ..terms import Formula, conj, disj, neg
from .expressions import ExpressionEncoder
from .inputs import Inputs
from .logic import ConditionPart
from .params import Params
from .problem import Encoding, Problem


@dataclass(frozen=True, eq=False)
class MatchFormulas(PolicyMatch["MatchFormulas"]):
    """One match of a policy, as formulas. Where it is evaluated, its condition ``holds`` or ``fails``.

    ``explanation_fails`` and ``group_fails`` are about its explanation and the group of its limit. None of these
    mentions a Boolean that ``Problem.define`` made; ``reached`` may, which says where it is evaluated. ``condition``
    has the operands, ``limit_value`` is the group of its limit; both are None without one.
    """

    holds: Formula
    fails: Formula
    explanation_fails: Formula
    group_fails: Formula
    reached: Formula
    condition: ConditionPart | None
    limit_value: Encoding | None

    @property
    def output_fails(self) -> Formula:
        """Where it holds the event although its condition holds, since something else of it has no value."""
        return disj((self.explanation_fails, self.group_fails))

    def ends(self, removed: Container[int] = ()) -> Formula:
        """Return for which events the search ends here, of those that reach it and for which it does not fail.

        After a nested rule whose condition is a literal, or that has none, go the events that no match in it takes.
        ``removed`` are the numbers of matches that do not count.
        """
        if self.inner is None or self.conditional:
            return self.holds
        inner = [one for one in self.inner if one.number not in removed]
        return conj((self.holds, disj(part for one in inner for part in (one.fails, one.ends(removed)))))


@dataclass(frozen=True, eq=False)
class OutcomeFormula(PolicyOutcome[MatchFormulas]):
    """The events that one policy treats alike."""

    when: Formula


class PolicyOutcomes(NamedTuple):
    """One policy: its matches, nested ones inside others, and its outcomes, one of which each event has.

    ``evaluated``: where its rules are evaluated at all, without Booleans that ``Problem.define`` made.
    """

    name: str
    data: Json
    matches: tuple[MatchFormulas, ...]
    outcomes: tuple[OutcomeFormula, ...]
    evaluated: Formula

    def every(self) -> Iterator[MatchFormulas]:
        """Yield all matches in the order of the file."""
        return with_inner(self.matches)


class Decisions:
    """What all policies of one version decide together. What is not held is approved."""

    def __init__(self, inputs: Inputs, params: Params, policies: Sequence[Json], version: int = 0) -> None:
        self.inputs = inputs
        self.version = version
        accepted = params.accepted(version)
        self.policies = tuple(_Walk(inputs, params, data, version, accepted).outcomes() for data in policies)
        problem, name = inputs.problem, f"{inputs.number} of version {version}"
        self.held = problem.define(f"held, {name}", self.where(lambda one: one.output == HOLD))
        self.approved = conj((neg(self.held), self.where(lambda one: one.output == APPROVE)))
        self.approved = problem.define(f"approved, {name}", self.approved)
        self.uncovered = conj((neg(self.held), neg(self.approved)))  # every policy abstains

    def rule(self, policy: str | None, path: str | None) -> MatchFormulas | None:
        """Return a rule by the names that decisions of the engine have; None if there is none."""
        matches = (match for one in self.policies if one.name == policy for match in one.every())
        return next((match for match in matches if match.path == path), None)

    def where(self, test: Callable[[OutcomeFormula], object]) -> Formula:
        """Return where a policy has an outcome that passes a test."""
        return disj(one.when for policy in self.policies for one in policy.outcomes if test(one))


class _Walk:
    """Goes through the matches of one policy in the order of the file."""

    def __init__(self, inputs: Inputs, params: Params, data: Json, version: int, accepted: Formula) -> None:
        self._inputs, self._data, self._accepted = inputs, data, accepted
        self._problem: Problem = inputs.problem
        self._prefix = f"{data['name']} in version {version} for {inputs.number}"
        self._encoder = ExpressionEncoder(inputs, lambda name: params.value(version, data["name"], name))
        self._encoder.file = data["source"]
        self._outcomes: list[OutcomeFormula] = []
        self._number = 0

    def outcomes(self) -> PolicyOutcomes:
        """Return the policy's matches and outcomes."""
        extra, is_one_of = self._data.get("extra_values", {}), self._inputs.is_one_of
        known = conj(
            is_one_of(field, *texts, *extra.get(field, ()))
            for field, texts in (("EventType", EVENT_TYPE_SINCE), ("EventStatus", EVENT_STATUSES))
        )
        evaluated = conj((self._accepted, known))
        self._add(REFUSED, HOLD, None, neg(self._accepted))
        self._add(DOUBT, HOLD, None, conj((self._accepted, neg(known))))
        matches, left, abstained = self._block(self._data["rule"], "", self._define("asked", evaluated))
        self._add(NO_RULE, ABSTAIN, None, disj((left, *abstained)))
        return PolicyOutcomes(self._data["name"], self._data, matches, tuple(self._outcomes), evaluated)

    def _block(
        self, block: Json, prefix: str, alive: Formula
    ) -> tuple[tuple[MatchFormulas, ...], Formula, list[Formula]]:
        """Return the matches of a block, what none of them takes, and where the policy abstains."""
        for variable in block["variables"]:
            self._encoder.declare(variable["name"], variable["expr"])
        matches, abstained = [], []
        for data in block["match"]:
            self._number += 1
            number, path, reached = self._number, prefix + data["id"], alive
            condition = None if data["condition"] is None else self._encoder.condition(data["condition"])
            value, fails = Encoding(True) if condition is None else condition.value
            holds = conj((neg(fails), value))
            explained = "rule" in data or data.get("explanation") is None
            explanation_fails = False if explained else self._encoder.error(data["explanation"])
            group_fails, limit_group, limit_value = self._limit_group(data.get("limit", {}).get("group"))
            failed, met = self._define(f"{path} fails", fails), self._define(f"{path} holds", holds)
            here, failed_here = self._define(f"{path} met", conj((reached, met))), conj((reached, failed))
            alive = self._define(f"after {path}", conj((reached, neg(met), neg(failed))))
            conditional = data["condition"] is not None and is_conditional(read_form(data["condition"]["form"]))
            found, inner = [(ERROR, HOLD, failed_here)], None
            if "rule" in data:
                inner, left, more = self._block(data["rule"], path + ".", here)
                abstained += more
                if conditional:
                    abstained.append(left)
                else:
                    alive = self._define(f"after the rule of {path}", disj((alive, left)))
            else:
                found.append((RULE, data["output"], conj((here, neg(explanation_fails), neg(group_fails)))))
                found.append((EXPLANATION, HOLD, conj((here, explanation_fails))))
                found.append((LIMIT, HOLD, conj((here, neg(explanation_fails), group_fails))))
            place = (self._data, path, data, number, conditional, limit_group, inner)
            formulas = (holds, fails, explanation_fails, group_fails, reached)
            match = MatchFormulas(*place, *formulas, condition, limit_value)
            matches.append(match)
            for how, output, when in found:
                self._add(how, output, match, when)
        return tuple(matches), alive, abstained

    def _limit_group(self, group: Json | None) -> tuple[Formula, str | None, Encoding | None]:
        """Return where the group of a limit has no name, what stands for the name, and the name."""
        if group is None:
            return False, None, None
        value, fails = self._encoder.condition(named(group)).value
        return disj((fails, neg(value))), self._encoder.expression_key(group), self._encoder.value(group)

    def _add(self, how: str, output: str, match: MatchFormulas | None, when: Formula) -> None:
        if when is not False:
            self._outcomes.append(OutcomeFormula(self._data["name"], how, output, match, when))

    def _define(self, what: str, formula: Formula) -> Formula:
        return self._problem.define(f"{what}, {self._prefix}", formula)
