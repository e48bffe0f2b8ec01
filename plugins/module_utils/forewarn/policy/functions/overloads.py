# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The overloads of CEL's functions and operators: the kinds of their arguments, and the function that computes each.

The compiler resolves calls by this table; ``dynamic`` resolves those whose types are known only at run time.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple


class Overload(NamedTuple):
    """The kinds of the arguments (the receiver first), the type of the result, and the name in ``table.FUNCTIONS``.

    In ``result``, ``E`` is the type of the elements of the first argument.
    """

    kinds: tuple[str, ...]
    result: str
    name: str


Table = Dict[str, List[Overload]]


def _table(*entries: tuple[str, str, str, str]) -> Table:
    table: Table = {}
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

METHODS = _table(
    *(("size", kind, "int", "size") for kind in ("string", "bytes", "list", "map")),
    ("contains", "string string", "bool", "contains"),
    ("startsWith", "string string", "bool", "starts_with"),
    ("endsWith", "string string", "bool", "ends_with"),
    ("charAt", "string int", "string", "char_at"),
    ("indexOf", "string string", "int", "index_of"),
    ("indexOf", "string string int", "int", "index_of"),
    ("lastIndexOf", "string string", "int", "last_index_of"),
    ("lastIndexOf", "string string int", "int", "last_index_of"),
    ("lowerAscii", "string", "string", "lower_ascii"),
    ("upperAscii", "string", "string", "upper_ascii"),
    ("replace", "string string string", "string", "replace"),
    ("replace", "string string string int", "string", "replace"),
    ("split", "string string", "list(string)", "split"),
    ("split", "string string int", "list(string)", "split"),
    ("substring", "string int", "string", "substring"),
    ("substring", "string int int", "string", "substring"),
    ("trim", "string", "string", "trim"),
    ("reverse", "string", "string", "reverse"),
    ("reverse", "list", "list(E)", "reverse"),
    ("distinct", "list", "list(E)", "distinct"),
    ("slice", "list int int", "list(E)", "slice"),
    ("sort", "list", "list(E)", "sort"),
    ("min", "list", "E", "least"),
    ("max", "list", "E", "greatest"),
    *((name, "timestamp", "int", op) for name, op in _ACCESSORS.items()),
    *((name, "timestamp string", "int", op) for name, op in _ACCESSORS.items()),
    ("getHours", "duration", "int", "duration_hours"),
    ("getMinutes", "duration", "int", "duration_minutes"),
    ("getSeconds", "duration", "int", "duration_seconds"),
)

_BITS = ("And", "Or", "Xor")

FUNCTIONS = _table(
    *(("size", kind, "int", "size") for kind in ("string", "bytes", "list", "map")),
    ("bool", "bool", "bool", "same"),
    ("bool", "string", "bool", "string_to_bool"),
    ("int", "int", "int", "same"),
    ("int", "uint", "int", "uint_to_int"),
    ("int", "double", "int", "double_to_int"),
    ("int", "string", "int", "string_to_int"),
    ("int", "timestamp", "int", "timestamp_to_int"),
    ("uint", "uint", "uint", "same"),
    ("uint", "int", "uint", "int_to_uint"),
    ("uint", "double", "uint", "double_to_uint"),
    ("uint", "string", "uint", "string_to_uint"),
    ("double", "double", "double", "same"),
    ("double", "int", "double", "to_double"),
    ("double", "uint", "double", "to_double"),
    ("double", "string", "double", "string_to_double"),
    ("string", "string", "string", "same"),
    ("string", "int", "string", "integer_to_string"),
    ("string", "uint", "string", "integer_to_string"),
    ("string", "bool", "string", "bool_to_string"),
    ("string", "bytes", "string", "bytes_to_string"),
    ("string", "double", "string", "double_to_string"),
    ("string", "timestamp", "string", "timestamp_to_string"),
    ("string", "duration", "string", "duration_to_string"),
    ("bytes", "bytes", "bytes", "same"),
    ("bytes", "string", "bytes", "string_to_bytes"),
    ("timestamp", "timestamp", "timestamp", "same"),
    ("timestamp", "string", "timestamp", "string_to_timestamp"),
    ("timestamp", "int", "timestamp", "int_to_timestamp"),
    ("duration", "duration", "duration", "same"),
    ("duration", "string", "duration", "string_to_duration"),
    ("strings.quote", "string", "string", "quote"),
    ("lists.range", "int", "list(int)", "range"),
    *(("sets." + name, "list list", "bool", f"sets_{name}") for name in ("contains", "equivalent", "intersects")),
    *(("math." + name, "double", "double", name) for name in ("ceil", "floor", "round", "trunc")),
    ("math.isNaN", "double", "bool", "is_nan"),
    ("math.isInf", "double", "bool", "is_inf"),
    ("math.isFinite", "double", "bool", "is_finite"),
    *(("math.sqrt", kind, "double", "sqrt") for kind in ("int", "uint", "double")),
    ("math.abs", "int", "int", "abs_int"),
    ("math.abs", "uint", "uint", "same"),
    ("math.abs", "double", "double", "abs_double"),
    *(("math.sign", kind, kind, f"sign_{kind}") for kind in ("int", "uint", "double")),
    *((f"math.bit{name}", f"{kind} {kind}", kind, f"bit_{name.lower()}") for name in _BITS for kind in ("int", "uint")),
    ("math.bitNot", "int", "int", "bit_not_int"),
    ("math.bitNot", "uint", "uint", "bit_not_uint"),
    *(
        (f"math.bitShift{way}", f"{kind} int", kind, f"shift_{way.lower()}_{kind}")
        for way in ("Left", "Right")
        for kind in ("int", "uint")
    ),
)


def _numeric(operator: str, kinds: str) -> list[Overload]:
    return [Overload((kind, kind), kind, f"{operator}_{kind}") for kind in kinds.split()]


OPERATORS: Table = {
    "+": [
        *_numeric("add", "int uint double"),
        Overload(("string", "string"), "string", "add_string"),
        Overload(("bytes", "bytes"), "bytes", "add_bytes"),
        Overload(("timestamp", "duration"), "timestamp", "add_timestamp"),
        Overload(("duration", "timestamp"), "timestamp", "add_timestamp"),
        Overload(("duration", "duration"), "duration", "add_duration"),
    ],
    "-": [
        *_numeric("sub", "int uint double"),
        Overload(("timestamp", "timestamp"), "duration", "diff_timestamp"),
        Overload(("timestamp", "duration"), "timestamp", "sub_timestamp"),
        Overload(("duration", "duration"), "duration", "sub_duration"),
    ],
    "*": _numeric("mul", "int uint double"),
    "/": _numeric("div", "int uint double"),
    "%": _numeric("mod", "int uint"),
    "!": [Overload(("bool",), "bool", "not")],
    "negate": [Overload(("int",), "int", "neg_int"), Overload(("double",), "double", "neg_double")],
}
