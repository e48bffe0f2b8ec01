# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's ``format()``, ``strings.quote()`` and ``string(double)`` (cel-go's extension strings), and values as JSON.

Where CEL engines write a value in different ways, the expression has no value: EvaluationError.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Mapping, NamedTuple

from ..evaluation_error import EvaluationError
from . import timevalues as tv
from .dynamic import Dyn, elements, inner_types, kind, to_dyn, type_name

MAX_PRECISION = 1000  # digits, as of cel-go and cel-cpp
MAX_TEXT = 1 << 20  # characters
_CLAUSE = re.compile(r"%(?:%|(?:\.(?P<precision>[0-9]{1,9}))?(?P<verb>[sdfebxXo]))", re.ASCII)
_QUOTED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


class Clause(NamedTuple):
    """A clause of a format: its letter, its precision in digits, and the text before it. The last one has no letter."""

    verb: str
    precision: int
    before: str


def parse_clauses(text: str) -> list[Clause]:
    """Return the clauses of a format; the last one has only the text after them.

    Raises ValueError for an invalid format.
    """
    found: list[Clause] = []
    before, position = "", 0
    while True:
        start = text.find("%", position)
        if start < 0:
            return [*found, Clause("", 0, before + text[position:])]
        before += text[position:start]
        match = _CLAUSE.match(text, start)
        if match is None:
            raise ValueError(
                f"{text[start : start + 2]!r} begins no clause of a format: %s %d %f %e %b %x %X %o and %%"
            )
        position = match.end()
        if match.group() == "%%":
            before += "%"
            continue
        precision = int(match.group("precision") or 6)
        if precision > MAX_PRECISION:
            raise ValueError(f"a precision of more than {MAX_PRECISION} digits")
        found.append(Clause(match.group("verb"), precision, before))
        before = ""


def format_text(text: str, arguments: Dyn) -> str:
    """Return a format with the elements of a list instead of its clauses. Raises EvaluationError."""
    try:
        found = parse_clauses(text)
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    given = elements(arguments)
    if len(found) - 1 != len(given):  # cel-go and cel-cpp ignore surplus elements, which are a mistake all the same
        raise EvaluationError(f"the format has {len(found) - 1} clauses, and the list {len(given)} elements")
    parts, size = [], 0
    for clause, one in zip(found, given):
        part = clause.before + _VERBS[clause.verb](one, clause.precision)
        size += len(part)
        if size > MAX_TEXT:
            raise EvaluationError(f"a text of more than {MAX_TEXT} characters")
        parts.append(part)
    return "".join(parts) + found[-1].before


def _format_value(one: Dyn, _precision: int = 0) -> str:
    formatter = _FORMATTERS.get(kind(one))
    if formatter is None:
        raise EvaluationError(f"format() cannot write {type_name(one)} as a text")
    return formatter(one)


def _format_double(value: float) -> str:
    if not math.isfinite(value):
        return _not_finite(value)
    digits, exponent = _digits(value)
    if len(digits) > 6 or not -4 <= exponent < 6:
        raise EvaluationError(f"CEL engines write {value!r} in different ways; say how many digits, as in %.3f")
    return double_to_string(value)


def _format_duration(one: Dyn) -> str:
    text = tv.format_duration(one.value)
    if "." in text and text.endswith("0s"):
        raise EvaluationError(f"CEL engines write {text} in different ways; use int()")
    return text


def _format_timestamp(one: Dyn) -> str:
    text = tv.format_timestamp(one.value)
    if text.startswith("0"):
        raise EvaluationError(f"CEL engines write {text} in different ways: it is before the year 1000")
    return text[:-1].rstrip("0") + "Z" if "." in text else text


def _format_bytes(one: Dyn) -> str:
    try:
        return str(one.value.decode())
    except UnicodeDecodeError as error:
        raise EvaluationError("the bytes are not UTF-8") from error


def _format_map(one: Dyn) -> str:
    key_type, value_type = inner_types(one.type)
    pairs = [
        (_format_value(to_dyn(key_type, key)), _format_value(to_dyn(value_type, value)))
        for key, value in one.value.items()
    ]
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(pairs)) + "}"


