# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values whose type is known only when an expression runs: those of dyn(), and of lists and maps of several types.

Such a value is a ``Dyn``, which carries its type. Its operators and functions are looked up in the table that the
compiler uses for all others, when they run. Equality, comparison and map keys: CEL language definition, "Equality",
"Ordering" and "Numeric values": numbers are equal where they are the same on the number line.
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
# What CEL calls the types that are written in another way here.
_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
}


class Dyn:
    """A value and its type, as CEL writes it: ``list(int)``.

    As the key of a map it is equal to another one if it is exactly the same number, or the same value of the same type.
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
    """Return the kind of a value: ``list`` of a ``list(int)``."""
    return one.type.partition("(")[0]


@lru_cache(maxsize=256)
def inner_types(type_: str) -> tuple[str, ...]:
    """Return the types of the elements of a list or an optional value, or of the keys and values of a map."""
    outer, _open, inner = type_[:-1].partition("(")
    if outer != "map":
        return (inner,)
    key, _comma, value = inner.partition(", ")  # a key has no types inside
    return key, value


def boxed(type_: str, value: Any) -> Dyn:
    """Return a value of a type as one that carries it."""
    return value if type_ == "dyn" else Dyn(type_, value)


def plain(value: Any) -> Any:
    """Return a value without the types in it."""
    if isinstance(value, Dyn):
        return plain(value.value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def elements(one: Dyn) -> list[Dyn]:
    """Return the elements of a list, or the keys of a map. Raises EvaluationError for anything else."""
    if kind(one) not in ("list", "map"):
        raise no_overload("a loop", one)
    of = inner_types(one.type)[0]
    return [boxed(of, item) for item in one.value]


def ordered_elements(one: Dyn) -> list[Dyn]:
    """Return the elements in the like manner, where their order counts: a map has none."""
    found = elements(one)
    if kind(one) == "map" and len(found) > 1:
        raise EvaluationError("the keys of a map have no order; ask with exists(), all() or exists_one()")
    return found


def _numbers(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison of numbers: with a double, an int is compared as the double next to it."""

    def compare(one: Any, other: Any) -> bool:
        if isinstance(one, float) or isinstance(other, float):
            return holds(float(one), float(other))
        return holds(one, other)

    return compare


number_eq = _numbers(operator.eq)


def equal(one: Dyn, other: Dyn) -> bool:
    """Return whether values are equal: numbers that are the same, or values of the same type."""
    first, second = kind(one), kind(other)
    if first in NUMERIC and second in NUMERIC:
        return number_eq(one.value, other.value)
    if first != second or (first in ("list", "map") and len(one.value) != len(other.value)):
        return False
    if first == "list":
        return all(map(equal, elements(one), elements(other)))
    if first == "map":
        pairs = ((item, _find(other, key)) for key, item in _items(one))
        return all(found is not None and equal(item, found) for item, found in pairs)
    if first == "optional" and one.value and other.value:
        left, right = (boxed(inner_types(side.type)[0], side.value[0]) for side in (one, other))
        return equal(left, right)
    return bool(one.value == other.value)


def _items(one: Dyn) -> list[tuple[Dyn, Dyn]]:
    key, value = inner_types(one.type)
    return [(boxed(key, name), boxed(value, item)) for name, item in one.value.items()]


def _find(mapping: Dyn, key: Dyn) -> Dyn | None:
    """Return the value of a key, None if there is none. A double is looked up as the same number."""
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
    return boxed(value_type, mapping.value[name]) if name in mapping.value else None


def _compare(symbol: str, holds: Callable[[Any, Any], bool]) -> Callable[[Dyn, Dyn], bool]:
    numbers = _numbers(holds)

    def compare(one: Dyn, other: Dyn) -> bool:
        first, second = kind(one), kind(other)
        if first in NUMERIC and second in NUMERIC:
            return numbers(one.value, other.value)
        if first == second and first in ORDERED:
            return holds(one.value, other.value)
        raise no_overload(symbol, one, other)

    return compare


def contains(element: Dyn, container: Dyn) -> bool:
    """Return whether a list has an element, or a map a key."""
    if kind(container) == "list":
        return any(equal(element, item) for item in elements(container))
    if kind(container) == "map" and (kind(element) in KEYS or kind(element) == "double"):
        return _find(container, element) is not None
    raise no_overload("in", element, container)


