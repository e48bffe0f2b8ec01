# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks one CEL expression: source and declarations in; typed form, type and findings out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ...errors import InputError
from ...policy.builder import Builder
from ...policy.environment import Closure, Scope, guard
from ...policy.forms import read_form
from .checker import new_context
from .context import CheckContext
from .forms import TypedForm, as_form
from .macros import ASSUMED_ELEMENTS
from .syntax import SyntaxNode, parse
from .type_hints import bool_hint, text_hint, unquote_hint
from .types import (
    BOOL,
    STRING,
    UNKNOWN,
    CelSyntaxError,
    Declarations,
    ExpressionFinding,
    RecordField,
    Type,
    join,
)

MAX_COST = 1_000_000  # steps, if every list of unknown length had ASSUMED_ELEMENTS

# Every code of a finding about an expression, and its meaning.
CODES = {
    "syntax": "The text is not an expression of CEL.",
    "too-long": "The expression is longer than anybody reviews.",
    "too-deep": "The expression is nested deeper than the evaluator on a VM goes.",
    "too-costly": "Loops in loops could keep a VM from polling.",
    "literal-newline": "A line break inside a text literal, which engines read in different ways.",
    "engines-disagree": "A construct that CEL engines are known to read or evaluate in different ways.",
    "bad-escape": "An escape sequence that CEL does not have.",
    "bad-number": "A number that CEL cannot write or hold.",
    "bad-literal": "A literal that its function cannot use: a duration, time, pattern, number, zone.",
    "reserved-word": "A word that CEL reserves.",
    "undeclared-name": "A name that is not declared.",
    "unknown-field": "A field that the record does not have.",
    "unknown-value": "A text that the field can never be.",
    "unknown-function": "A function that does not exist, or is called the wrong way round.",
    "value-not-in-api-version": "A value that the service never sends in the configured api-version. A warning: "
    "the comparison has one answer only.",
    "case-sensitive": "The VM's name compared with Resources by case, which affects_me and leader ignore. A warning.",
    "field-not-in-api-version": "A field that the configured api-version lacks, read without has().",
    "type-mismatch": "An operator or function applied to types it does not take.",
    "mixed-types": "A record among values of other types.",
    "bad-macro": "A macro, such as has(), all() or map(), with the wrong arguments, or with a dot before it.",
    "unsupported": "Valid CEL that Forewarn refuses, because it cannot be checked ahead of time.",
    "not-json": "A value in the body of an http hook that JSON does not have.",
    "wrong-result-type": "The expression does not have the type that its place needs: a condition must be a bool.",
}


@dataclass(frozen=True)
class CheckResult:
    """A checked expression: ``form`` (policy/forms.py) and ``type`` are None if a finding is an error."""

    form: list[Any] | None
    type: Type | None
    findings: tuple[ExpressionFinding, ...]


class ExpressionError(InputError):
    """An expression has mistakes; ``findings`` has all of them, and the warnings."""

    def __init__(self, source: str, findings: tuple[ExpressionFinding, ...]) -> None:
        lines = [f"character {finding.start + 1}: {finding.message} [{finding.code}]" for finding in findings]
        super().__init__(f"{source!r}: " + "; ".join(lines), findings[0].suggestion)
        self.findings = findings


def check(source: str, declarations: Declarations, expect: Type | None = None) -> CheckResult:
    """Check an expression, whose type must be ``expect`` if that is given. Mistakes are findings of the result."""

    def check_result(context: CheckContext, node: SyntaxNode) -> TypedForm:
        result = context.check(node)
        if expect is not None and result.type != UNKNOWN and join(result.type, expect) is None:
            operand = context.operand(node, result.type)
            if expect in (BOOL, STRING):
                hint = bool_hint(operand) if expect == BOOL else text_hint(operand)
            else:
                hint = "" if operand.string is None else unquote_hint(operand.string, expect)
            context.report(node, "wrong-result-type", f"this must be {expect}, and it is {result.type}", hint)
        return result

    return check_with(source, declarations, check_result)


def check_with(
    source: str, declarations: Declarations, check_root: Callable[[CheckContext, SyntaxNode], TypedForm]
) -> CheckResult:
    """Parse an expression, and check its tree with a function that reports mistakes to the context."""
    try:
        node = parse(source)
    except CelSyntaxError as error:
        return CheckResult(None, None, (error.finding,))
    context = new_context(declarations, source)
    form, type_ = check_root(context, node)
    findings = context.findings
    if context.cost > MAX_COST:
        message = f"loops in loops: {context.cost:,} steps if every list has {ASSUMED_ELEMENTS} elements"
        hint = "nest fewer loops, or compute the inner one in a variable"
        findings.append(ExpressionFinding("too-costly", message, node.start, node.end, hint))
    ordered = tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.start, finding.end, finding.code)))
    if any(finding.severity == "error" for finding in ordered):
        return CheckResult(None, None, ordered)
    return CheckResult(as_form(form), type_, ordered)


@dataclass(frozen=True)
class CompiledExpression:
    """A compiled expression by itself: call it with a value for each declared variable.

    Timestamps and durations are nanoseconds. Raises EvaluationError where CEL has an error.
    """

    source: str
    type: Type
    scope: Scope
    closure: Closure

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the expression."""
        unknown = values.keys() - self.scope.slots.keys()
        if unknown:
            raise InputError(f"no variable {min(unknown)} was declared for {self.source!r}")
        return self.closure(self.scope.environment(values))


def compile_expression(
    source: str,
    variables: Mapping[str, Type],
    expect: Type | None = None,
    records: Mapping[str, Mapping[str, RecordField]] | None = None,
) -> CompiledExpression:
    """Compile one expression over declared variables. Raises ExpressionError with all mistakes."""
    checked = check(source, Declarations(variables, records or {}), expect)
    if checked.form is None or checked.type is None:
        raise ExpressionError(source, checked.findings)
    scope = Scope(tuple(variables))
    closure = guard(Builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(checked.form)))
    return CompiledExpression(source, checked.type, scope, closure)
