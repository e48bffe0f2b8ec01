# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for what a policy could do without: rules, and parts of conditions, whose removal changes nothing.

The rules are tried in order. What was found is removed for all that follows, so all findings of a policy are true
together. Nothing relies on a rule that never decides, since another finding says to remove it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...policy.decision import HOLD
from ...policy.forms import Literal
from ..smt.encode.decisions import MatchFormulas, PolicyOutcomes
from ..smt.encode.logic import Place
from ..smt.terms import Formula, conj, disj, neg, same
from .finding import ProofFinding
from .search import Search, at_rule

_MOST_NAMED = 3  # rules in a message
_MOST_OPERANDS = 40  # of a condition: each is a question about all of them


class Treatment(NamedTuple):
    """What happens to an event: what a rule does and, if it has one, its explanation. Neither is empty for a rule."""

    does: str
    explanation: str = ""


_FAILS, _ABSTAINS = Treatment("fails"), Treatment("abstains")


class _Question(NamedTuple):
    """What is asked of a block of matches. ``decides``: of a match that is no group and whose condition holds."""

    decides: Callable[[MatchFormulas], Formula]
    fails: Callable[[MatchFormulas], Formula]
    abstains: Formula


class _Shorter(NamedTuple):
    """An operand that a condition can do without, and where it would matter, which is nowhere."""

    match: MatchFormulas
    source: str
    matters: Formula
    earlier: tuple[MatchFormulas, ...]