def map_key(one: Dyn) -> Dyn:
    """Return a value that must be the key of a map."""
    if kind(one) not in KEYS:
        raise EvaluationError(f"a map cannot have keys of {type_name(one)}")
    return one


def index(container: Dyn, key: Dyn) -> Dyn:
    """Return an element of a list by its place, or the value of a map's key."""
    if kind(container) == "map":
        found = _find(container, key)
        if found is None:
            raise EvaluationError(f"no such key: {plain(key)!r}")
        return found
    if kind(container) != "list" or kind(key) not in NUMERIC:
        raise no_overload("[]", container, key)
    items = elements(container)
    if not 0 <= key.value < len(items) or key.value != int(key.value):
        raise EvaluationError(f"index out of range: {plain(key)}")
    return items[int(key.value)]


def has_index(container: Dyn, key: Dyn) -> bool:
    """Return whether a list has a place, or a map a key."""
    if kind(container) == "map":
        return _find(container, key) is not None
    if kind(container) != "list" or kind(key) not in NUMERIC:
        raise no_overload("[?]", container, key)
    return bool(0 <= key.value < len(container.value) and key.value == int(key.value))


def has(container: Dyn, name: str) -> bool:
    """Return whether a map has a key. Raises EvaluationError for anything else."""
    if kind(container) != "map":
        raise no_overload("has()", container)
    return _find(container, Dyn("string", name)) is not None


def truth(one: Dyn) -> bool:
    """Return a value that must be a bool."""
    if kind(one) != "bool":
        raise no_overload("a condition", one)
    return bool(one.value)


def concatenated(one: Dyn, other: Dyn) -> Dyn | None:
    """Return two lists as one, None for values of other types."""
    if kind(one) != "list" or kind(other) != "list":
        return None
    return Dyn("list(dyn)", elements(one) + elements(other))


def type_name(one: Dyn) -> str:
    """Return the name of a value's type as CEL's ``type()`` has it."""
    return _NAMES.get(kind(one), kind(one))


def no_overload(what: str, *arguments: Dyn) -> EvaluationError:
    """Return the error for arguments that an operator or function does not take."""
    return EvaluationError(f"no such overload: {what} does not take {' and '.join(map(type_name, arguments))}")


def caller(name: str, functions: Mapping[str, Callable[..., Any]]) -> Callable[..., Dyn]:
    """Return a function of CEL that chooses its overload by the types of its arguments, when it is called."""
    from . import overloads as table  # not at the top: only this needs it on a VM

    tables = (table.METHODS, table.FUNCTIONS, table.OPERATORS)
    overloads: list[Overload] = [overload for one in tables for overload in one.get(name, ())]

    is_operator = name in table.OPERATORS

    def call(*arguments: Dyn) -> Dyn:
        kinds = tuple(map(kind, arguments))
        for overload in overloads:
            if overload.kinds == kinds:
                return _called(overload, functions[overload.name], arguments)
        joined = concatenated(*arguments) if name == "+" else None
        if joined is None:
            raise no_overload(name if is_operator else f"{name}()", *arguments)
        return joined

    return call


def _called(overload: Overload, function: Callable[..., Any], arguments: tuple[Dyn, ...]) -> Dyn:
    if "E" not in overload.result:
        return Dyn(overload.result, function(*(one.value for one in arguments)))
    items = elements(arguments[0])  # each with its type: so may be what the function makes of them
    made = function(items, *(one.value for one in arguments[1:]))
    return Dyn("list(dyn)", made) if isinstance(made, list) else made


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "dyn_eq": equal,
    "dyn_ne": lambda one, other: not equal(one, other),
    "dyn_lt": _compare("<", operator.lt),
    "dyn_le": _compare("<=", operator.le),
    "dyn_gt": _compare(">", operator.gt),
    "dyn_ge": _compare(">=", operator.ge),
    # Of numbers of different types, which are known.
    "number_eq": number_eq,
    "number_ne": _numbers(operator.ne),
    "number_lt": _numbers(operator.lt),
    "number_le": _numbers(operator.le),
    "number_gt": _numbers(operator.gt),
    "number_ge": _numbers(operator.ge),
    "dyn_in": contains,
    "dyn_index": index,
    "dyn_has": has,
    "dyn_has_index": has_index,
    "dyn_truth": truth,
    "dyn_key": map_key,
    "dyn_elements": elements,
    "dyn_ordered": ordered_elements,
    "dyn_type": type_name,
    "dyn_value": lambda one: one.value,
}
