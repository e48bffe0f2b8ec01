# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Literals of CEL by the language definition: their places in a source, and their values."""

from __future__ import annotations

import re

from .types import BYTES, DOUBLE, INT, STRING, UINT, CelSyntaxError, Type

_INT64 = (-(2**63), 2**63 - 1)
_LITERAL = re.compile(r"[rR]?[bB]?[rR]?('''|\"\"\"|'|\")")
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DOUBLE = re.compile(r"-?(?:\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)", re.ASCII)


def find_literals(source: str) -> dict[int, int]:
    """Return start -> end of each string and bytes literal, by the rules of the language definition."""
    literals: dict[int, int] = {}
    position = 0
    while position < len(source):
        if source.startswith("//", position):
            newline = source.find("\n", position)
            position = len(source) if newline < 0 else newline
            continue
        match = _LITERAL.match(source, position)
        if match:
            end = _literal_end(source, match)
            literals[position] = end
            position = end
            continue
        word = re.compile(r"\w+").match(source, position)
        position = word.end() if word else position + 1
    return literals


def _literal_end(source: str, opening: re.Match[str]) -> int:
    quote, raw = opening.group(1), "r" in opening.group().lower()
    position = opening.end()
    while position < len(source):
        if source.startswith(quote, position):
            return position + len(quote)
        if source[position] in "\r\n":
            message = "CEL engines read a line break inside a text literal in different ways"
            hint = "write \\n, or join two literals with +"
            raise CelSyntaxError("literal-newline", message, position, position + 1, hint)
        position += 2 if source[position] == "\\" and not raw else 1
    message = "this text literal is not closed"
    raise CelSyntaxError("syntax", message, opening.start(), len(source), f"end it with {quote}")


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def disagreement(start: int, end: int) -> CelSyntaxError:
    """Return the error for a literal whose end other engines find elsewhere."""
    message = "CEL engines do not agree where this literal ends"
    hint = "avoid a backslash before a quote in a raw literal; use a normal one with \\\\ and \\' escapes"
    return CelSyntaxError("engines-disagree", message, start, end, hint)


def read_number(text: str, kind: str, start: int, end: int) -> tuple[float, Type]:
    """Return the value and the type of a number; ``kind`` is the grammar's name of the token. Raises CelSyntaxError."""
    if kind == "FLOAT_LIT":
        value = float(text)
        if not _DOUBLE.fullmatch(text) or value in (float("inf"), float("-inf")):
            message = f"{_shorten(text)} is not a double of CEL"
            raise CelSyntaxError("bad-number", message, start, end, "for example 1.0")
        return value, DOUBLE
    unsigned = kind == "UINT_LIT"
    low, high = (0, 2**64 - 1) if unsigned else _INT64
    digits = text.rstrip("uU").lstrip("-0x") or "0"
    # Python refuses to read thousands of digits; no number that fits has more than 20, of either sign.
    number = int(digits, 16 if "x" in text else 10) if len(digits) <= 20 else 2**64
    if text.startswith("-"):
        number = -number
    if not low <= number <= high or (unsigned and text.startswith("-")):
        message = f"{_shorten(text)} does not fit {'a uint' if unsigned else 'an int'}"
        raise CelSyntaxError("bad-number", message, start, end)
    return number, UINT if unsigned else INT


def read_text(text: str, start: int, end: int) -> tuple[str | bytes, Type]:
    """Return the value and the type of a string or bytes literal. Raises CelSyntaxError."""
    opening = _LITERAL.match(text)
    if opening is None:
        raise disagreement(start, end)
    prefix = opening.group()[: opening.start(1)].lower()
    body = text[opening.end() : -len(opening.group(1))]
    if "b" in prefix and len(opening.group(1)) == 3 and "?" in body:
        message = "CEL's conformance suite and its engines differ on ? in a triple-quoted bytes literal"
        raise CelSyntaxError("engines-disagree", message, start, end, "use single quotes")
    if "r" in prefix:
        if body.endswith("\\"):
            raise disagreement(start, end)
        data = body.encode()
    elif "b" in prefix:
        data = _unescape(body, start + opening.end(), for_bytes=True).encode("utf-8", "surrogateescape")
    else:
        return _unescape(body, start + opening.end()), STRING
    if "b" in prefix:
        return data, BYTES
    return body, STRING


def _unescape(body: str, offset: int, for_bytes: bool = False) -> str:
    """Replace escapes. Bytes above 127 are returned as lone surrogates, to be encoded back."""
    parts, position = [], 0
    while position < len(body):
        if body[position] != "\\":
            parts.append(body[position])
            position += 1
            continue
        match = _ESCAPE.match(body, position)
        if match is None:
            message, start = f"{body[position : position + 2]} is not an escape of CEL", offset + position
            raise CelSyntaxError("bad-escape", message, start, start + 2, "write \\\\ for a backslash")
        parts.append(_character(match, offset, for_bytes))
        position = match.end()
    return "".join(parts)


def _character(match: re.Match[str], offset: int, for_bytes: bool) -> str:
    simple, hexadecimal, octal, short, long = match.groups()
    if simple:
        return _SIMPLE_ESCAPES.get(simple, simple)
    point = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    if for_bytes and not (short or long):
        return chr(point) if point < 128 else chr(0xDC00 + point)
    if for_bytes or point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        message = f"{match.group()} is not {'a byte' if for_bytes else 'a character'}"
        raise CelSyntaxError("bad-escape", message, offset + match.start(), offset + match.end())
    return chr(point)
