# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's own conformance cases, and what becomes of each here. As a command it prints the counts of docs/cel.md.

The cases are not part of this repository: FOREWARN_CEL_SPEC names the file, ``../shared/data/cel-spec/cases.json``
beside the checkout is the default.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.expression import ExpressionError, compile_expression
from forewarn.compiler.cel.types import Type
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions import timevalues as tv
from forewarn.policy.functions.dynamic import to_plain

VALUE, ERROR, REFUSED_ERROR, REFUSED, WRONG = "value", "error", "refused error", "refused", "wrong"

Case = Mapping[str, Any]  # as described in README.md beside the cases


class Outcome(NamedTuple):
    """What became of one case.

    ``kind`` is VALUE or ERROR, if the evaluation gave the wanted value or the wanted error; REFUSED_ERROR, if an error
    was wanted and the expression does not compile; REFUSED, if it does not compile though it has a value; or WRONG.
    ``detail`` says why it was refused, or what came instead.
    """

    case: Case
    kind: str
    detail: str


def cases_file(repository: Path) -> Path:
    """Return where the cases are, or should be."""
    named = os.environ.get("FOREWARN_CEL_SPEC")
    return Path(named) if named else repository.parent / "shared" / "data" / "cel-spec" / "cases.json"


def read_cases(repository: Path) -> list[Case]:
    """Return the cases; skip the test where there are none."""
    path = cases_file(repository)
    if not path.is_file():
        pytest.skip(f"no conformance cases at {path}; FOREWARN_CEL_SPEC may name the file")
    found: list[Case] = json.loads(path.read_text(encoding="utf-8"))
    return found


def outcomes(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Compile and evaluate each case."""
    for case in cases:
        yield Outcome(case, *_outcome(case))


def _outcome(case: Case) -> tuple[str, str]:
    wanted = case["expect"]
    if case.get("container"):
        return REFUSED, "names of packages"
    variables = {name: read_type(written) for name, written in case.get("vars", {}).items()}
    try:
        expression = compile_expression(case["expr"], variables)
    except ExpressionError as error:
        return REFUSED_ERROR if wanted[0] == "error" else REFUSED, error.findings[0].message
    bindings = {name: read_value(value) for name, value in case.get("bindings", {}).items() if name in variables}
    try:
        got = to_plain(expression(bindings))
    except EvaluationError as error:
        return ERROR if wanted[0] == "error" else WRONG, f"error: {error}"
    right = wanted[0] == "value" and _same(got, read_value(wanted[1]))
    return VALUE if right else WRONG, repr(got)


def read_type(written: Any) -> Type:
    """Return the type that a case declares."""
    if isinstance(written, list):
        of = [read_type(part) for part in written[1:]]
        return t.list_of(of[0]) if written[0] == "list" else t.map_of(of[0], of[1])
    return t.parse_type(written)


def read_value(written: list[Any]) -> Any:
    """Return a value of a case as the evaluator has it."""
    kind, *payload = written
    readers: Mapping[str, Callable[[], Any]] = {
        "int": lambda: int(payload[0]),
        "uint": lambda: int(payload[0]),
        "double": lambda: float(payload[0]),
        "string": lambda: payload[0],
        "bool": lambda: payload[0],
        "bytes": lambda: base64.b64decode(payload[0]),
        "null": lambda: None,
        "type": lambda: payload[0],
        "list": lambda: [read_value(item) for item in payload[0]],
        "map": lambda: {read_value(key): read_value(item) for key, item in payload[0]},
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


def group(outcome: Outcome) -> str:
    """Return why a case that has a value is refused, in the words of the documentation."""
    reason = outcome.detail
    if "engines" in reason:
        return "literals that engines read in different ways"
    if reason == "names of packages":
        return reason
    if "there is no variable" in reason:
        return "undeclared names beside a deciding true"
    if "divides by zero" in reason:
        return "certain errors beside a deciding side"
    if outcome.case.get("disable_check"):
        return "mistakes of types, in cases that ask for no check"
    return "other"


def counts(found: Sequence[Outcome]) -> str:
    """Return the sentences of docs/cel.md."""
    kinds = Counter(outcome.kind for outcome in found)
    passed = kinds[VALUE] + kinds[ERROR] + kinds[REFUSED_ERROR]
    groups = Counter(group(outcome) for outcome in found if outcome.kind == REFUSED)
    named = ", ".join(f"{name} {count}" for name, count in sorted(groups.items(), key=lambda each: (-each[1], each[0])))
    return (
        f"Of {len(found)} cases **{passed} pass ({100 * passed / len(found):.1f} %), {kinds[REFUSED]} are refused, "
        f"{kinds[WRONG] or 'none'} {'give' if kinds[WRONG] > 1 else 'gives'} another answer.** {kinds[VALUE]} give the "
        f"wanted value, {kinds[ERROR]} the wanted error, and {kinds[REFUSED_ERROR]} that want an error do not compile. "
        f"Refused are: {named}."
    )


if __name__ == "__main__":
    path = cases_file(Path(__file__).resolve().parents[3])
    if not path.is_file():
        sys.exit(f"There are no conformance cases at {path}; FOREWARN_CEL_SPEC may name the file.")
    print(counts(list(outcomes(json.loads(path.read_text(encoding="utf-8"))))))
