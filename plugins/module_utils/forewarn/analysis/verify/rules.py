# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at each rule of one policy: whether it ever decides, and whether it can fail.

The rules are tried in order, as the engine does. What the rules before one take is assumed to be taken for all that
follows, so each rule is one question to the solver, and what it learns stays known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ...policy.decision import HOLD, Decision, Verdict
from ..proof import Example
from ..smt.encode.decisions import MatchFormulas, PolicyOutcomes
from ..smt.solver import SolverResult
from ..smt.terms import Formula, conj, disj, implies, neg
from ..witness import Witness
from .contradictions import conflict_words
from .finding import ProofFinding
from .search import WHEN, Search, at_rule

_MOST_NAMED = 8  # rules in a message


class DeadRule(NamedTuple):
    """A rule that never decides. ``above``: what events meet that reach its block; ``before``: the matches before it in
    the block that take events, each with those that it leaves.
    """

    match: MatchFormulas
    above: tuple[Formula, ...]
    before: tuple[tuple[MatchFormulas, Formula], ...]


class FallibleRule(NamedTuple):
    """A rule whose condition, explanation or limit (``what``) may have no value: where, and among which events.

    ``usual``: maybe for events that the service sends. ``witness`` is one of the events, None if there is none yet.
    """

    match: MatchFormulas
    what: str
    formula: Formula
    among: Formula
    usual: bool
    witness: Witness | None


class RuleExample(NamedTuple):
    """An event for which a rule has a result. It reaches the rules before as well: their conditions do not hold."""

    match: MatchFormulas
    result: str
    witness: Witness


