# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions and operators that exist, their types, and their names in the typed form."""

from __future__ import annotations

from dataclasses import dataclass

from .types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type, list_of


@dataclass(frozen=True)
class Overload:
    """The kinds of the arguments (the receiver first), the type of the result, and the function of the typed form."""

    kinds: tuple[str, ...]
    result: Type
    name: str


def _methods(*entries: tuple[str, str, Type, str]) -> dict[str, list[Overload]]:
    table: dict[str, list[Overload]] = {}
    for function, kinds, result, name in entries:
        table.setdefault(function, []).append(Overload(tuple(kinds.split()), result, name))
    return table


_ACCESSORS = {
    "getFullYear": "full_year",
    "getMonth": "month",
    "getDate": "date",
    "getDayOfMonth": "day_of_month",
    "getDayOfWeek": "day_of_week",
    "getDayOfYear": "day_of_year",
    "getHours": "hours",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
    "getMilliseconds": "milliseconds",
}

METHODS = _methods(
    *(("size", kind, INT, "size") for kind in ("string", "bytes", "list", "map")),
    ("contains", "string string", BOOL, "contains"),
    ("startsWith", "string string", BOOL, "starts_with"),
    ("endsWith", "string string", BOOL, "ends_with"),
    ("charAt", "string int", STRING, "char_at"),
    ("indexOf", "string string", INT, "index_of"),
    ("indexOf", "string string int", INT, "index_of"),
    ("lastIndexOf", "string string", INT, "last_index_of"),
    ("lastIndexOf", "string string int", INT, "last_index_of"),
    ("lowerAscii", "string", STRING, "lower_ascii"),
    ("upperAscii", "string", STRING, "upper_ascii"),
    ("replace", "string string string", STRING, "replace"),
    ("replace", "string string string int", STRING, "replace"),
    ("split", "string string", list_of(STRING), "split"),
    ("split", "string string int", list_of(STRING), "split"),
    ("substring", "string int", STRING, "substring"),
    ("substring", "string int int", STRING, "substring"),
    ("trim", "string", STRING, "trim"),
    ("reverse", "string", STRING, "reverse"),
    *((name, "timestamp", INT, op) for name, op in _ACCESSORS.items()),
    *((name, "timestamp string", INT, op) for name, op in _ACCESSORS.items()),
    ("getHours", "duration", INT, "duration_hours"),
    ("getMinutes", "duration", INT, "duration_minutes"),
    ("getSeconds", "duration", INT, "duration_seconds"),
)

FUNCTIONS = _methods(
    *(("size", kind, INT, "size") for kind in ("string", "bytes", "list", "map")),
    ("bool", "bool", BOOL, "same"),
    ("bool", "string", BOOL, "string_to_bool"),
    ("int", "int", INT, "same"),
    ("int", "uint", INT, "uint_to_int"),
    ("int", "double", INT, "double_to_int"),
    ("int", "string", INT, "string_to_int"),
    ("int", "timestamp", INT, "timestamp_to_int"),
    ("uint", "uint", UINT, "same"),
    ("uint", "int", UINT, "int_to_uint"),
    ("uint", "double", UINT, "double_to_uint"),
    ("uint", "string", UINT, "string_to_uint"),
    ("double", "double", DOUBLE, "same"),
    ("double", "int", DOUBLE, "to_double"),
    ("double", "uint", DOUBLE, "to_double"),
    ("double", "string", DOUBLE, "string_to_double"),
    ("string", "string", STRING, "same"),
    ("string", "int", STRING, "integer_to_string"),
    ("string", "uint", STRING, "integer_to_string"),
    ("string", "bool", STRING, "bool_to_string"),
    ("string", "bytes", STRING, "bytes_to_string"),
    ("string", "timestamp", STRING, "timestamp_to_string"),
    ("string", "duration", STRING, "duration_to_string"),
    ("bytes", "bytes", BYTES, "same"),
    ("bytes", "string", BYTES, "string_to_bytes"),
    ("timestamp", "timestamp", TIMESTAMP, "same"),
    ("timestamp", "string", TIMESTAMP, "string_to_timestamp"),
    ("timestamp", "int", TIMESTAMP, "int_to_timestamp"),
    ("duration", "duration", DURATION, "same"),
    ("duration", "string", DURATION, "string_to_duration"),
)


def _numeric(operator: str, kinds: str) -> list[Overload]:
    results = {"int": INT, "uint": UINT, "double": DOUBLE}
    return [Overload((kind, kind), results[kind], f"{operator}_{kind}") for kind in kinds.split()]


OPERATORS = {
    "+": [
        *_numeric("add", "int uint double"),
        Overload(("string", "string"), STRING, "add_string"),
        Overload(("bytes", "bytes"), BYTES, "add_bytes"),
        Overload(("timestamp", "duration"), TIMESTAMP, "add_timestamp"),
        Overload(("duration", "timestamp"), TIMESTAMP, "add_timestamp"),
        Overload(("duration", "duration"), DURATION, "add_duration"),
    ],
    "-": [
        *_numeric("sub", "int uint double"),
        Overload(("timestamp", "timestamp"), DURATION, "diff_timestamp"),
        Overload(("timestamp", "duration"), TIMESTAMP, "sub_timestamp"),
        Overload(("duration", "duration"), DURATION, "sub_duration"),
    ],
    "*": _numeric("mul", "int uint double"),
    "/": _numeric("div", "int uint double"),
    "%": _numeric("mod", "int uint"),
    "!": [Overload(("bool",), BOOL, "not")],
    "negate": [Overload(("int",), INT, "neg_int"), Overload(("double",), DOUBLE, "neg_double")],
}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
QUANTIFIERS = ("all", "exists", "exists_one")
LOOPS = (*QUANTIFIERS, "map", "filter")

# Functions of CEL or its extensions that Forewarn refuses, and what to do instead.
UNSUPPORTED = {
    "dyn": "leave it out; every value here has a type that is known",
    "type": "leave it out; every value here has a type that is known",
    "format": "join texts with + and string()",
    "quote": "join texts with +",
    "getMilliseconds": "for a duration engines do not agree on it; compare with duration('…')",
    "existsOne": "write exists_one",
    "transformList": "write map or filter",
    "sortBy": "",
    "bind": "use a policy variable",
}


def find(overloads: list[Overload], types: list[Type]) -> Overload | None:
    """Return the overload that takes values of these types."""
    for overload in overloads:
        if len(overload.kinds) == len(types) and all(
            type_.kind in (kind, "nothing") for kind, type_ in zip(overload.kinds, types, strict=True)
        ):
            return overload
    return None
