# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of one text that is not constant: what they are made of, and which of them follow from each other.

The solver knows such a function by its values for the texts that policies mention. For all other texts it is an
uninterpreted function, until ``decode.text_search`` has found texts that all functions agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .patterns import in_case

_RELATIONS = ("starts_with", "ends_with", "contains", "matches")
_OF_CASE = (*_RELATIONS, "eq", "in")  # those that a pattern says of a text in one case


@dataclass(frozen=True)
class TextFunction:
    """A function of a text, applied to the term of one.

    ``function`` raises EvaluationError where it has no value. ``constants`` are those that it uses, samples of texts
    among them. ``relation`` is its meaning for a solver of texts, where it has one: ``starts_with``, ``ends_with`` or
    ``contains``, with the text, or ``matches``, with the compiled pattern. ``case`` is the function that it is,
    ``lower_ascii`` or ``upper_ascii``, if it is one of a text itself.
    """

    term: Any
    key: str
    function: Callable[[str], Any]
    type: str
    constants: tuple[Any, ...] = ()
    relation: tuple[str, Any] | None = None
    total: bool = False  # it has a value for every text
    case: str | None = None

    @property
    def is_int_of_text(self) -> bool:
        """Whether it is CEL's int(), of the text or of what functions make of it."""
        return self.key.startswith("string_to_int(")

    def then(
        self,
        key: str,
        function: Callable[[Any], Any],
        type_: str,
        constants: Sequence[Any] = (),
        *,
        relation: tuple[str, Any] | None = None,
        total: bool = True,
    ) -> TextFunction:
        """Return the function that applies another one to the value of this one."""
        inner, name = self.function, key.partition("(")[0]
        composed = function if self.key == _IDENTITY else lambda text: function(inner(text))
        case = name if self.key == _IDENTITY and name in ("lower_ascii", "upper_ascii") else None
        return TextFunction(
            self.term, key, composed, type_, (*self.constants, *constants), relation, total and self.total, case
        )

    def relation_of(self, kind: str, part: Any) -> tuple[str, Any] | None:
        """Return the relation of a text of which this function's value has a relation, None if there is none.

        ``kind`` and ``part`` are as in ``relation``, or ``eq`` with a text, or ``in`` with a list of texts.
        """
        if self.key == _IDENTITY:
            return (kind, part) if kind in _RELATIONS else None
        return None if self.case is None or kind not in _OF_CASE else ("matches", in_case(self.case, kind, part))


_IDENTITY = "·"


def identity(term: Any) -> TextFunction:
    """Return the function that makes of a text the text itself."""
    return TextFunction(term, _IDENTITY, lambda text: text, "string", total=True)


def follows(first: TextFunction, second: TextFunction) -> bool:
    """Return whether the second relation holds for each text for which the first one does. Neither is a pattern."""
    (kind, part), (other, smaller) = first.relation or ("", ""), second.relation or ("", "")
    if other == "starts_with":
        return bool(kind == other and part.startswith(smaller))
    if other == "ends_with":
        return bool(kind == other and part.endswith(smaller))
    return other == "contains" and kind in ("starts_with", "ends_with", "contains") and smaller in part


def branches(relations: Sequence[TextFunction]) -> Iterator[tuple[TextFunction, str]]:
    """Yield each beginning and each ending with what tells apart those of which a text has one at most.

    Those are the ones that the same other relation follows from, if any: the longest of the same kind.
    """
    for one in relations:
        kind, part = one.relation or ("", "")
        if kind in ("starts_with", "ends_with"):
            others = (other.relation for other in relations if other is not one and follows(one, other))
            shorter = [other[1] for other in others if other is not None and other[0] == kind and other[1] != part]
            yield one, f"{kind} {max(shorter, key=len, default=None)!r}"


def has_spellings(name: str) -> bool:
    """Return whether there may be another name that differs from this one in case only."""
    return not name.isascii() or any(one.isalpha() for one in name)
