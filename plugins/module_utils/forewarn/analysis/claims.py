# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invariants as formulas, and the value of one for a single event, by the runner's own evaluator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..policy.artifact import Artifact
from ..policy.decision import APPROVE, HOLD
from ..policy.evaluate import MAX_STEPS, Builder, Scope, guarded
from ..policy.evaluation_error import EvaluationError
from ..policy.forms import Field, Form, read_form
from ..policy.params import bind
from ..policy.program import ROOTS
from ..policy.view import DocumentView
from .smt.encode.decisions import Decisions
from .smt.encode.expressions import ExpressionEncoder
from .smt.encode.params import Params
from .smt.encode.problem import Encoding
from .smt.terms import Formula, conj, disj, neg
from .witness import Witness

_DECISION = ("decision", APPROVE, HOLD)  # what an invariant may read beside what rules may


class Claim(NamedTuple):
    """A claim about every decision. ``policies`` are those whose parameters it reads, by the parameters' names.

    ``policy`` is the one that makes it, None for a further claim; ``source`` is its file, a library if the policy
    imports it.
    """

    name: str
    policy: str | None
    source: str
    line: int
    column: int
    expression: Mapping[str, Any]
    policies: Mapping[str, str]
    violated: Formula
    failing: Formula


def claims(
    decisions: Decisions, params: Params, artifact: Artifact, further: Sequence[Mapping[str, Any]]
) -> Iterator[Claim]:
    """Yield the invariants of policies, and ``further`` ones: entries as the artifact has them, with ``source``.

    A further claim about a parameter that has several defaults is one claim for each of them.
    """
    for data in artifact.data["policies"]:
        for entry in data.get("invariants", ()):
            owners = dict.fromkeys((one["name"] for one in data["params"]), data["name"])
            yield _claim(decisions, params, entry, data["name"], data["source"], owners)
    for entry in further:
        names = sorted(params_read(read_form(entry["expression"]["form"])))
        for choice in itertools.product(*(params.owners(decisions.version, name) for name in names)):
            yield _claim(decisions, params, entry, None, entry["source"], dict(zip(names, choice)))


def value_of(
    claim: Claim, artifact: Artifact, witness: Witness, given: Mapping[str, Any], decision: str
) -> bool | None:
    """Return whether a claim holds for an event that is decided so; None where it has no value.

    ``given`` are JSON values of parameters, those of the witness among them.
    """
    values: dict[str, Any] = {}
    for data in artifact.data["policies"]:
        declared = {entry["name"] for entry in data["params"]}
        bound = bind(data["params"], {name: one for name, one in given.items() if name in declared}, data["name"])
        values.update({name: one for name, one in bound.items() if claim.policies.get(name) == data["name"]})
    return evaluated(claim.expression, witness, values, dict(zip(_DECISION, (decision, APPROVE, HOLD))))


def evaluated(
    expression: Mapping[str, Any], witness: Witness, params: dict[str, Any], known: Mapping[str, Any]
) -> bool | None:
    """Return the value of a condition for an event, None where it has none.

    ``params`` are converted values, ``known`` the values of names that rules do not have.
    """
    roots = DocumentView(witness.document, witness.facts).roots(witness.document.events[0], params)
    scope = Scope((*ROOTS, *known))
    closure = guarded(Builder(scope, expression).build(read_form(expression["form"])))
    fresh = [None] * (scope.size - len(ROOTS) - len(known) - 2)
    try:
        return bool(closure([MAX_STEPS, None, *roots, *known.values(), *fresh]))
    except EvaluationError:
        return None


def _claim(
    decisions: Decisions,
    params: Params,
    entry: Mapping[str, Any],
    policy: str | None,
    source: str,
    owners: Mapping[str, str],
) -> Claim:
    expression = entry["expression"]

    def parameter(name: str) -> Encoding:
        return params.value(decisions.version, owners[name], name)

    violated, failing = [], []
    for decision, where in ((APPROVE, decisions.approved), (HOLD, neg(decisions.approved))):
        known = {name: Encoding(value) for name, value in zip(_DECISION, (decision, APPROVE, HOLD))}
        value, error = ExpressionEncoder(decisions.inputs, parameter, known).value(expression)
        violated.append(conj((where, neg(error), neg(value))))
        failing.append(conj((where, error)))
    place = expression.get("file", source), expression["line"], expression["column"]
    return Claim(entry["name"], policy, *place, expression, owners, disj(violated), disj(failing))


def params_read(form: Form) -> set[str]:
    """Return the names of the parameters that a form reads."""
    found = {form.name} if isinstance(form, Field) and form.record == "params" else set()
    return found.union(*map(params_read, form.parts))
