# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names in Resources of a model: those that the solver knows, and others that agree with all it says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ....events import MAX_NAMES
from ..encode.resources import NameCount, Resources
from ..terms import Formula, same
from .model_texts import FoundTexts
from .model_values import ModelValues

_MOST_ALIKE = 200  # names that a loop goes over and nothing else tells apart


class ResourceNames:
    """Makes up the names of a model, of which the solver knows only some, and how many there are."""

    def __init__(self, values: ModelValues, resources: Resources, texts: FoundTexts, invented: set[str] | None) -> None:
        """``invented`` are names of no model that are in all lists of texts, None if nothing reads such a list."""
        self._values, self._resources, self._texts, self._invented = values, resources, texts, invented
        known = [(texts.of(name), name) for name in list(resources.names.values())]
        # Names, and their terms.
        self._known = {text: name for text, name in known if values.truth(resources.has(name))}
        self._missing = values.number(resources.count) - len(self._known)  # entries
        self._differing = self._missing  # at most so many of them are further names
        if resources.distinct is not None:
            self._differing = values.number(resources.distinct.count) - len(self._known)
        self._counted = {  # with how many further entries each count has
            one.key: (one, values.number(one.number) - sum(self._has(one, name) for name in self._known.values()))
            for one in resources.counts.values()
        }

    def make(self) -> list[str] | None:
        """Return the names, None where too few were found that agree with all loops."""
        first, known = self._resources.first, list(self._known)
        if first is not None:
            known = list(dict.fromkeys([self._texts.of(first), *known]))
        found: dict[str, Any] = {}
        for text, name in self._candidates(known):
            if self._missing <= 0 or len(found) >= self._differing:
                break
            self._try(text, name, found)
        more = list(found)
        if not self._values.truth(self._resources.each_once):
            listed = {**found, **dict(reversed(self._known.items()))}
            while self._missing > 0:
                again = next((text for text, name in listed.items() if self._fits(name)), None)
                if again is None:
                    return None
                more.append(again)
                self._count(listed[again])
        if self._missing or any(needed for _one, needed in self._counted.values()):
            return None  # a model may have names that are more than their number: it knows few of them at a time
        return [*more, *known] if first is None else [*known, *more]

    def _candidates(self, known: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield names beside those of the model, each with its term: this VM leads if nothing else is asked."""
        own = self._texts.of(self._resources.own)
        asked = {self._texts.of(name).lower() for name in self._resources.names.values()}
        # Of a list of texts, a model does not know whether it has a term that was not asked for.
        if self._resources.first is None and self._invented is None and own.lower() not in asked:
            yield own, self._resources.own
        taken = {text.lower() for text in self._texts.by_term.values()}  # with these a predicate may compare a name
        yield from ((one, one) for one in _names(known) if one.lower() not in taken)

    def _try(self, text: str, name: Any, found: dict[str, Any]) -> None:
        """Add a name where it agrees with the model, in no list of texts or else in all of them."""
        if self._agrees(name):
            found[text] = name
        elif self._invented is not None:
            self._invented.add(text)
            if self._agrees(name):
                found[text] = name
            else:
                self._invented.remove(text)
        if text in found:
            self._count(name)

    def _agrees(self, name: Any) -> bool:
        """Return whether a name may be in the list as far as loops and counts go."""
        return loops_allow(self._resources, self._values.truth, name) and self._fits(name)

    def _fits(self, name: Any) -> bool:
        """Return whether what is counted allows a further entry."""
        return all(
            needed > 0 if self._has(one, name) else needed < self._missing for one, needed in self._counted.values()
        )

    def _count(self, name: Any) -> None:
        self._missing -= 1
        for key, (one, needed) in self._counted.items():
            self._counted[key] = one, needed - self._has(one, name)

    def _has(self, one: NameCount, name: Any) -> bool:
        return self._values.truth(one.counts(name))


def loops_allow(resources: Resources, holds: Callable[[Formula], bool], name: Any) -> bool:
    """Return whether a name may be in the list of a model as far as loops go; ``holds`` evaluates formulas."""
    for loop in resources.loops:
        value, error = loop.predicate(name)
        fails = holds(error)
        if (fails and not holds(loop.fails)) or (
            not fails and holds(same(value, loop.deciding)) and not holds(loop.decides)
        ):
            return False
    return True


def _names(names: Sequence[str]) -> Iterator[str]:
    """Yield names of other VMs."""
    yield from (f"vm_{number}" for number in range(MAX_NAMES + 1))
    yield from (f"{name}{number}" for name in names for number in range(_MOST_ALIKE))
    yield from (f"{number}{name}" for name in names for number in range(_MOST_ALIKE))