class RuleSearch:
    """The findings about the rules of one policy, whatever other policies decide."""

    def __init__(self, search: Search, policy: PolicyOutcomes) -> None:
        self._search = search
        self._policy = policy
        self._solver = search.proof.conditions_solver()
        self._solver.add(policy.evaluated)
        self._dead: list[DeadRule] = []  # outermost ones
        self._failing: list[FallibleRule] = []
        self._total = sum(1 for _match in policy.every())
        self._marks: dict[int, Formula] = {}  # by the number of a match
        self.seen: list[RuleExample] = []  # an event for each result that a rule can have

    def findings(self) -> Iterator[ProofFinding]:
        """Yield the findings of all rules, in the order of the file."""
        with self._solver.scope():
            self._block(self._policy.matches, ())
        yield from map(self._why_dead, self._dead)
        for one in self._failing:
            yield from self._why_failing(one)

    def _block(self, matches: tuple[MatchFormulas, ...], above: tuple[Formula, ...]) -> None:
        """Go through a block of matches, for events that reach it: they are what the solver assumes."""
        solver = self._solver
        before: list[tuple[MatchFormulas, Formula]] = []
        for match in matches:
            self._search.progress(f"rules of {self._policy.name}", match.number, self._total)
            alive = not self._see(match, "holds", match.holds).never
            if not alive:
                self._dead.append(DeadRule(match, above, tuple(before)))
            fails = self._fails(match, "condition", match.fails, match.reached)
            if alive:
                self._fails(match, "explanation", conj((match.holds, match.explanation_fails)), match.reached)
                ungrouped = conj((match.holds, neg(match.explanation_fails), match.group_fails))
                self._fails(match, "limit", ungrouped, match.reached)
            if match.inner is not None and alive:
                with solver.scope():
                    solver.add(match.holds)
                    self._block(match.inner, (*above, *(left for _match, left in before), match.holds))
            if alive or fails:  # otherwise it takes nothing
                left = neg(disj((match.fails, match.ends())))
                solver.add(left)
                before.append((match, left))
        if self.seen:  # what the last rule leaves shows that its condition does not hold
            self._see(matches[-1], "does not hold", neg(matches[-1].holds))

    def _fails(self, match: MatchFormulas, what: str, formula: Formula, reached: Formula) -> bool:
        """Return whether an expression of a rule may have no value for the events that the solver assumes."""
        found = self._see(match, f"{what} fails", formula)
        if found.never:
            return False
        usual = not self._solver.ask(formula, self._search.proof.normal).never
        among = reached if what == "condition" else conj((reached, match.holds))
        self._failing.append(FallibleRule(match, what, conj((reached, formula)), among, usual, found.witness))
        return True

    def _see(self, match: MatchFormulas, result: str, formula: Formula) -> SolverResult:
        """Return whether a rule may have a result, and keep an event that has it, a modest one if possible."""
        found = self._solver.ask(formula)
        if not found.possible:
            return found
        for wish in (self._search.proof.modest, self._search.proof.soon):
            better = found if self._solver.holds(found.model, wish) else self._solver.ask(formula, wish)
            if better.possible:
                found = better
                break
        if found.witness is not None:
            self.seen.append(RuleExample(match, result, found.witness))
        return found

    def _why_failing(self, one: FallibleRule) -> Iterator[ProofFinding]:
        """Yield for which events an expression of a rule has no value."""
        search, match = self._search, one.match
        lacks = "names no group" if one.what == "limit" else "has no value"
        message = f"the {one.what} of rule {match.path} {lacks}, and the event is held, when {WHEN}"
        hint = "test for it first, with has() or an earlier rule, if this is not what you want"
        finding = at_rule("rule-can-fail", "warning", match, message, hint)
        if one.what != "condition":
            place = match.data["explanation"] if one.what == "explanation" else match.data["limit"]["group"]
            finding = replace(finding, line=place["line"], column=place["column"])
        if not one.usual and one.witness is not None:
            decision = search.proof.decide(one.witness)
            if any(verdict.error and verdict.rule == match.path for verdict in self._verdicts(decision)):
                shown = Example(one.witness, (decision,), None)
                yield search.by_example(replace(finding, severity="note"), shown, unusual=True)
                return
        about = search.reads(match)
        yield from search.by_severity(finding, one.formula, among=one.among, about=about)

    def _verdicts(self, decision: Decision) -> list[Verdict]:
        return [verdict for verdict in decision.verdicts if verdict.policy == self._policy.name]

    def _why_dead(self, dead: DeadRule) -> ProofFinding:
        """Return what is wrong with a rule that never decides."""
        policy, match, path = self._policy, dead.match, dead.match.path
        takers = self._takers(dead)
        if not takers and self._solver.ask(match.holds).never:
            message = (
                f"rule {path} never applies: no event meets {conflict_words(self._search, self._solver, policy, match)}"
            )
            hint = "correct the condition, or remove the rule"
            return at_rule("unsatisfiable-rule", "warning", match, message, hint)
        default = match.data["condition"] is None and match.data.get("output") == HOLD
        by = f"{_listed(takers)} before it" if takers else "the conditions around it"
        verb = "take" if len(takers) != 1 else "takes"
        message = f"rule {path} never decides: {by} {verb} every event that it is for"
        hint = "" if default else f"move it before {takers[0]}, or remove it" if takers else "remove it"
        return at_rule("shadowed-rule", "note" if default else "error", match, message, hint)

    def _takers(self, dead: DeadRule) -> list[str]:
        """Return the rules of the same block that take the events of a rule, as few as show it."""
        marks = [self._mark(match, left) for match, left in dead.before]
        needed = self._solver.unsat_core((*dead.above, dead.match.holds), marks)
        return [match.path for place, (match, _left) in enumerate(dead.before) if place in needed]

    def _mark(self, match: MatchFormulas, left: Formula) -> Formula:
        """Return a Boolean that is defined as what a match leaves, so that the solver reads the formula only once."""
        if match.number not in self._marks:
            self._marks[match.number] = self._search.proof.problem.boolean(f"left by {self._policy.name} {match.path}")
            self._solver.add(implies(self._marks[match.number], left))
        return self._marks[match.number]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED] if more else names) + more
