# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions of values whose types the compiler has checked (CEL language definition; cel-go's extension strings).

Values: bool, int (also uint, timestamps and durations in nanoseconds), float, str, bytes, None, list, dict.
Each function takes values and returns one, or raises EvaluationError.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Callable

from ..evaluation_error import EvaluationError
from . import timevalues as tv
from .lists import equal
from .regex import compile_program

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
MAX_TEXT = 1 << 20  # characters, and elements of a list, that one operation may build

_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_INT = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_UINT = re.compile(r"\d{1,20}", re.ASCII)
_TRUE = frozenset(("1", "t", "true", "TRUE", "True"))  # not T and F: of the engines, only cel-go takes them
_FALSE = frozenset(("0", "f", "false", "FALSE", "False"))
_UPPER_TO_LOWER = {code: code + 32 for code in range(65, 91)}
_LOWER_TO_UPPER = {code: code - 32 for code in range(97, 123)}
# Unicode's White_Space; str.strip() alone would also take U+001C to U+001F.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def _check_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def _check_uint(value: int) -> int:
    if 0 <= value <= UINT_MAX:
        return value
    raise EvaluationError("unsigned integer overflow")


def _check_size(value: Any) -> Any:
    if len(value) > MAX_TEXT:
        raise EvaluationError(f"a value of more than {MAX_TEXT} elements")
    return value


