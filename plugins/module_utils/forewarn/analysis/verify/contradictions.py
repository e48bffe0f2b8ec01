# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why no event meets a condition: the parts of it that contradict each other, and what each of them allows.

A part of a conjunction is an operand of its ``&&``. What is said of it is proven: that the named parts exclude each
other, and that a part is true for the values that are given and for no others. Otherwise no values are given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ...policy import forms as f
from ..artifacts import every_part
from ..smt.effort import TooCostlyError
from ..smt.encode.decisions import MatchFormulas, PolicyOutcomes
from ..smt.encode.logic import ConditionPart
from ..smt.solver import Solver
from ..smt.terms import Formula
from ..wording import Wording
from .search import Search

_MOST_PAIRED = 12  # parts: with more, each pair of them is not asked for
_MOST_NAMED = 6  # parts in a message
_MOST_PARTS = 40  # each is a question about all others


def conflict_words(search: Search, solver: Solver, policy: PolicyOutcomes, match: MatchFormulas) -> str:
    """Return why no event meets the condition of a rule, to be read after "no event meets".

    ``solver`` assumes no more than that the policy is asked.
    """
    if match.condition is None:
        return "its condition"
    try:
        return _Reason(search, policy, match).words(_smallest(solver, list(_conjuncts(match.condition))))
    except TooCostlyError:  # the rule is proven to be dead, and that must not be lost
        return "its condition"


def _conjuncts(part: ConditionPart) -> Iterator[ConditionPart]:
    if not isinstance(part.form, f.And):
        yield part
    for one in part.inner if isinstance(part.form, f.And) else ():
        yield from _conjuncts(one)


def _smallest(solver: Solver, parts: Sequence[ConditionPart]) -> Sequence[ConditionPart]:
    """Return parts that exclude each other, without any of which this is not proven: one or two if that is enough."""

    def never(chosen: Sequence[ConditionPart]) -> bool:
        return solver.ask(*map(_true, chosen)).never

    for size in (1, 2) if len(parts) <= _MOST_PAIRED else (1,):
        for chosen in itertools.combinations(parts, size):
            if never(chosen):
                return chosen
    needed = list(parts)
    for one in parts if len(parts) <= _MOST_PARTS else ():
        others = [other for other in needed if other is not one]
        if never(others):
            needed = others
    return needed


def _true(part: ConditionPart) -> Formula:
    return part.without(())[0]


class _Reason:
    """Says which parts of one rule's condition exclude each other."""

    def __init__(self, search: Search, policy: PolicyOutcomes, match: MatchFormulas) -> None:
        self._wording: Wording = search.wording
        self._evaluated = policy.evaluated
        self._reads = sorted(search.reads(match))
        self._expression = match.data["condition"]

    def words(self, parts: Sequence[ConditionPart]) -> str:
        if len(parts) > _MOST_NAMED:
            return "its condition"
        if len(parts) == 1:
            return f"{self._description(parts[0])}{self._can_be(parts[0])}"
        named = [self._description(one, self._allows(one)) for one in parts]
        return f"{', '.join(named[:-1])} and {named[-1]} at once"

    def _description(self, part: ConditionPart, allows: str = "") -> str:
        start, end = part.place
        source, first = self._expression["source"], self._expression["line"]
        line = f"line {first + source[:start].count(chr(10))}"
        return f"`{' '.join(source[start:end].split())}` ({line}{allows and f': {allows}'})"

    def _allows(self, part: ConditionPart) -> str:
        """Return the values of one input for which a part is true; nothing if it is not about one input alone."""
        found = (self._wording.values(name, _true(part), self._evaluated) for name in self._reads)
        return next(filter(None, found), "")

    def _can_be(self, part: ConditionPart) -> str:
        """Return which values the only input of a part has at all."""
        names = set(_inputs(part.form))
        only = self._wording.values(names.pop(), True, self._evaluated, there=True) if len(names) == 1 else ""
        return only and f": there is only {only}"


def _inputs(form: f.Form) -> Iterator[str]:
    """Yield the names of the inputs that a form reads, as dimensions have them; anything else by a name of none."""
    for one in every_part(form):
        if isinstance(one, f.Access) and one.record is not None:
            yield f"{one.record}.{one.name}"
        elif isinstance(one, f.Variable):
            yield one.name
        elif isinstance(one, (f.PolicyVariable, f.Loop, f.Local, f.Bound, f.Bind)):
            yield "?"
