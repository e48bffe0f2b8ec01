# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions on lists and sets (cel-go's extensions lists and sets, Kubernetes' list library), and loops' entries.

Elements may be of any type. Functions that take quadratic time are limited by MAX_PAIRS, and their comparisons count as
steps of a loop (``count_comparisons``). All functions raise EvaluationError.
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
    """Return whether values are equal. Not Python's ``==``, for which a NaN in a container is equal to itself."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(key in b and equal(value, b[key]) for key, value in a.items())
    return dynamic.equal(a, b) if isinstance(a, Dyn) else bool(a == b)


def _check_pairs(pairs: int) -> None:
    if pairs > MAX_PAIRS:
        raise EvaluationError(f"more than {MAX_PAIRS} comparisons of elements")


def _contains(element: Any, items: list[Any]) -> bool:
    return any(equal(element, item) for item in items)


def distinct(items: list[Any]) -> list[Any]:
    """Return the elements without those that equal an earlier one."""
    found: list[Any] = []
    for item in items:
        _check_pairs(len(found) * len(items))
        if not _contains(item, found):
            found.append(item)
    return found


def slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    """Return the elements from index ``start`` to ``end``, exclusive."""
    if not 0 <= start <= end <= len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _order_values(items: list[Any], *, mixed_numbers: bool = False) -> list[Any]:
    """Return the values to compare elements by. Raises EvaluationError if CEL has no order of them.

    With ``mixed_numbers``, numbers may be of different types.
    """
    if items and isinstance(items[0], Dyn):
        kinds = {dynamic.kind(item) for item in items}
        same_kind = len(kinds) == 1 and kinds <= dynamic.NUMERIC | dynamic.ORDERED
        if not (same_kind or (mixed_numbers and kinds <= dynamic.NUMERIC)):
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
    values = _order_values(keys)
    return [items[place] for place in sorted(range(len(items)), key=values.__getitem__)]


def flatten(items: list[Any]) -> list[Any]:
    """Return the elements of lists as one list."""
    return [item for inner in items for item in inner]


def _extreme(items: list[Any], better: Callable[[Any, Any], bool]) -> Any:
    if not items:
        raise EvaluationError("an empty list has neither a least nor a greatest element")
    values = _order_values(items, mixed_numbers=True)
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


def build_range(count: int) -> list[int]:
    """Return the numbers from 0 to ``count``, exclusive."""
    if count > MAX_RANGE:
        raise EvaluationError(f"a list of more than {MAX_RANGE} elements")
    return list(range(count))


def sets_contains(items: list[Any], others: list[Any]) -> bool:
    """Return whether each of the others is among the items."""
    _check_pairs(len(items) * len(others))
    return all(_contains(other, items) for other in others)


def sets_equivalent(items: list[Any], others: list[Any]) -> bool:
    """Return whether two lists have the same elements, regardless of repetitions."""
    return sets_contains(items, others) and all(_contains(item, others) for item in items)


def sets_intersects(items: list[Any], others: list[Any]) -> bool:
    """Return whether some element is in both lists."""
    _check_pairs(len(items) * len(others))
    return any(_contains(other, items) for other in others)


# Loops with two variables iterate over pairs; their variables are the first and the second of a pair.


def entries(items: Any) -> list[tuple[Any, Any]]:
    """Return the pairs of index and element of a list, or of key and value of a map."""
    return list(items.items() if isinstance(items, dict) else enumerate(items))


def build_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the map with these entries. Raises EvaluationError for a key that is given more than once."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise EvaluationError("a key is given more than once")
    return result


def merge_maps(maps: list[dict[Any, Any]]) -> dict[Any, Any]:
    """Return the entries of all maps as one map. Raises EvaluationError for a key that is given more than once."""
    return build_map([entry for one in maps for entry in one.items()])


def count_comparisons(arguments: Sequence[Any]) -> int:
    """Return the greatest number of comparisons that a call of a function in QUADRATIC makes."""
    values = [one.value if isinstance(one, Dyn) else one for one in arguments]
    sizes = [len(value) for value in values if isinstance(value, list)]
    return sizes[0] * sizes[-1] if sizes else 0


_SETS = ("contains", "equivalent", "intersects")
QUADRATIC = frozenset(
    ("distinct", "dyn distinct", *(f"sets_{name}" for name in _SETS), *(f"dyn sets.{name}" for name in _SETS))
)
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "distinct": distinct,
    "slice": slice_list,
    "sort": sort,
    "sort_by": sort_by,
    "flatten": flatten,
    "greatest": greatest,
    "least": least,
    "range": build_range,
    "sets_contains": sets_contains,
    "sets_equivalent": sets_equivalent,
    "sets_intersects": sets_intersects,
    "entries": entries,
    "entry": lambda first, second: (first, second),
    "first": lambda pair: pair[0],
    "second": lambda pair: pair[1],
    "map_of": build_map,
    "merged": merge_maps,
    "listed": lambda pairs: pairs,
}