def _quotient(a: int, b: int) -> int:
    """Divide towards zero, as CEL does."""
    if b == 0:
        raise EvaluationError("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _div_int(a: int, b: int) -> int:
    return _check_int(_quotient(a, b))


def _mod_int(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("modulus by zero")
    if a == INT_MIN and b == -1:
        raise EvaluationError("integer overflow")
    return a - b * _quotient(a, b)


def _mod_uint(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("modulus by zero")
    return a % b


def _div_double(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _double_to_int(value: float) -> int:
    # cel-go refuses both ends too: neither 2**63 nor its neighbours below survive conversion to a double.
    if not -9223372036854775808.0 < value < 9223372036854775808.0:
        raise EvaluationError(f"{value!r} is out of range of int")
    return int(value)


def _double_to_uint(value: float) -> int:
    if not 0.0 <= value < 18446744073709551616.0:
        raise EvaluationError(f"{value!r} is out of range of uint")
    return int(value)


def _text_to_int(value: str) -> int:
    if not _INT.fullmatch(value):
        raise EvaluationError(f"{value[:40]!r} is not an int")
    return _check_int(int(value))


def _text_to_uint(value: str) -> int:
    if not _UINT.fullmatch(value):
        raise EvaluationError(f"{value[:40]!r} is not a uint")
    return _check_uint(int(value))


def _text_to_double(value: str) -> float:
    if _NOT_FINITE.fullmatch(value):
        return float(value)
    if len(value) > 400 or not _DECIMAL.fullmatch(value) or math.isinf(float(value)):
        raise EvaluationError(f"{value[:40]!r} is not a double")
    return float(value)


def _text_to_bool(value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise EvaluationError(f"{value[:40]!r} is not a bool")


def _bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("the bytes are not UTF-8") from error


def _text_to_bytes(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:  # JSON can carry half a surrogate pair
        raise EvaluationError("the text is not Unicode") from error


def _raising_evaluation_error(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises EvaluationError instead of ValueError."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except ValueError as error:
            raise EvaluationError(str(error)) from error

    return call


def _accessor(part: Callable[[Any], int]) -> Callable[..., Any]:
    def call(value: int, zone: str | None = None) -> int:
        return part(tv.at_zone(value) if zone is None else tv.at_zone(value, tv.zone(zone)))

    return _raising_evaluation_error(call)


_second = _accessor(lambda moment: moment.second)


def _milliseconds(value: int, zone: str | None = None) -> int:
    _second(value, zone)  # the same in every zone, since offsets are whole seconds; but the time must exist
    return value % tv.SECOND // 1_000_000


def _whole_units(unit: int) -> Callable[[int], int]:
    return lambda value: value // unit if value >= 0 else -(-value // unit)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = len(text) + 1 if limit < 0 else min(limit, len(text) + 1)
    if len(text) + count * len(new) > MAX_TEXT and len(text) + text.count(old) * len(new) > MAX_TEXT:
        raise EvaluationError(f"a text of more than {MAX_TEXT} characters")
    if not text and not old:  # with a count, Python 3.8 returns the text (bpo-28029)
        return new if count else text
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not text and not separator:
        raise EvaluationError("CEL engines do not agree on splitting an empty text by an empty separator")
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _join(parts: list[str], separator: str = "") -> str:
    if sum(map(len, parts)) + len(separator) * len(parts) > MAX_TEXT:
        raise EvaluationError(f"a text of more than {MAX_TEXT} characters")
    return separator.join(parts)


@lru_cache(maxsize=64)
def _compile_search(pattern: str) -> Callable[[str], bool]:
    from .patterns import PatternError, compile_pattern  # not at the top: few patterns are parameters

    try:
        return compile_program(compile_pattern(pattern))
    except PatternError as error:
        raise EvaluationError(f"{pattern!r} is not a pattern: {error}") from error


def _index_list(items: list[Any], index: int) -> Any:
    if 0 <= index < len(items):
        return items[index]
    raise EvaluationError(f"index out of range: {index}")


def _index_map(mapping: Mapping[Any, Any], key: Any) -> Any:
    try:
        return mapping[key]
    except KeyError:
        raise EvaluationError(f"no such key: {key!r}") from None


def _value_of(optional: tuple[Any, ...]) -> Any:
    if optional:
        return optional[0]
    raise EvaluationError("an optional value that is absent has no value")


# Name in the typed form -> function. Names have the operation and, if there are several functions for it, the types.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "eq_deep": equal,
    "ne_deep": lambda a, b: not equal(a, b),
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "in": lambda element, container: element in container,
    "in_deep": lambda element, items: any(equal(element, item) for item in items),
    "not": operator.not_,
    "add_int": lambda a, b: _check_int(a + b),
    "sub_int": lambda a, b: _check_int(a - b),
    "mul_int": lambda a, b: _check_int(a * b),
    "div_int": _div_int,
    "mod_int": _mod_int,
    "neg_int": lambda a: _check_int(-a),
    "add_uint": lambda a, b: _check_uint(a + b),
    "sub_uint": lambda a, b: _check_uint(a - b),
    "mul_uint": lambda a, b: _check_uint(a * b),
    "div_uint": lambda a, b: _check_uint(_quotient(a, b)),
    "mod_uint": _mod_uint,
    "add_double": operator.add,
    "sub_double": operator.sub,
    "mul_double": operator.mul,
    "div_double": _div_double,
    "neg_double": operator.neg,
    "add_string": lambda a, b: _check_size(a + b),
    "add_bytes": lambda a, b: _check_size(a + b),
    "add_list": lambda a, b: _check_size(a + b),
    "add_timestamp": _raising_evaluation_error(lambda a, b: tv.check_timestamp(a + b)),
    "sub_timestamp": _raising_evaluation_error(lambda a, b: tv.check_timestamp(a - b)),
    "diff_timestamp": _raising_evaluation_error(lambda a, b: tv.check_duration(a - b)),
    "add_duration": _raising_evaluation_error(lambda a, b: tv.check_duration(a + b)),
    "sub_duration": _raising_evaluation_error(lambda a, b: tv.check_duration(a - b)),
    "neg_duration": _raising_evaluation_error(lambda a: tv.check_duration(-a)),
    "index_list": _index_list,
    "index_map": _index_map,
    "none": lambda: (),  # an optional value is a tuple of at most one
    "some": lambda a: (a,),
    "has_value": bool,
    "value_of": _value_of,
    "defined": lambda a: True,  # noqa: ARG005  # its argument has been evaluated
    "non_zero": bool,
    "size": len,
    "same": lambda a: a,
    "double_to_int": _double_to_int,
    "uint_to_int": _check_int,
    "string_to_int": _text_to_int,
    "timestamp_to_int": lambda a: a // tv.SECOND,
    "int_to_uint": _check_uint,
    "double_to_uint": _double_to_uint,
    "string_to_uint": _text_to_uint,
    "to_double": float,
    "string_to_double": _text_to_double,
    "string_to_bool": _text_to_bool,
    "integer_to_string": str,
    "bool_to_string": lambda a: "true" if a else "false",
    "bytes_to_string": _bytes_to_text,
    "timestamp_to_string": tv.format_timestamp,
    "duration_to_string": tv.format_duration,
    "string_to_bytes": _text_to_bytes,
    "string_to_timestamp": _raising_evaluation_error(tv.parse_timestamp),
    "int_to_timestamp": _raising_evaluation_error(lambda a: tv.check_timestamp(a * tv.SECOND)),
    "string_to_duration": _raising_evaluation_error(tv.parse_duration),
    "contains": lambda text, part: part in text,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "matches": lambda text, pattern: _compile_search(pattern)(
        text
    ),  # for a literal pattern there is the form ``Matches``
    "char_at": _char_at,
    "index_of": _index_of,
    "last_index_of": _last_index_of,
    "lower_ascii": lambda text: text.translate(_UPPER_TO_LOWER),
    "upper_ascii": lambda text: text.translate(_LOWER_TO_UPPER),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "substring": _substring,
    "trim": lambda text: text.strip(_WHITE_SPACE),
    "reverse": lambda text: text[::-1],
    "full_year": _accessor(lambda moment: moment.year),
    "month": _accessor(lambda moment: moment.month - 1),
    "date": _accessor(lambda moment: moment.day),
    "day_of_month": _accessor(lambda moment: moment.day - 1),
    "day_of_week": _accessor(lambda moment: moment.isoweekday() % 7),
    "day_of_year": _accessor(lambda moment: moment.timetuple().tm_yday - 1),
    "hours": _accessor(lambda moment: moment.hour),
    "minutes": _accessor(lambda moment: moment.minute),
    "seconds": _second,
    "milliseconds": _milliseconds,
    "duration_hours": _whole_units(3600 * tv.SECOND),
    "duration_minutes": _whole_units(60 * tv.SECOND),
    "duration_seconds": _whole_units(tv.SECOND),
}
