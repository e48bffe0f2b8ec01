# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints on what to write instead of operands whose types do not fit.

An author who follows a hint must get an expression that compiles and means what the author meant. So a number in
quotes loses the quotes: if the other side became a text, ``"30" < "9"`` would be true. If the intent is not clear,
there is no hint.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...policy.functions import timevalues as tv
from ..wording import duration_hint
from . import types as t
from .guards import access_path
from .syntax import SyntaxNode
from .types import Type

_NUMBERS = ("int", "uint", "double")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
_BRACES = re.compile(r"\{\{(.*)\}\}")
_TIME = "timestamp('2026-01-31T15:04:05Z')"


class Operand(NamedTuple):
    """A part of an expression: its node, its type and its source text."""

    node: SyntaxNode
    type: Type
    text: str
    right: str = ""  # the source text of the right side of an operator

    @property
    def is_literal(self) -> bool:
        """Whether it is a literal."""
        return self.node.kind == "literal"

    @property
    def string(self) -> str | None:
        """The text of a literal text, None for anything else."""
        return self.node.value if self.is_literal and self.type == t.STRING else None


def unquote_hint(words: str, type_: Type) -> str:
    """Return how to write a text as the type that its place needs; empty if that is not possible."""
    words = words.strip()
    kind = type_.kind
    if kind == "bool" and words.lower() in ("true", "false"):
        return f"remove the quotes: {words.lower()}"
    if kind == "int" and _WHOLE.fullmatch(words):
        return f"remove the quotes: {words.lstrip('+')}"
    if kind == "uint" and _WHOLE.fullmatch(words) and words[0] != "-":
        return f"remove the quotes: {words.lstrip('+')}u"
    if kind == "double" and _NUMBER.fullmatch(words):
        return f"remove the quotes: {words.lstrip('+')}{'' if '.' in words else '.0'}"
    if kind == "duration":
        return _as_duration(words)
    if kind == "timestamp":
        try:
            tv.parse_timestamp(words)
        except ValueError:
            return f"write a time, as in {_TIME}"
        return f"write timestamp('{words}')"
    return ""


def _as_duration(words: str) -> str:
    try:
        tv.parse_duration(words)
    except ValueError:
        return duration_hint(words) or "write a duration, as in duration('5m')"
    return f"write duration('{words}')"


def bool_hint(operand: Operand) -> str:
    """Return how to turn a value into a condition."""
    if operand.string is not None and unquote_hint(operand.string, t.BOOL):
        return unquote_hint(operand.string, t.BOOL)
    if operand.string is not None and (braces := _BRACES.fullmatch(operand.string.strip())):
        return f"a policy is not a template: write {braces.group(1).strip()}"
    if operand.type.kind in ("list", "map"):
        return f"ask for its size, as in {operand.text}.size() > 0"
    if operand.type.kind == "record":
        return f"ask for one of its fields, as in {operand.text}.NAME == …"
    return "compare it, as in … == 0" if operand.type.kind in _NUMBERS else "compare it, as in … == …"


def text_hint(operand: Operand) -> str:
    """Return how to turn a value into a text."""
    kind = operand.type.kind
    if kind == "double":
        return f"write string(int({operand.text}))"
    if operand.type == t.list_of(t.STRING):
        return f"write {operand.text}.join(', ')"
    if kind in ("bool", "int", "uint", "bytes", "timestamp", "duration"):
        return f"write string({operand.text})"
    return ""


def comparison_hint(operator: str, left: Operand, right: Operand) -> str:
    """Return how to compare two values of types that do not compare."""
    kinds = {left.type.kind, right.type.kind}
    if "null" in kinds:
        return _null_hint(operator, left if right.type == t.NULL else right)
    chained = _chain_hint(operator, left, right)
    if chained:
        return chained
    pairs = [(left, right), (right, left)]
    for one, other in sorted(pairs, key=lambda pair: not pair[0].is_literal):  # the literal is probably the mistake
        hint = _operand_hint(operator, one, other)
        if hint:
            return hint
    return ""


_ORDER = ("<", "<=", ">", ">=")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def _chain_hint(operator: str, left: Operand, right: Operand) -> str:
    """Return how to write ``0 <= x < 9``, where ``left`` is the first comparison."""
    first = left.node
    if operator not in _ORDER or first.kind != "operator" or first.value not in _ORDER or not left.right:
        return ""
    return f"write {left.text} && {left.right} {operator} {right.text}"


def _null_hint(operator: str, operand: Operand) -> str:
    path = access_path(operand.node) or ""
    if "." not in path or path.startswith("variables.") or operator not in ("==", "!="):
        return "nothing here is null; an unknown value is an error, and the event is held"
    return f"nothing here is null; write {'!' if operator == '==' else ''}has({path})"


