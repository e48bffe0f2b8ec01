# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values whose type is known only at run time: those of dyn(), and elements of lists and maps of several types.

Such a value is a ``Dyn``, which carries its type. The overload of an operator or a function is chosen at run time, from
the table that the compiler uses for all other values. Equality, order and map keys are those of the CEL language
definition ("Equality", "Ordering", "Numeric values"): numbers of different types are on one number line.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..evaluation_error import EvaluationError

if TYPE_CHECKING:
    from .overloads import Overload

NUMERIC = frozenset(("int", "uint", "double"))
KEYS = frozenset(("bool", "int", "uint", "string"))  # of maps
ORDERED = frozenset(("bool", "string", "bytes", "timestamp", "duration"))
# CEL's names of types, where they differ from those of the typed form.
_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
}


class Dyn:
    """A value and its CEL type: ``list(int)``.

    As keys of a map, two are equal if they are exactly the same number, or the same value of the same type.
    """

    __slots__ = ("type", "value")

    def __init__(self, type_: str, value: Any) -> None:
        self.type, self.value = type_, value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dyn):
            return False
        first, second = kind(self), kind(other)
        same = first == second or (first in NUMERIC and second in NUMERIC)
        return bool(same and self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value) if kind(self) in NUMERIC else hash((kind(self), self.value))

    def __repr__(self) -> str:
        return f"dyn({self.value!r})"


def kind(one: Dyn) -> str:
    """Return the kind of a value, its type without parameters: ``list`` for a ``list(int)``."""
    return one.type.partition("(")[0]


@lru_cache(maxsize=256)
def inner_types(type_: str) -> tuple[str, ...]:
    """Return the parameters of a type: of a list or an optional value one, of a map those of its keys and values."""
    outer, _open, inner = type_[:-1].partition("(")
    if outer != "map":
        return (inner,)
    key, _comma, value = inner.partition(", ")  # a key has no types inside
    return key, value


def to_dyn(type_: str, value: Any) -> Dyn:
    """Return a value of a type as a Dyn."""
    return value if type_ == "dyn" else Dyn(type_, value)


def to_plain(value: Any) -> Any:
    """Return a value without any Dyn in it."""
    if isinstance(value, Dyn):
        return to_plain(value.value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_plain, value))
    if isinstance(value, dict):
        return {to_plain(key): to_plain(item) for key, item in value.items()}
    return value


def elements(one: Dyn) -> list[Dyn]:
    """Return the elements of a list, or the keys of a map. Raises EvaluationError for anything else."""
    if kind(one) not in ("list", "map"):
        raise no_overload("a loop", one)
    of = inner_types(one.type)[0]
    return [to_dyn(of, item) for item in one.value]


def ordered_elements(one: Dyn) -> list[Dyn]:
    """Return the elements as ``elements``, for loops whose result has an order. Raises EvaluationError for a map."""
    found = elements(one)
    if kind(one) == "map" and len(found) > 1:
        raise EvaluationError("the keys of a map have no order; ask with exists(), all() or exists_one()")
    return found


