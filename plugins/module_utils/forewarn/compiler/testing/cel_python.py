# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates expressions with cel-python's interpreter. Values go in and come out in our own evaluator's form.

Only the interpreter is used: cel-python's compiled runner shares state between threads and has given wrong answers.
Both engines use the tree of one parser, since they have the same grammar.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ...policy.functions import timevalues as tv
from ..cel.syntax import grammar_tree
from ..cel.types import RecordField
from .outcome import Outcome

try:
    from celpy import celtypes
    from celpy.evaluation import Activation, CELEvalError, Evaluator
except ImportError as error:  # a failed import must not break the modules beside this one
    IMPORT_ERROR: ImportError | None = error
else:
    IMPORT_ERROR = None

# What cel-python's interpreter has of CEL. Optional values and the extensions are not among it.
_FUNCTIONS = frozenset(
    (
        *("all", "exists", "exists_one", "map", "filter", "has"),
        *("size", "contains", "startsWith", "endsWith", "matches"),
        *("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"),
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    )
)
# A name and a predicate, not those with two variables; one text in another, not sets.contains.
_ARGUMENTS = {"all": 2, "exists": 2, "exists_one": 2, "contains": 1}
_RULES = frozenset(("member_optional_dot", "member_optional_index", "optional_element", "dot_ident", "dot_ident_arg"))
UNSUPPORTED = Outcome("broken", "cel-python lacks something of the expression")
_DEPTH = 4000  # frames: an expression nested 64 levels deep takes more than the usual 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class CelPython:
    """cel-python's interpreter. ``records`` declares the fields of each record.

    Times are whole microseconds, the finest that it takes. Without cel-python there is ``IMPORT_ERROR``.
    """

    def __init__(self, records: Mapping[str, Mapping[str, RecordField]]) -> None:
        self._records = records
        self._trees: dict[str, Any] = {}

    def evaluate(self, source: str, values: Mapping[str, Any], types: Mapping[str, str]) -> Outcome:
        """Evaluate an expression. ``values`` are by name, and some may be missing; ``types`` are in CEL's notation.

        The outcome is UNSUPPORTED where cel-python lacks something of the expression. Raises CelSyntaxError.
        """
        if source not in self._trees:
            tree = grammar_tree(source)
            self._trees[source] = tree if _is_supported(tree) else None
        if self._trees[source] is None:
            return UNSUPPORTED
        given = {name: self._to_celpy(value, types[name]) for name, value in values.items()}
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(max(depth, _DEPTH))
        try:
            return Outcome("value", _from_celpy(Evaluator(self._trees[source], Activation()).evaluate(given)))
        except CELEvalError as error:
            return Outcome("error", str(error.args[0]).partition(" (in activation")[0])
        except Exception as error:  # any type: it fails with TypeError, RecursionError and others
            return Outcome("broken", f"{type(error).__name__}: {error}")
        finally:
            sys.setrecursionlimit(depth)

    def _to_celpy(self, value: Any, kind: str) -> Any:
        if kind.startswith("record("):
            fields = self._records[kind[len("record(") : -1]]
            pairs = ((celtypes.StringType(name), str(fields[name].type), item) for name, item in value.items())
            return celtypes.MapType({name: self._to_celpy(item, type_) for name, type_, item in pairs})
        if kind.startswith("list("):
            inner = kind[len("list(") : -1]
            return celtypes.ListType([self._to_celpy(item, inner) for item in value])
        if kind.startswith("map("):
            key, _comma, inner = kind[len("map(") : -1].partition(", ")
            return celtypes.MapType(
                {self._to_celpy(name, key): self._to_celpy(item, inner) for name, item in value.items()}
            )
        if kind == "timestamp":
            return celtypes.TimestampType(_EPOCH + timedelta(microseconds=value // 1000))
        if kind == "duration":
            return celtypes.DurationType(timedelta(microseconds=value // 1000))
        return value if kind == "null" else getattr(celtypes, f"{kind.capitalize()}Type")(value)


def _is_supported(tree: Any) -> bool:
    """Return whether cel-python's interpreter has all that is in a tree."""
    for part in tree.iter_subtrees():
        if part.data in _RULES or any(getattr(child, "type", "") == "QUOTED_IDENT" for child in part.children):
            return False
        if part.data in ("ident_arg", "member_dot_arg"):
            name, *lists = part.children[part.data == "member_dot_arg" :]
            given = len(lists[0].children) if lists else 0
            if name not in _FUNCTIONS or _ARGUMENTS.get(name, given) != given:
                return False
    return True


def _from_celpy(value: Any) -> Any:
    if isinstance(value, celtypes.BoolType):
        return bool(value)
    if isinstance(value, (celtypes.TimestampType, datetime)):
        return tv.from_datetime(value)
    if isinstance(value, (celtypes.DurationType, timedelta)):
        return (value.days * 86400 + value.seconds) * tv.SECOND + value.microseconds * 1000
    if isinstance(value, (celtypes.IntType, celtypes.UintType)):
        return int(value)
    if isinstance(value, celtypes.DoubleType):
        return float(value)
    if isinstance(value, celtypes.StringType):
        return str(value)
    if isinstance(value, celtypes.BytesType):
        return bytes(value)
    if isinstance(value, list):
        return [_from_celpy(item) for item in value]
    if isinstance(value, dict):
        return {_from_celpy(key): _from_celpy(item) for key, item in value.items()}
    return value