class RedundancySearch:
    """The findings about what one policy could do without. ``dead`` are paths of rules that never decide."""

    def __init__(self, search: Search, policy: PolicyOutcomes, dead: Collection[str]) -> None:
        self._policy = policy
        self._dead = {one.number for one in policy.every() if _within(one.path, dead)}
        self._proof = search.proof
        self._solver = search.proof.conditions_solver()
        self._solver.add(policy.evaluated)
        self._removed: set[int] = set()  # numbers of matches
        self._known: dict[tuple[int, Treatment], Formula] = {}  # by a match and what it and those after it do
        self._found: list[ProofFinding] = []
        self._shorter: list[_Shorter] = []

    def findings(self) -> Iterator[ProofFinding]:
        """Yield notes."""
        self._block(self._policy.matches, ())
        yield from self._found
        for match in self._policy.every():
            parts = [f"`{one.source}` changes nothing: {self._why(one)}" for one in self._shorter if one.match is match]
            if parts:
                message = f"in the condition of rule {match.path}, {'; '.join(reversed(parts))}"
                hint = "leave it out, or see whether it was to say something else"
                found = at_rule("simpler-condition", "note", match, message, hint)
                place = match.data["condition"]
                yield replace(found, line=place["line"], column=place["column"])

    def _block(self, matches: Sequence[MatchFormulas], after: Sequence[MatchFormulas]) -> None:
        """Go through a block, for events that reach it; ``after`` are the matches that are tried after it."""
        for number, match in enumerate(matches):
            rest = (*matches[number + 1 :], *after)
            if match.number not in self._dead:
                others = any(one is not match and one.number not in self._removed for one in matches)
                if others and self._never(self._otherwise(match, rest)):  # a block has at least one
                    self._found.append(self._redundant(match, rest))
                    self._removed.add(match.number)
                    continue
                self._shorten(match, matches[:number])
                if match.inner is not None:
                    with self._solver.scope():
                        self._solver.add(match.holds)
                        self._block(match.inner, () if match.conditional else rest)
            self._solver.add(neg(match.fails))
            self._solver.add(neg(match.ends(self._removed)))

    def _never(self, formula: Formula) -> bool:
        return self._solver.excludes(formula)

    # Rules

    def _otherwise(self, match: MatchFormulas, rest: Sequence[MatchFormulas]) -> Formula:
        """Return which events are treated otherwise without a match, when the ``rest`` is tried instead."""

        def decides(rule: MatchFormulas) -> Formula:
            decided = conj((neg(rule.output_fails), neg(self._where(rest, _treatment(rule)))))
            return disj((conj((rule.output_fails, neg(self._where(rest, _FAILS)))), decided))

        question = _Question(decides, lambda _rule: neg(self._where(rest, _FAILS)), neg(self._where(rest, _ABSTAINS)))
        return self._of((match,), question, end=False)

    def _where(self, rest: Sequence[MatchFormulas], wanted: Treatment) -> Formula:
        """Return which events get a treatment when these matches are tried in order, and then the policy abstains."""

        def decides(rule: MatchFormulas) -> Formula:
            if wanted == _FAILS:
                return rule.output_fails
            return conj((neg(rule.output_fails), self._alike(rule, wanted)))

        def fails(rule: MatchFormulas) -> Formula:
            return wanted == _FAILS and rule.number not in self._dead

        question = _Question(decides, fails, wanted == _ABSTAINS)
        new = next((place for place, one in enumerate(rest) if (one.number, wanted) in self._known), len(rest))
        end = self._known[rest[new].number, wanted] if new < len(rest) else wanted == _ABSTAINS
        for match in reversed(rest[:new]):
            end = self._known[match.number, wanted] = self._of((match,), question, end)
        return end

    def _of(self, matches: Sequence[MatchFormulas], question: _Question, end: Formula) -> Formula:
        """Return for which events the answer is yes, when matches are tried in order; ``end`` where they go on."""
        for match in reversed(matches):
            if match.number in self._removed:
                continue
            if match.inner is None:
                inner = question.decides(match)
            else:
                inner = self._of(match.inner, question, question.abstains if match.conditional else end)
            failed = conj((match.fails, question.fails(match)))
            end = disj((conj((match.holds, inner)), failed, conj((neg(match.holds), neg(match.fails), end))))
        return end

    def _alike(self, rule: MatchFormulas, wanted: Treatment) -> bool:
        """Return whether a rule does what is wanted. A default rule that holds does not count: the rules that it
        repeats say what is meant, and still hold if those between them change.
        """
        default = rule.data["condition"] is None and rule.data["output"] == HOLD
        if rule.number in self._dead or default:
            return False
        does = _treatment(rule)
        return does.does == wanted.does and wanted.explanation in ("", does.explanation)

    def _redundant(self, match: MatchFormulas, rest: Sequence[MatchFormulas]) -> ProofFinding:
        takers = self._takers(match, rest)
        message = f"removing rule {match.path} changes nothing"
        if takers:
            reason = any(one.data.get("explanation") for one in takers) and not match.data.get("explanation")
            names = " and ".join(one.path for one in takers)
            does = f"rule {names} does" if len(takers) == 1 else f"rules {names} do"
            message += f" but the rule{' and the reason' if reason else ''} that decisions name: {does} the same"
        hint = "remove it, or see whether it was to do something else"
        return at_rule("redundant-rule", "note", match, message, hint)

    def _takers(self, match: MatchFormulas, rest: Sequence[MatchFormulas]) -> list[MatchFormulas]:
        """Return the rules that decide the events of a match without it; none if they are too many to name."""
        wanted = {_treatment(one) for one in _leaves((match,))}
        takers: list[MatchFormulas] = []
        left: list[Formula] = [match.holds]
        for one in _leaves(rest):
            if not any(self._alike(one, each) for each in wanted):
                continue
            here = self._decided_by(one, rest)
            if not self._never(conj((*left, here))):
                takers.append(one)
                left.append(neg(here))
                if len(takers) > _MOST_NAMED or self._never(conj(left)):
                    break
        return takers if len(takers) <= _MOST_NAMED else []

    def _decided_by(self, rule: MatchFormulas, matches: Sequence[MatchFormulas]) -> Formula:
        """Return which events a rule decides, when matches are tried in order."""
        question = _Question(lambda match: match.number == rule.number, lambda _rule: False, abstains=False)
        return self._of(matches, question, end=False)

    # Conditions

    def _shorten(self, match: MatchFormulas, earlier: Sequence[MatchFormulas]) -> None:
        """Find the operands that a condition can do without."""
        if match.condition is None:
            return
        pairs = list(match.condition.pairs())
        grouping = match.inner is not None and any(isinstance(part.form, Literal) for _outer, part in pairs)
        if len(pairs) > _MOST_OPERANDS or grouping:  # a group with only a literal left has no condition
            return
        false = conj((neg(match.holds), neg(match.fails)))
        dropped: set[Place] = set()
        for outer, part in pairs:
            others = [one for one in outer.inner if one is not part and one.place not in dropped]
            if not others or any(start <= part.place[0] < end for start, end in dropped):
                continue
            met, not_met = match.condition.without({*dropped, part.place})
            matters = disj((neg(same(met, match.holds)), neg(same(not_met, false))))
            if self._never(matters):
                dropped.add(part.place)
                source = " ".join(match.data["condition"]["source"][slice(*part.place)].split())
                left = tuple(one for one in earlier if one.number not in self._removed)
                self._shorter.append(_Shorter(match, source, matters, left))

    def _why(self, one: _Shorter) -> str:
        """Return why an operand does not matter."""
        block_reached = one.earlier[0].reached if one.earlier else one.match.reached
        left = [neg(disj((each.fails, each.ends(self._removed)))) for each in one.earlier]
        needed = self._proof.solver.unsat_core((self._policy.evaluated, one.matters), [block_reached, *left])
        takers = [each.path for place, each in enumerate(one.earlier, 1) if place in needed]
        if 0 < len(takers) <= _MOST_NAMED:
            names = " and ".join(takers)
            return f"rule {names} takes those" if len(takers) == 1 else f"rules {names} take those"
        return "the rules and conditions before it say so already" if needed else "the rest says so already"


def _treatment(rule: MatchFormulas) -> Treatment:
    """Return what a rule does, in a text that is the same for rules that do the same."""
    data = rule.data
    does = {
        key: value for key, value in data.items() if key not in ("id", "line", "column", "condition", "explanation")
    }
    if rule.limit_group is not None:
        does["limit"] = {**data["limit"], "group": rule.limit_group}
    explanation = data.get("explanation")
    return Treatment(json.dumps(does, sort_keys=True), explanation["source"] if explanation else "")


def _within(path: str, dead: Collection[str]) -> bool:
    return any(path[:place] in dead for place, one in enumerate(f"{path}.") if one == ".")


def _leaves(matches: Sequence[MatchFormulas]) -> Iterator[MatchFormulas]:
    for match in matches:
        if match.inner is None:
            yield match
        else:
            yield from _leaves(match.inner)
