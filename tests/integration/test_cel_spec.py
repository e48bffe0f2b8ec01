# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's own conformance cases: each one passes or is refused when it is compiled; none gets another answer.

The cases are not part of this repository: FOREWARN_CEL_SPEC names the file, ``../shared/data/cel-spec/cases.json``
beside the checkout is the default.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler import types as t
from forewarn.compiler.expression import ExpressionError, compile_expression
from forewarn.compiler.types import Type
from forewarn.policy import timevalues as tv
from forewarn.policy.evaluation_error import EvaluationError

# As docs/cel.md states them. A new number has a reason: write it there.
PASSED, REFUSED = 395, 257
GROUPS = {
    "dyn()": 88,
    "cases that expect an error": 47,
    "format()": 46,
    "mixed types in a list, map or comparison": 17,
    "type() and the names of types": 16,
    "strings.quote()": 11,
    "undeclared names beside a deciding true": 9,
    "names of packages and leading dots": 9,
    "literals and doubles that engines read or write differently": 7,
    "certain errors beside a deciding side": 4,
    "back-quoted names": 3,
}


@pytest.fixture(scope="session")
def cases(repository: Path) -> list[dict[str, Any]]:
    named = os.environ.get("FOREWARN_CEL_SPEC")
    path = Path(named) if named else repository.parent / "shared" / "data" / "cel-spec" / "cases.json"
    if not path.is_file():
        pytest.skip(f"no conformance cases at {path}; FOREWARN_CEL_SPEC may name the file")
    loaded: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _type(written: Any) -> Type:
    if isinstance(written, list):
        of = [_type(part) for part in written[1:]]
        return t.list_of(of[0]) if written[0] == "list" else t.map_of(of[0], of[1])
    return t.parse_type(written)


def _value(written: list[Any]) -> Any:
    kind, *payload = written
    readers: Mapping[str, Callable[[], Any]] = {
        "int": lambda: int(payload[0]),
        "uint": lambda: int(payload[0]),
        "double": lambda: float(payload[0]),
        "string": lambda: payload[0],
        "bool": lambda: payload[0],
        "bytes": lambda: base64.b64decode(payload[0]),
        "null": lambda: None,
        "list": lambda: [_value(item) for item in payload[0]],
        "map": lambda: {_value(key): _value(item) for key, item in payload[0]},
        "timestamp": lambda: int(payload[0]) * tv.SECOND + int(payload[1]),
        "duration": lambda: int(payload[0]) * tv.SECOND + int(payload[1]),
    }
    return readers[kind]()


def _same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and all(_same(got[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(_same, got, wanted))
    return type(got) is type(wanted) and repr(got) == repr(wanted)


def _group(case: Mapping[str, Any], reason: str) -> str:
    """Return why a case is refused, in the words of the documentation."""
    for word in ("dyn()", "format()"):
        if reason == f"{word} is not supported":
            return word
    if case["expect"][0] == "error":
        return "cases that expect an error"
    if "engines" in reason:
        return "literals and doubles that engines read or write differently"
    if "strings.quote" in case["expr"]:
        return "strings.quote()"
    if "type()" in reason or case["expect"][1][0] == "type":
        return "type() and the names of types"
    if "of one type" in reason or "does not compare" in reason or "does not look for" in reason:
        return "mixed types in a list, map or comparison"
    if "leading dot" in reason or case.get("container") or any("." in name for name in case.get("vars", ())):
        return "names of packages and leading dots"
    if "`" in reason:
        return "back-quoted names"
    if "there is no variable" in reason:
        return "undeclared names beside a deciding true"
    if "divides by zero" in reason or "takes bool" in reason:
        return "certain errors beside a deciding side"
    return "other"


def test_documentation_states_these_numbers(repository: Path) -> None:
    text = " ".join((repository / "docs" / "cel.md").read_text(encoding="utf-8").split())
    assert f"{PASSED + REFUSED} in all: **{PASSED} pass, {REFUSED} are refused, none gives another answer.**" in text
    assert sum(GROUPS.values()) == REFUSED


def test_every_case_passes_or_is_refused(cases: list[dict[str, Any]]) -> None:
    wrong: list[str] = []
    passed = 0
    refused: Counter[str] = Counter()
    for case in cases:
        try:
            variables = {name: _type(written) for name, written in case.get("vars", {}).items()}
        except ValueError:
            refused[_group(case, "")] += 1
            continue
        if case.get("container") or any("." in name for name in variables):
            refused[_group(case, "")] += 1  # no package, no qualified variable
            continue
        try:
            expression = compile_expression(case["expr"], variables)
        except ExpressionError as error:
            refused[_group(case, error.findings[0].message)] += 1
            continue
        bindings = {name: _value(value) for name, value in case.get("bindings", {}).items() if name in variables}
        try:
            got: Any = expression(bindings)
        except EvaluationError as error:
            right, got = case["expect"][0] == "error", f"error: {error}"
        else:
            right = case["expect"][0] == "value" and _same(got, _value(case["expect"][1]))
        passed += right
        if not right:
            wrong.append(f"{case['section']}/{case['name']}: {case['expr']} gave {got!r}, not {case['expect']}")
    print(f"conformance: {passed} passed, {refused.total()} refused, {len(wrong)} wrong; {dict(refused)}")
    assert not wrong, "\n".join(wrong)
    assert passed + refused.total() == len(cases)
    assert (passed, refused.total()) == (PASSED, REFUSED)
    assert dict(refused) == GROUPS
