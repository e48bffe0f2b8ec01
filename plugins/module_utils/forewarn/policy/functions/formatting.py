# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's ``format()``, ``strings.quote()``, how a double is written (cel-go's extension strings), and JSON.

Where engines write a value in different ways, there is no value.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Mapping, NamedTuple

from ..evaluation_error import EvaluationError
from . import timevalues as tv
from .dynamic import Dyn, boxed, elements, inner_types, kind, type_name

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
    """A clause of a format: its letter, its precision in digits, and the text before it. The last has no letter."""

    verb: str
    precision: int
    before: str


def clauses(text: str) -> list[Clause]:
    """Return the clauses of a format, and what comes after the last one. Raises ValueError where it is not a format."""
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
    """Return a text with the elements of a list in the places of its clauses."""
    try:
        found = clauses(text)
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    given = elements(arguments)
    if len(found) - 1 != len(given):  # cel-go and cel-cpp ignore what is too much; a mistake in any case
        raise EvaluationError(f"the format has {len(found) - 1} clauses, and the list {len(given)} elements")
    parts, size = [], 0
    for clause, one in zip(found, given):
        part = clause.before + _VERBS[clause.verb](one, clause.precision)
        size += len(part)
        if size > MAX_TEXT:
            raise EvaluationError(f"a text of more than {MAX_TEXT} characters")
        parts.append(part)
    return "".join(parts) + found[-1].before


def _text(one: Dyn, _precision: int = 0) -> str:
    writer = _TEXTS.get(kind(one))
    if writer is None:
        raise EvaluationError(f"format() cannot write {type_name(one)} as a text")
    return writer(one)


def _written_double(value: float) -> str:
    if not math.isfinite(value):
        return _not_finite(value)
    digits, exponent = _digits(value)
    if len(digits) > 6 or not -4 <= exponent < 6:
        raise EvaluationError(f"CEL engines write {value!r} in different ways; say how many digits, as in %.3f")
    return double_to_string(value)


def _written_duration(one: Dyn) -> str:
    text = tv.format_duration(one.value)
    if "." in text and text.endswith("0s"):
        raise EvaluationError(f"CEL engines write {text} in different ways; use int()")
    return text


def _written_time(one: Dyn) -> str:
    text = tv.format_timestamp(one.value)
    if text.startswith("0"):
        raise EvaluationError(f"CEL engines write {text} in different ways: it is before the year 1000")
    return text[:-1].rstrip("0") + "Z" if "." in text else text


def _written_bytes(one: Dyn) -> str:
    try:
        return str(one.value.decode())
    except UnicodeDecodeError as error:
        raise EvaluationError("the bytes are not UTF-8") from error


def _written_map(one: Dyn) -> str:
    key_type, value_type = inner_types(one.type)
    pairs = [(_text(boxed(key_type, key)), _text(boxed(value_type, value))) for key, value in one.value.items()]
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(pairs)) + "}"


_TEXTS: Mapping[str, Callable[[Dyn], str]] = {
    "string": lambda one: str(one.value),
    "int": lambda one: str(one.value),
    "uint": lambda one: str(one.value),
    "double": lambda one: _written_double(one.value),
    "bool": lambda one: "true" if one.value else "false",
    "null": lambda one: "null",  # noqa: ARG005  # it has one value
    "bytes": _written_bytes,
    "timestamp": _written_time,
    "duration": _written_duration,
    "type": lambda one: str(one.value),
    "list": lambda one: "[" + ", ".join(map(_text, elements(one))) + "]",
    "map": _written_map,
}


def _needs(one: Dyn, what: str, *kinds: str) -> None:
    if kind(one) not in kinds:
        raise EvaluationError(f"{what} can only be used on {', '.join(kinds)}, was given {type_name(one)}")


def _decimal(one: Dyn, _precision: int) -> str:
    if kind(one) == "double" and not math.isfinite(one.value):
        return _not_finite(one.value)
    _needs(one, "%d", "int", "uint")
    return str(one.value)


def _fixed(one: Dyn, precision: int) -> str:
    _needs(one, "%f", "double", "int", "uint")
    return f"{one.value:.{precision}f}" if math.isfinite(one.value) else _not_finite(one.value)


def _scientific(one: Dyn, precision: int) -> str:
    _needs(one, "%e", "double", "int", "uint")
    return f"{one.value:.{precision}e}" if math.isfinite(one.value) else _not_finite(one.value)


def _binary(one: Dyn, _precision: int) -> str:
    _needs(one, "%b", "int", "uint", "bool")
    return f"{int(one.value):b}"


def _octal(one: Dyn, _precision: int) -> str:
    _needs(one, "%o", "int", "uint")
    return f"{one.value:o}"


def _hexadecimal(one: Dyn, _precision: int) -> str:
    _needs(one, "%x", "int", "uint", "string", "bytes")
    if kind(one) == "string":
        try:
            return str(one.value.encode().hex())
        except UnicodeEncodeError as error:  # JSON can carry half a surrogate pair
            raise EvaluationError("the text is not Unicode") from error
    return str(one.value.hex()) if kind(one) == "bytes" else f"{one.value:x}"


_VERBS: Mapping[str, Callable[[Dyn, int], str]] = {
    "s": _text,
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
    """Return the fewest digits that are a double, and the exponent of the first one."""
    mantissa, _e, exponent = f"{abs(value):.16e}".partition("e")
    for precision in range(17):
        written = f"{abs(value):.{precision}e}"
        if float(written) == abs(value):
            mantissa, _e, exponent = written.partition("e")
            break
    return mantissa.replace(".", ""), int(exponent)


def double_to_string(value: float) -> str:
    """Return a double as C's %g with the fewest digits has it. Raises EvaluationError for what is not finite."""
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
    """Return a text in double quotes, with escapes for what cannot stand between them."""
    return '"' + "".join(_QUOTED.get(character, character) for character in text) + '"'


def to_json(one: Dyn) -> Any:
    """Return a value as JSON has it: times and durations as texts. Raises EvaluationError for what JSON lacks."""
    found = kind(one)
    if found == "timestamp":
        return tv.format_timestamp(one.value)
    if found == "duration":
        return tv.format_duration(one.value)
    if found == "list":
        return [to_json(item) for item in elements(one)]
    if found == "map":
        key_type, value_type = inner_types(one.type)
        pairs = [(boxed(key_type, key), to_json(boxed(value_type, value))) for key, value in one.value.items()]
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
