# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions over JSON values: their types are declared, or inferred from the values.

The filter ``cel`` uses this for the variables of a playbook.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ...policy.functions import timevalues
from ...policy.functions.dynamic import Dyn, inner_types
from ...policy.params import convert
from .types import BOOL, DOUBLE, INT, NOTHING, NULL, STRING, RecordField, Type, join, list_of, parse_type

_SCALARS = {type(None): NULL, bool: BOOL, int: INT, float: DOUBLE, str: STRING}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def evaluate(values: Mapping[str, Any], source: str, types: Mapping[str, str]) -> Any:
    """Check and evaluate an expression; ``types`` names the types that cannot be inferred from the values.

    Raises InputError with all mistakes, and EvaluationError.
    """
    # Not at the top: it takes long to import, and this file is imported for every filter of the collection.
    from .expression import compile_expression

    if importlib.util.find_spec("celpy") is None:
        raise InputError(
            f"expressions of CEL need cel-python, not installed for {sys.executable}.",
            f"Install it: {sys.executable} -m pip install cel-python",
        )
    if not isinstance(values, Mapping):
        raise InputError("the values are not mappings of names.")
    if not isinstance(types, Mapping):
        raise InputError("types is not a mapping of names to types.")
    for name, kind in types.items():
        if not isinstance(kind, str):
            raise InputError(f"types: {name} is declared as {kind}, which is not text.")
    names = [name for name in dict.fromkeys(_WORD.findall(source)) if name in values or name in types]
    variables: dict[str, Type] = {}
    given: dict[str, Any] = {}
    records: dict[str, dict[str, RecordField]] = {}
    for name in names:
        declared = types.get(name)
        if name not in values:
            raise InputError(f"{name} is declared as {declared}, and has no value.")
        value = plain_json(values[name], name)
        try:
            if declared is None:
                variables[name], given[name] = infer(value, name, records), value
            else:
                variables[name], given[name] = parse_type(declared), convert(value, declared)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from error
    expression = compile_expression(source, variables, records=records)
    return _to_playbook(expression(given), str(expression.type))


def infer(value: Any, place: str, records: dict[str, dict[str, RecordField]]) -> Type:
    """Return the type of a plain value; mappings become records, whose fields are added to ``records`` by ``place``.

    Raises ValueError where the value has no CEL type.
    """
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        if scalar != NULL:
            convert(value, str(scalar))
        return scalar
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        # One record for all elements; fields that some of them lack must be tested with has().
        fields = {}
        for name in dict.fromkeys(name for item in value for name in item):
            found = [item[name] for item in value if name in item]
            type_ = infer(found, f"{place}[].{name}", records).of[0]
            fields[name] = RecordField(type_, always_exists=len(found) == len(value))
        records[f"{place}[]"] = fields
        return list_of(Type("record", name=f"{place}[]"))
    if isinstance(value, list):
        element = NOTHING
        for number, item in enumerate(value):
            joined = join(element, infer(item, f"{place}[{number}]", records))
            if joined is None:
                raise ValueError(f"{place} is a list of several types, which no variable has here")
            element = joined
        return list_of(element)
    fields = {}
    for name, item in value.items():
        fields[name] = RecordField(infer(item, f"{place}.{name}", records), always_exists=True)
    records[place] = fields
    return Type("record", name=place)


def plain_json(value: Any, what: str) -> Any:
    """Return JSON values without subclasses of str and dict such as Ansible's: the evaluator is strict about types.

    Raises InputError, naming ``what``, for values that JSON does not have.
    """
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}.", "Write dates, times and durations as quoted texts.") from error


def _to_playbook(value: Any, type_: str) -> Any:
    """Return a value as playbooks hold it: times and durations, internally nanoseconds, become texts."""
    if isinstance(value, Dyn):
        return _to_playbook(value.value, value.type)
    outer = type_.partition("(")[0]
    if outer == "timestamp":
        return timevalues.format_timestamp(value)
    if outer == "duration":
        return timevalues.format_duration(value)
    if outer == "bytes":
        raise InputError("the expression yields bytes, which a playbook cannot hold.", "Use string(…).")
    if outer == "optional":
        raise InputError("the expression yields an optional value, which a playbook cannot hold.", "Use orValue(…).")
    if outer == "list":
        return [_to_playbook(item, inner_types(type_)[0]) for item in value]
    if outer == "map":
        key_type, value_type = inner_types(type_)
        return {_to_playbook(key, key_type): _to_playbook(item, value_type) for key, item in value.items()}
    return value
