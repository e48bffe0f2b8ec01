# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy query``: the events for which an expression holds; and the changes that ``policy diff --forbid`` refuses.

An expression of CEL may use what an invariant may, ``prepare`` (whether anything is prepared), and, where two versions
of policies are compared, ``was``: the decision of the old version.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...compiler.cel.environment import policy_declarations, question_declarations
from ...compiler.cel.expression import check
from ...compiler.cel.types import BOOL, ExpressionFinding
from ...compiler.findings import Report, SourceText, render
from ...errors import InputError
from ...policy.artifact import Artifact
from ...policy.decision import APPROVE, HOLD
from ...policy.forms import read_form
from ..artifacts import Json, params_read
from ..claims import Owner, formulas_of, value_of
from ..invariants import declared
from ..proof import Example, Progress, Proof, silent
from ..smt.effort import within_limits
from ..smt.terms import Formula, disj
from ..wording import contexts
from .answers import SOURCE, QueryAnswer, answered, formula_words

_NEW_DECISION = re.compile(r"\b(now|is|new)\b")
_CHANGE_HINT = "the new decision is called 'decision', the old one 'was'; 'now' is the time"


def compile_question(source: str, versions: Sequence[Artifact]) -> dict[str, Any]:
    """Return a question about one version of policies, or a change of them, as an artifact has an invariant.

    Raises InputError with all mistakes, each with a caret.
    """
    types, extra = declared(versions)
    change = len(versions) > 1
    names = policy_declarations(versions[-1].api_version, types, {}, extra)
    checked = check(source, question_declarations(names, change=change), BOOL)
    if checked.form is None:
        raise InputError("\n".join(_mistakes(source, checked.findings, change=change)))
    expression = {"source": source, "line": 1, "column": 1, "form": checked.form}
    known: list[dict[str, Any]] = [{"prepare": prepare} for prepare in (True, False)]
    if change:
        known = [{**one, "was": was} for one in known for was in (APPROVE, HOLD)]
    return {"name": source, "source": SOURCE, "expression": expression, "known": known}


class Predicate(NamedTuple):
    """A question about the events of one proof: where it ``holds``, and where it is ``failing``, without a value."""

    holds: Formula
    failing: Formula
    value: Callable[[Example], bool | None]  # for one event, by the runner's own evaluator


def predicate(proof: Proof, entry: Json) -> Predicate:
    """Return a compiled question as formulas. Must not be called after the proof's first question.

    A parameter that has several defaults has each of them.
    """
    expression = entry["expression"]
    names = sorted(params_read(read_form(expression["form"])))
    choices = [dict(zip(names, one)) for one in itertools.product(*(_owners(proof, name) for name in names))]
    found = []
    for owners in choices:
        somewhere = proof.decisions[-1].where(lambda one: one.data.get("prepare"))
        prepared = proof.problem.define("something is prepared", somewhere)
        found.append(formulas_of(proof.decisions, proof.params, expression, owners, prepared))

    def value(shown: Example) -> bool | None:
        witness, outputs = proof.with_given(shown.witness), [decision.output for decision in shown.decisions]
        prepared = bool(shown.decisions[-1].prepare)
        values = [value_of(proof.versions, expression, owners, witness, outputs, prepared) for owners in choices]
        return True if True in values else None if None in values else False

    return Predicate(disj(one.true for one in found), disj(one.failing for one in found), value)


def _owners(proof: Proof, name: str) -> list[Owner]:
    """Return the policies whose defaults a parameter may have: those of the last version that declares it."""
    for version in reversed(range(len(proof.versions))):
        found = proof.params.owners(version, name)
        if found:
            return [(version, policy) for policy in found]
    return []


def _mistakes(source: str, findings: Sequence[ExpressionFinding], *, change: bool) -> list[str]:
    report = Report(SourceText(SOURCE, source))
    for one in findings:
        about = source[one.start : one.end]
        meant = change and one.code in ("type-mismatch", "undeclared-name") and _NEW_DECISION.search(about)
        report.add(one.code, one.message, one.start, one.end, _CHANGE_HINT if meant else one.suggestion, one.severity)
    return ["the expression has mistakes:", *(line for finding in report.findings for line in render(finding))]


@within_limits
def query(
    versions: Sequence[Artifact], expression: str, params: Json | None = None, progress: Progress = silent
) -> QueryAnswer:
    """Return the events for which an expression of CEL holds, by one version of policies, or before and after a change.

    ``params`` are JSON values given for parameters; others vary over all that is allowed. Raises InputError for a
    mistake in the expression and where z3 is missing, AnalysisError on a defect of our own.
    """
    entry = compile_question(expression, versions)
    proof = Proof(versions, params)
    asked = predicate(proof, entry)
    cases = list(contexts(proof, [entry]))
    found = answered(proof, cases, asked.holds, lambda shown: asked.value(shown) is True, progress)
    return replace(found, no_value=formula_words(proof, cases, asked.failing))