def _number_comparison(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison of numbers; if one is a double, the other is converted to the nearest double."""

    def compare(one: Any, other: Any) -> bool:
        if isinstance(one, float) or isinstance(other, float):
            return holds(float(one), float(other))
        return holds(one, other)

    return compare


number_eq = _number_comparison(operator.eq)


def equal(one: Dyn, other: Dyn) -> bool:
    """Return whether two values are equal; numbers may be of different types, other values may not."""
    first, second = kind(one), kind(other)
    if first in NUMERIC and second in NUMERIC:
        return number_eq(one.value, other.value)
    if first != second or (first in ("list", "map") and len(one.value) != len(other.value)):
        return False
    if first == "list":
        return all(map(equal, elements(one), elements(other)))
    if first == "map":
        pairs = ((item, _find_value(other, key)) for key, item in _entries(one))
        return all(found is not None and equal(item, found) for item, found in pairs)
    if first == "optional" and one.value and other.value:
        left, right = (to_dyn(inner_types(side.type)[0], side.value[0]) for side in (one, other))
        return equal(left, right)
    return bool(one.value == other.value)


def _entries(one: Dyn) -> list[tuple[Dyn, Dyn]]:
    key, value = inner_types(one.type)
    return [(to_dyn(key, name), to_dyn(value, item)) for name, item in one.value.items()]


def _find_value(mapping: Dyn, key: Dyn) -> Dyn | None:
    """Return the value of a key, None if there is none.

    A key that is a double finds the same number of another type.
    """
    if kind(key) not in KEYS and kind(key) != "double":
        return None
    key_type, value_type = inner_types(mapping.type)
    name: Any = key
    if key_type != "dyn":
        found = kind(key)
        if found in NUMERIC and key_type in NUMERIC:
            name = int(key.value) if key.value == key.value // 1 else None
        else:
            name = key.value if found == key_type else None
        if name is None:
            return None
    return to_dyn(value_type, mapping.value[name]) if name in mapping.value else None


def _comparison(symbol: str, holds: Callable[[Any, Any], bool]) -> Callable[[Dyn, Dyn], bool]:
    numbers = _number_comparison(holds)

    def compare(one: Dyn, other: Dyn) -> bool:
        first, second = kind(one), kind(other)
        if first in NUMERIC and second in NUMERIC:
            return numbers(one.value, other.value)
        if first == second and first in ORDERED:
            return holds(one.value, other.value)
        raise no_overload(symbol, one, other)

    return compare


def contains(element: Dyn, container: Dyn) -> bool:
    """Return whether a list has an element, or a map a key. Raises EvaluationError for other values."""
    if kind(container) == "list":
        return any(equal(element, item) for item in elements(container))
    if kind(container) == "map" and (kind(element) in KEYS or kind(element) == "double"):
        return _find_value(container, element) is not None
    raise no_overload("in", element, container)


def map_key(one: Dyn) -> Dyn:
    """Return the value unchanged. Raises EvaluationError if it cannot be the key of a map."""
    if kind(one) not in KEYS:
        raise EvaluationError(f"a map cannot have keys of {type_name(one)}")
    return one


def index(container: Dyn, key: Dyn) -> Dyn:
    """Return the element of a list at an index, or the value of a key of a map. Raises EvaluationError."""
    if kind(container) == "map":
        found = _find_value(container, key)
        if found is None:
            raise EvaluationError(f"no such key: {to_plain(key)!r}")
        return found
    if kind(container) != "list" or kind(key) not in NUMERIC:
        raise no_overload("[]", container, key)
    items = elements(container)
    if not 0 <= key.value < len(items) or key.value != int(key.value):
        raise EvaluationError(f"index out of range: {to_plain(key)}")
    return items[int(key.value)]


def has_index(container: Dyn, key: Dyn) -> bool:
    """Return whether a list has an index, or a map a key. Raises EvaluationError for other values."""
    if kind(container) == "map":
        return _find_value(container, key) is not None
    if kind(container) != "list" or kind(key) not in NUMERIC:
        raise no_overload("[?]", container, key)
    return bool(0 <= key.value < len(container.value) and key.value == int(key.value))


def has(container: Dyn, name: str) -> bool:
    """Return whether a map has a key. Raises EvaluationError for anything else."""
    if kind(container) != "map":
        raise no_overload("has()", container)
    return _find_value(container, Dyn("string", name)) is not None


def as_bool(one: Dyn) -> bool:
    """Return the value of a bool. Raises EvaluationError for other values."""
    if kind(one) != "bool":
        raise no_overload("a condition", one)
    return bool(one.value)


def concatenate(one: Dyn, other: Dyn) -> Dyn | None:
    """Return the concatenation of two lists, None for other values."""
    if kind(one) != "list" or kind(other) != "list":
        return None
    return Dyn("list(dyn)", elements(one) + elements(other))


def type_name(one: Dyn) -> str:
    """Return the name of a value's type as CEL's ``type()`` has it."""
    return _NAMES.get(kind(one), kind(one))


def no_overload(what: str, *arguments: Dyn) -> EvaluationError:
    """Return the error for arguments for which the operator or function ``what`` has no overload."""
    return EvaluationError(f"no such overload: {what} does not take {' and '.join(map(type_name, arguments))}")


def dispatcher(name: str, functions: Mapping[str, Callable[..., Any]]) -> Callable[..., Dyn]:
    """Return a function that chooses its overload by the types of its arguments, which are Dyn.

    ``name`` is CEL's name of the function or operator; ``functions`` maps names of overloads to their functions.
    """
    from . import overloads as table  # not at the top: only this needs it on a VM

    tables = (table.METHODS, table.FUNCTIONS, table.OPERATORS)
    overloads: list[Overload] = [overload for one in tables for overload in one.get(name, ())]

    is_operator = name in table.OPERATORS

    def call(*arguments: Dyn) -> Dyn:
        kinds = tuple(map(kind, arguments))
        for overload in overloads:
            if overload.kinds == kinds:
                return _call_overload(overload, functions[overload.name], arguments)
        concatenation = concatenate(*arguments) if name == "+" else None
        if concatenation is None:
            raise no_overload(name if is_operator else f"{name}()", *arguments)
        return concatenation

    return call


def _call_overload(overload: Overload, function: Callable[..., Any], arguments: tuple[Dyn, ...]) -> Dyn:
    if "E" not in overload.result:
        return Dyn(overload.result, function(*(one.value for one in arguments)))
    items = elements(arguments[0])  # Dyn: the function returns some of them, or a list of them
    result = function(items, *(one.value for one in arguments[1:]))
    return Dyn("list(dyn)", result) if isinstance(result, list) else result


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "dyn_eq": equal,
    "dyn_ne": lambda one, other: not equal(one, other),
    "dyn_lt": _comparison("<", operator.lt),
    "dyn_le": _comparison("<=", operator.le),
    "dyn_gt": _comparison(">", operator.gt),
    "dyn_ge": _comparison(">=", operator.ge),
    # For numbers of different types, if both types are known.
    "number_eq": number_eq,
    "number_ne": _number_comparison(operator.ne),
    "number_lt": _number_comparison(operator.lt),
    "number_le": _number_comparison(operator.le),
    "number_gt": _number_comparison(operator.gt),
    "number_ge": _number_comparison(operator.ge),
    "dyn_in": contains,
    "dyn_index": index,
    "dyn_has": has,
    "dyn_has_index": has_index,
    "dyn_truth": as_bool,
    "dyn_key": map_key,
    "dyn_elements": elements,
    "dyn_ordered": ordered_elements,
    "dyn_type": type_name,
    "dyn_value": lambda one: one.value,
}
