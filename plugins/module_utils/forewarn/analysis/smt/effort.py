# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an analysis may cost. Where that is too much, an expression is set aside, and the analysis begins again.

What is set aside may have any value, like all that is not understood: what depends on it is not proven, and nothing
else suffers. The limits are in z3's own units, not in seconds, so that they do not depend on the machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Callable, NamedTuple, TypeVar

from .terms import is_constant, require

TOTAL = 10_000_000  # units of z3 for all questions of one turn: some seconds
DIVIDED = 2  # what a unit costs where times are divided: z3 takes longer for it
TEXTS = 10  # to read one function of a text in a model
_TURNS = 3  # analyses; the last one answers what it can
_LOOP = 400  # what a loop over names weighs: its formulas are not in its term
_DIVISION = 20  # what a division weighs, in terms
_LITERALS = re.compile(r"\"[^\"]*\"|'[^']*'|\b\d+(\.\d+)?u?\b")
_Work = TypeVar("_Work", bound=Callable[..., Any])


class Subexpression(NamedTuple):
    """A part of an expression that z3 knows. ``place`` is where it stands first: file, line.

    ``divisions`` has what is divided, by the ids of quotients and remainders.
    """

    source: str
    place: str
    value: Any
    is_loop: bool
    divisions: Mapping[int, tuple[Any, Any]]

    @property
    def shape(self) -> str:
        """The part without its literals: parts of one shape cost alike."""
        return _LITERALS.sub("…", self.source)


class TooCostlyError(Exception):
    """A question reached the limit; ``expressions`` are to be set aside, by their sources, with their places."""

    def __init__(self, expressions: Mapping[str, str]) -> None:
        super().__init__(", ".join(expressions))
        self.expressions = expressions


class Effort:
    """What is left of the limit of one analysis, and what was set aside, by its source, with its place."""

    def __init__(self, aside: Mapping[str, str] | None = None, *, last: bool = True) -> None:
        self.aside = dict(aside or {})
        # To begin again costs half as much at most: ten seconds, all in all.
        self.left: float = TOTAL / 2 if aside else TOTAL
        self._last = last

    def spend(self, units: float) -> None:
        """Count what something has cost."""
        self.left -= units

    def reached(self, subexpressions: Mapping[str, Subexpression]) -> None:
        """Say that a question reached a limit. Raises TooCostlyError where something can be set aside in time."""
        found = {} if self._last else _costliest(subexpressions, self.aside)
        if found:
            raise TooCostlyError(found)


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


def current() -> Effort:
    """Return the effort of the analysis that is under way; outside of one, only single questions have a limit."""
    found = _current.get()
    if found is None:
        found = Effort()
        found.left = math.inf
    return found


def units_of(solver: Any) -> int:
    """Return what z3 has spent on all questions of a solver's context."""
    return next((int(value) for name, value in solver.statistics() if name == "rlimit count"), 0)


def within_limits(work: _Work) -> _Work:
    """Return an analysis that begins again without what costs too much."""

    @wraps(work)
    def limited(*arguments: Any, **options: Any) -> Any:
        aside: dict[str, str] = {}
        for turn in range(1, _TURNS + 1):
            token = _current.set(Effort(aside, last=turn == _TURNS))
            try:
                return work(*arguments, **options)
            except TooCostlyError as found:
                aside.update(found.expressions)
            finally:
                _current.reset(token)
        raise AssertionError("the last turn sets nothing aside")

    return limited  # type: ignore[return-value]  # it takes and returns the same


def set_aside(aside: Mapping[str, str], opaque: Collection[str]) -> list[str]:
    """Return in words which expressions may have any value because they cost too much: one for each shape."""
    shapes: dict[str, list[str]] = {}
    for source in aside:
        if source in opaque:
            shapes.setdefault(_LITERALS.sub("…", source), []).append(source)
    found = []
    for first, *more in shapes.values():
        others = f" and {len(more)} more like it" if more else ""
        found.append(
            f"{first} ({aside[first]}){others} may have any value, since to know more costs too much: "
            "what depends on it is not proven"
        )
    return found


def _costliest(subexpressions: Mapping[str, Subexpression], aside: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of the shapes that weigh most, all in all: those that weigh half as much cost too much, too."""
    weights: dict[str, int] = {}
    for one in subexpressions.values():
        if one.source not in aside and not is_constant(one.value):
            weight = _LOOP if one.is_loop else sum(_weights(one.value, one.divisions))
            weights[one.shape] = weights.get(one.shape, 0) + weight
    if not weights:
        return {}
    most = max(weights.values())
    return {one.source: one.place for one in subexpressions.values() if weights.get(one.shape, 0) * 2 > most}


def _weights(term: Any, divisions: Mapping[int, tuple[Any, Any]]) -> Iterator[int]:
    """Yield the weight of each operation in a term."""
    z3 = require()
    kinds = (z3.Z3_OP_IDIV, z3.Z3_OP_MOD, z3.Z3_OP_DIV, z3.Z3_OP_REM)
    seen, stack = set(), [term]
    while stack:
        one = stack.pop()
        if one.get_id() not in seen:
            seen.add(one.get_id())
            divided = divisions.get(one.get_id())
            yield _DIVISION if divided is not None or one.decl().kind() in kinds else 1
            stack += one.children() if divided is None else [divided[1]]
