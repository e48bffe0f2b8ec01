# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at each rule of one policy: whether it ever decides, and whether it can fail.

The rules are tried in order, as the engine does. What the rules before one take is assumed to be taken for all that
follows, so each rule is one question to the solver, and what it learns stays known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..policy.decision import HOLD
from .finding import ProofFinding
from .search import WHEN, Search, at_rule
from .smt.decisions import MatchFormulas, PolicyOutcomes
from .smt.solver import SolverAnswer
from .smt.terms import Formula, conj, disj, neg
from .symbolic.concrete import Witness

_MOST_NAMED = 8  # rules in a message


class Failing(NamedTuple):
    """A rule whose condition or explanation (``what``) may have no value: where, and among which events."""

    match: MatchFormulas
    what: str
    formula: Formula
    among: Formula


class Seen(NamedTuple):
    """An event for which a rule has a result. It reaches the rules before as well: their conditions do not hold."""

    match: MatchFormulas
    result: str
    witness: Witness


class RuleSearch:
    """The findings about the rules of one policy, whatever other policies decide."""

    def __init__(self, search: Search, policy: PolicyOutcomes) -> None:
        self._search = search
        self._policy = policy
        self._solver = search.proof.solver
        self._dead: list[MatchFormulas] = []  # those that never decide, outermost ones
        self._failing: list[Failing] = []
        self._total = sum(1 for _match in policy.every())
        self._left: dict[int, Formula] = {}  # by the number of a rule: the events that it does not take
        self.seen: list[Seen] = []  # an event for each result that a rule can have

    def findings(self) -> Iterator[ProofFinding]:
        """Yield the findings of all rules, in the order of the file."""
        with self._solver.assuming():
            self._solver.add(self._policy.asked)
            self._block(self._policy.matches)
        yield from map(self._why_dead, self._dead)
        for match, what, formula, among in self._failing:
            message = f"the {what} of rule {match.path} has no value, and the event is held, when {WHEN}"
            hint = "test for it first, with has() or an earlier rule, if this is not what you want"
            finding = at_rule("rule-can-fail", "warning", self._policy, match, message, hint)
            about = self._search.reads(self._policy, match)
            yield from self._search.by_severity(finding, formula, among=among, about=about)

    def _block(self, matches: tuple[MatchFormulas, ...]) -> None:
        """Go through a block of matches, for events that reach it: they are what the solver assumes."""
        solver = self._solver
        for match in matches:
            self._search.progress(f"rules of {self._policy.name}", match.number, self._total)
            alive = self._see(match, "holds", match.met)
            if not alive:
                self._dead.append(match)
            if self._see(match, "fails", match.failed):
                self._failing.append(Failing(match, "condition", conj((match.reached, match.failed)), match.reached))
            if alive and self._see(match, "is not explained", conj((match.met, match.unexplained))):
                met = conj((match.reached, match.met))
                self._failing.append(Failing(match, "explanation", conj((met, match.unexplained)), met))
            if match.inner is not None and alive:
                with solver.assuming():
                    solver.add(match.met)
                    self._block(match.inner)
            solver.add(neg(match.failed))
            solver.add(neg(_ends(match)))
        if self.seen:  # what the last rule leaves shows that its condition does not hold
            self._see(matches[-1], "does not hold", neg(matches[-1].met))

    def _see(self, match: MatchFormulas, result: str, formula: Formula) -> bool:
        """Return whether a rule may have a result, and keep an event that has it, a modest one if possible."""
        found = self._solver.ask(formula)
        if found.answer is SolverAnswer.POSSIBLE:
            modest = self._solver.ask(formula, self._search.proof.modest)
            found = modest if modest.answer is SolverAnswer.POSSIBLE else found
            if found.witness is not None:
                self.seen.append(Seen(match, result, found.witness))
        return found.answer is not SolverAnswer.NEVER

    def _why_dead(self, match: MatchFormulas) -> ProofFinding:
        """Return what is wrong with a rule that never decides."""
        policy, path = self._policy, match.path
        wanted = self._solver.ask(policy.asked, match.met).answer is not SolverAnswer.NEVER
        if not wanted:
            message = f"rule {path} never applies: no event meets its condition"
            hint = "remove the rule, or see which parts of its condition exclude each other"
            return at_rule("unsatisfiable-rule", "warning", policy, match, message, hint)
        takers = self._takers(match)
        default = match.data["condition"] is None and match.data.get("output") == HOLD
        by = f"{_listed(takers)} before it" if takers else "the conditions around it"
        verb = "take" if len(takers) != 1 else "takes"
        message = f"rule {path} never decides: {by} {verb} every event that it is for"
        hint = "" if default else f"move it before {takers[0]}, or remove it" if takers else "remove it"
        return at_rule("shadowed-rule", "note" if default else "error", policy, match, message, hint)

    def _takers(self, match: MatchFormulas) -> list[str]:
        """Return the rules of the same block that take the events of a rule, as few as show it."""
        block = next(one for one in _blocks(self._policy.matches) if match in one)
        earlier = block[: block.index(match)]
        for one in earlier:
            if one.number not in self._left:
                self._left[one.number] = neg(disj((one.failed, _ends(one))))
        left = [self._left[one.number] for one in earlier]
        needed = self._solver.core((self._policy.asked, block[0].reached, match.met), left)
        return [one.path for place, one in enumerate(earlier) if place in needed]


def _ends(match: MatchFormulas) -> Formula:
    """Return which events, of those that reach a match, it takes, but for those for which it fails.

    After a nested rule whose condition is a literal, or that has none, go the events that it does not take.
    """
    grouped = match.inner is not None and not match.conditional
    return conj((match.met, _taken(match.inner or ()))) if grouped else match.met


def _taken(matches: tuple[MatchFormulas, ...]) -> Formula:
    """Return which events, of those that reach a block of matches, end the search in it."""
    left: Formula = True
    parts = []
    for match in matches:
        ends = disj((match.failed, _ends(match)))
        parts.append(conj((left, ends)))
        left = conj((left, neg(ends)))
    return disj(parts)


def _blocks(matches: tuple[MatchFormulas, ...]) -> Iterator[tuple[MatchFormulas, ...]]:
    yield matches
    for match in matches:
        if match.inner is not None:
            yield from _blocks(match.inner)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} others" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED] if more else names) + more