def _operand_hint(operator: str, one: Operand, other: Operand) -> str:
    """Return what to write instead of ``one``, if that side is to change."""
    kind, wanted = one.type.kind, other.type.kind
    equality = operator in ("==", "!=")
    if kind == "string" and wanted == "list" and equality:
        listed = f"{one.text} in {other.text}"
        return f"write {listed}" if operator == "==" else f"write !({listed})"
    if kind == "string":
        if wanted == "timestamp" and one.string == "" and equality:
            path = access_path(other.node) or ""
            return f"no time is ever blank; write {'!' if operator == '==' else ''}has({path or '…'})"
        if one.string is not None and other.node.value == "getDayOfWeek" and one.string.lower() in _DAYS:
            return f"days are numbers, Sunday is 0: write {_DAYS.index(one.string.lower())}"
        if one.string is not None:
            return unquote_hint(one.string, other.type)
        if other.is_literal and equality and wanted in ("bool", "int"):
            return f"write '{other.text}', in quotes"
        if wanted in ("bool", "timestamp", "duration", *_NUMBERS):
            return f"write {wanted}({one.text})"
    if (kind, wanted) == ("double", "int") and one.is_literal and float(one.node.value).is_integer():
        return f"write {int(one.node.value)}"
    if (kind, wanted) == ("int", "double"):
        return f"write {one.text}.0" if one.is_literal else f"write double({one.text})"
    if (kind, wanted) == ("uint", "int"):
        return f"leave out the u: {one.text[:-1]}" if one.is_literal else f"write int({one.text})"
    if (kind, wanted) == ("uint", "double"):
        return f"write double({one.text})"
    if (kind, wanted) == ("int", "bool") and one.is_literal and one.node.value in (0, 1):
        return f"write {'true' if one.node.value else 'false'}"
    if (kind, wanted) == ("duration", "int") and not other.is_literal:
        seconds = _literal_seconds(one.node)
        if seconds is None:
            return f"write duration(string({other.text}) + 's') if it counts seconds"
        return f"write {seconds} if {other.text} counts seconds"
    if (kind, wanted) == ("int", "duration") and one.is_literal:
        return f"say in which unit, as in duration('{one.node.value}s')"
    if kind == "list" and wanted == "int":
        return f"write {one.text}.size()"
    if (kind, wanted) == ("timestamp", "duration"):
        return f"write {one.text} - now for the time until then"
    return ""


def _literal_seconds(node: SyntaxNode) -> int | None:
    """Return the whole seconds of ``duration('…')``."""
    if node.kind != "call" or node.value != "duration" or node.children[0].kind != "literal":
        return None
    seconds, rest = divmod(tv.parse_duration(str(node.children[0].value)), tv.SECOND)
    return None if rest else seconds


def operator_hint(operator: str, operands: list[Operand]) -> str:
    """Return how to apply ``+``, ``-``, ``*``, ``/``, ``%`` or ``!``."""
    if operator == "!" and operands[0].type.kind in ("list", "map"):
        return f"write {operands[0].text}.size() == 0"
    if operator == "!":
        return bool_hint(operands[0])
    if len(operands) != 2:
        return ""
    for one, other in (operands, operands[::-1]):
        if one.type.kind == "string" and operator == "+":
            numeric = one.string is not None and other.type.kind in _NUMBERS and unquote_hint(one.string, other.type)
            if numeric:
                return f"{numeric}; or, to join texts, {text_hint(other)}"
            if other.type.kind in ("timestamp", "duration") and one.string is not None:
                hint = _as_duration(one.string)
                if hint == f"write duration('{one.string}')":
                    return f"{hint}; or, to join texts, {text_hint(other)}"
            return text_hint(other)
        if operator in "+-" and one.is_literal and other.type.kind in ("timestamp", "duration"):
            if one.string is not None:
                return _as_duration(one.string)
            if one.type == t.INT:
                return f"say in which unit, as in duration('{one.node.value}s')"
    if operator in "*/%" and any(operand.type.kind == "duration" for operand in operands):
        return "write the duration itself: there is no arithmetic of durations and numbers"
    kinds = {operand.type.kind for operand in operands}
    return comparison_hint(operator, *operands) if kinds <= set(_NUMBERS) else ""


def membership_hint(element: Operand, container: Operand, items: list[Operand]) -> str:
    """Return how to test whether a container has an element; ``items`` are those of a literal list."""
    kind = container.type.kind
    if kind == "record" and element.string is not None:
        return f"write has({container.text}.{element.string})"
    if element.type == t.STRING and kind == "string":
        if container.string is not None:
            return f"write in [{container.text}]; contains() finds a part of a text"
        return f"write {container.text}.contains({element.text})"
    if kind == "list" and items and container.type.of[0] == t.STRING:
        hints = [unquote_hint(item.string, element.type) if item.string is not None else "" for item in items]
        if all(hint.startswith("remove the quotes: ") for hint in hints):
            return f"remove the quotes: [{', '.join(hint.partition(': ')[2] for hint in hints)}]"
    if kind == "list" and items and element.type == t.STRING and all(item.is_literal for item in items):
        return f"""write [{", ".join(f"'{item.text}'" for item in items)}], in quotes"""
    return ""
