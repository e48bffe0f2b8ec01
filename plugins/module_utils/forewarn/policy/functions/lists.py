# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions on lists and sets (cel-go's extensions lists and sets, Kubernetes' list library), and loops' entries.

Elements may be of any type. What takes time with the square of the elements is limited by MAX_PAIRS, and counts as
steps of a loop (``count_comparisons``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ..evaluation_error import EvaluationError
from . import dynamic
from .dynamic import Dyn, no_overload

MAX_PAIRS = 1_000_000  # of elements, that one operation may compare
MAX_RANGE = 10_000  # elements


def equal(a: Any, b: Any) -> bool:
    """Compare element by element: within containers, Python's own ``==`` takes a NaN to be equal to itself."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(key in b and equal(value, b[key]) for key, value in a.items())
    return dynamic.equal(a, b) if isinstance(a, Dyn) else bool(a == b)


def _limited(pairs: int) -> None:
    if pairs > MAX_PAIRS:
        raise EvaluationError(f"more than {MAX_PAIRS} comparisons of elements")


def _among(element: Any, items: list[Any]) -> bool:
    return any(equal(element, item) for item in items)


def distinct(items: list[Any]) -> list[Any]:
    """Return the elements without those that equal an earlier one."""
    found: list[Any] = []
    for item in items:
        _limited(len(found) * len(items))
        if not _among(item, found):
            found.append(item)
    return found


def slice_of(items: list[Any], start: int, end: int) -> list[Any]:
    """Return the elements from a place up to, and without, another one."""
    if not 0 <= start <= end <= len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _comparable(items: list[Any]) -> list[Any]:
    """Return the values to sort elements by. Raises EvaluationError where CEL has no order of them."""
    if items and isinstance(items[0], Dyn):
        kinds = {dynamic.kind(item) for item in items}
        if len(kinds) > 1 or not kinds <= dynamic.NUMERIC | dynamic.ORDERED:
            raise no_overload("an order of elements", *items[:2])
        items = [item.value for item in items]
    if any(isinstance(item, float) and math.isnan(item) for item in items):
        raise EvaluationError("NaN has no place in an order")
    return items


def sort(items: list[Any]) -> list[Any]:
    """Return the elements in ascending order."""
    return sort_by(items, items)


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Return the elements in the ascending order of their keys."""
    compared = _comparable(keys)
    return [items[place] for place in sorted(range(len(items)), key=compared.__getitem__)]


def flatten(items: list[Any]) -> list[Any]:
    """Return the elements of lists as one list."""
    return [item for inner in items for item in inner]


def _extreme(items: list[Any], better: Callable[[Any, Any], bool]) -> Any:
    if not items:
        raise EvaluationError("an empty list has neither a least nor a greatest element")
    values = items
    if isinstance(items[0], Dyn):
        kinds = {dynamic.kind(item) for item in items}
        if not kinds <= dynamic.NUMERIC and (len(kinds) > 1 or not kinds <= dynamic.ORDERED):
            raise no_overload("an order of elements", *items[:2])
        values = [item.value for item in items]
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        raise EvaluationError("NaN has no place in an order")
    best = 0
    for place, value in enumerate(values):
        if better(value, values[best]):
            best = place
    return items[best]


def greatest(items: list[Any]) -> Any:
    """Return the greatest element, the first of equal ones."""
    return _extreme(items, lambda one, best: bool(one > best))


def least(items: list[Any]) -> Any:
    """Return the least element, the first of equal ones."""
    return _extreme(items, lambda one, best: bool(one < best))


def range_of(count: int) -> list[int]:
    """Return the numbers from 0 up to, and without, another one."""
    if count > MAX_RANGE:
        raise EvaluationError(f"a list of more than {MAX_RANGE} elements")
    return list(range(count))


def sets_contains(items: list[Any], others: list[Any]) -> bool:
    """Return whether each of the others is among the items."""
    _limited(len(items) * len(others))
    return all(_among(other, items) for other in others)


def sets_equivalent(items: list[Any], others: list[Any]) -> bool:
    """Return whether two lists have the same elements, however often."""
    return sets_contains(items, others) and all(_among(item, others) for item in items)


def sets_intersects(items: list[Any], others: list[Any]) -> bool:
    """Return whether some element is in both lists."""
    _limited(len(items) * len(others))
    return any(_among(other, items) for other in others)


# Loops with two variables go over pairs, and read each half of a pair.


def entries(items: Any) -> list[tuple[Any, Any]]:
    """Return place and element of each element of a list, or key and value of each entry of a map."""
    return list(items.items() if isinstance(items, dict) else enumerate(items))


def map_of(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the map with these entries. Raises EvaluationError for a key that is given more than once."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise EvaluationError("a key is given more than once")
    return made


def merged(maps: list[dict[Any, Any]]) -> dict[Any, Any]:
    """Return the entries of all maps as one map. Raises EvaluationError for a key that is given more than once."""
    return map_of([entry for one in maps for entry in one.items()])


def count_comparisons(arguments: Sequence[Any]) -> int:
    """Return how many elements a call of a function in QUADRATIC compares with each other, at the most."""
    values = [one.value if isinstance(one, Dyn) else one for one in arguments]
    sizes = [len(value) for value in values if isinstance(value, list)]
    return sizes[0] * sizes[-1] if sizes else 0


_SETS = ("contains", "equivalent", "intersects")
QUADRATIC = frozenset(
    ("distinct", "dyn distinct", *(f"sets_{name}" for name in _SETS), *(f"dyn sets.{name}" for name in _SETS))
)
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "distinct": distinct,
    "slice": slice_of,
    "sort": sort,
    "sort_by": sort_by,
    "flatten": flatten,
    "greatest": greatest,
    "least": least,
    "range": range_of,
    "sets_contains": sets_contains,
    "sets_equivalent": sets_equivalent,
    "sets_intersects": sets_intersects,
    "entries": entries,
    "entry": lambda first, second: (first, second),
    "first": lambda pair: pair[0],
    "second": lambda pair: pair[1],
    "map_of": map_of,
    "merged": merged,
    "listed": lambda pairs: pairs,
}