_FORMATTERS: Mapping[str, Callable[[Dyn], str]] = {
    "string": lambda one: str(one.value),
    "int": lambda one: str(one.value),
    "uint": lambda one: str(one.value),
    "double": lambda one: _format_double(one.value),
    "bool": lambda one: "true" if one.value else "false",
    "null": lambda one: "null",  # noqa: ARG005  # it has one value
    "bytes": _format_bytes,
    "timestamp": _format_timestamp,
    "duration": _format_duration,
    "type": lambda one: str(one.value),
    "list": lambda one: "[" + ", ".join(map(_format_value, elements(one))) + "]",
    "map": _format_map,
}


def _require_kind(one: Dyn, what: str, *kinds: str) -> None:
    if kind(one) not in kinds:
        raise EvaluationError(f"{what} can only be used on {', '.join(kinds)}, was given {type_name(one)}")


def _decimal(one: Dyn, _precision: int) -> str:
    if kind(one) == "double" and not math.isfinite(one.value):
        return _not_finite(one.value)
    _require_kind(one, "%d", "int", "uint")
    return str(one.value)


def _fixed(one: Dyn, precision: int) -> str:
    _require_kind(one, "%f", "double", "int", "uint")
    return f"{one.value:.{precision}f}" if math.isfinite(one.value) else _not_finite(one.value)


def _scientific(one: Dyn, precision: int) -> str:
    _require_kind(one, "%e", "double", "int", "uint")
    return f"{one.value:.{precision}e}" if math.isfinite(one.value) else _not_finite(one.value)


def _binary(one: Dyn, _precision: int) -> str:
    _require_kind(one, "%b", "int", "uint", "bool")
    return f"{int(one.value):b}"


def _octal(one: Dyn, _precision: int) -> str:
    _require_kind(one, "%o", "int", "uint")
    return f"{one.value:o}"


def _hexadecimal(one: Dyn, _precision: int) -> str:
    _require_kind(one, "%x", "int", "uint", "string", "bytes")
    if kind(one) == "string":
        try:
            return str(one.value.encode().hex())
        except UnicodeEncodeError as error:  # JSON can carry half a surrogate pair
            raise EvaluationError("the text is not Unicode") from error
    return str(one.value.hex()) if kind(one) == "bytes" else f"{one.value:x}"


_VERBS: Mapping[str, Callable[[Dyn, int], str]] = {
    "s": _format_value,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda one, precision: _hexadecimal(one, precision).upper(),
}


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _digits(value: float) -> tuple[str, int]:
    """Return the fewest digits that identify a double, and the decimal exponent of the first one."""
    mantissa, _e, exponent = f"{abs(value):.16e}".partition("e")
    for precision in range(17):
        text = f"{abs(value):.{precision}e}"
        if float(text) == abs(value):
            mantissa, _e, exponent = text.partition("e")
            break
    return mantissa.replace(".", ""), int(exponent)


def double_to_string(value: float) -> str:
    """Return a double as C's %g, with the fewest digits. Raises EvaluationError if it is not finite."""
    if not math.isfinite(value):
        raise EvaluationError("CEL engines write a double that is not a number, or infinite, in different ways")
    digits, exponent = _digits(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if -4 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if 0 <= exponent < 6:
        whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
        return f"{sign}{whole}{'.' + fraction if fraction else ''}"
    fraction = "." + digits[1:] if digits[1:] else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def quote(text: str) -> str:
    """Return a text in double quotes, with escape sequences where they are needed."""
    return '"' + "".join(_QUOTED.get(character, character) for character in text) + '"'


def to_json(one: Dyn) -> Any:
    """Return a value as JSON; timestamps and durations are texts.

    Raises EvaluationError for what JSON does not have.
    """
    found = kind(one)
    if found == "timestamp":
        return tv.format_timestamp(one.value)
    if found == "duration":
        return tv.format_duration(one.value)
    if found == "list":
        return [to_json(item) for item in elements(one)]
    if found == "map":
        key_type, value_type = inner_types(one.type)
        pairs = [(to_dyn(key_type, key), to_json(to_dyn(value_type, value))) for key, value in one.value.items()]
        if any(kind(key) != "string" for key, _value in pairs):
            raise EvaluationError("the keys of JSON are texts")
        return {key.value: value for key, value in pairs}
    if found in ("string", "int", "uint", "double", "bool", "null"):
        return one.value
    raise EvaluationError(f"JSON has no {type_name(one)}")


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "format": format_text,
    "quote": quote,
    "double_to_string": double_to_string,
    "to_json": to_json,
}
