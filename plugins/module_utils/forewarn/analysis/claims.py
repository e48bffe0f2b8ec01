# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions about decisions as formulas, and their value for a single event, by the runner's own evaluator.

Invariants are such expressions; so are the questions of ``query.predicate``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Tuple

from ..policy.artifact import Artifact
from ..policy.builder import Builder
from ..policy.decision import APPROVE, HOLD
from ..policy.environment import MAX_STEPS, Scope, guard
from ..policy.evaluation_error import EvaluationError
from ..policy.forms import read_form
from ..policy.params import convert
from ..policy.program import ROOTS
from ..policy.view import DocumentView
from .artifacts import Json, params_read
from .smt.encode.decisions import Decisions
from .smt.encode.expressions import ExpressionEncoder
from .smt.encode.params import Params
from .smt.encode.problem import Encoding
from .smt.terms import Formula, conj, disj, neg
from .witness import Witness

Owner = Tuple[int, str]  # a version, and a policy of it: which declares a parameter


class ExpressionFormulas(NamedTuple):
    """Where a bool expression about decisions is true, false, and without a value."""

    true: Formula
    false: Formula
    failing: Formula


class Claim(NamedTuple):
    """A claim about every decision. ``owners`` are the policies whose parameters it reads, by the parameters' names.

    ``policy`` is the one that makes it, None for a further claim; ``source`` is its file, a library if the policy
    imports it.
    """

    name: str
    policy: str | None
    source: str
    line: int
    column: int
    expression: Json
    owners: Mapping[str, Owner]
    formulas: ExpressionFormulas


def claims(decisions: Decisions, params: Params, artifact: Artifact, further: Sequence[Json]) -> Iterator[Claim]:
    """Yield the invariants of policies, and ``further`` ones: entries as the artifact has them, with ``source``.

    A further claim about a parameter that has several defaults is one claim for each of them.
    """
    policies = artifact.data["policies"]
    own = [(entry, data["name"], data["source"]) for data in policies for entry in data.get("invariants", ())]
    version = decisions.version
    for entry, policy, source in (*own, *((entry, None, entry["source"]) for entry in further)):
        expression = entry["expression"]
        names = sorted(params_read(read_form(expression["form"])))
        choices = ([policy] if policy is not None else params.owners(version, name) for name in names)
        for choice in itertools.product(*choices):
            owners = {name: (version, one) for name, one in zip(names, choice)}
            formulas = formulas_of([decisions], params, expression, owners)
            place = expression.get("file", source), expression["line"], expression["column"]
            yield Claim(entry["name"], policy, *place, expression, owners, formulas)


def formulas_of(
    versions: Sequence[Decisions],
    params: Params,
    expression: Json,
    owners: Mapping[str, Owner],
    prepared: Formula | None = None,
) -> ExpressionFormulas:
    """Return an expression about the decisions of versions of policies as formulas.

    It is about the last version; ``prepared`` is where something is prepared, if it may ask for that.
    """
    last, found = versions[-1], ExpressionFormulas([], [], [])
    for outputs in itertools.product((APPROVE, HOLD), repeat=len(versions)):
        where = [one.approved if output == APPROVE else neg(one.approved) for one, output in zip(versions, outputs)]
        known = {name: Encoding(one) for name, one in _known(outputs, prepared).items()}
        encoder = ExpressionEncoder(last.inputs, lambda name: params.value(*owners[name], name), known)
        value, error = encoder.value(expression)
        for parts, formulas in zip(found, ((neg(error), value), (neg(error), neg(value)), (error,))):
            parts.append(conj((*where, *formulas)))
    return ExpressionFormulas(*map(disj, found))


def value_of(
    versions: Sequence[Artifact],
    expression: Json,
    owners: Mapping[str, Owner],
    witness: Witness,
    outputs: Sequence[str],
    prepared: bool | None = None,
) -> bool | None:
    """Return the value of an expression for an event that the versions decide so; None where it has none.

    The witness has the parameters that are given for all events, too.
    """
    values = {}
    for name, (version, policy) in owners.items():
        data = next(one for one in versions[version].data["policies"] if one["name"] == policy)
        entry = next(one for one in data["params"] if one["name"] == name)
        given = witness.params
        values[name] = convert(given[name] if name in given else entry["default"], entry["type"])
    known = _known(outputs, prepared)
    roots = DocumentView(witness.document, witness.facts).roots(witness.document.events[0], values)
    scope = Scope((*ROOTS, *known))
    closure = guard(Builder(scope, expression).build(read_form(expression["form"])))
    fresh = [None] * (scope.size - len(ROOTS) - len(known) - 2)
    try:
        return bool(closure([MAX_STEPS, None, *roots, *known.values(), *fresh]))
    except EvaluationError:
        return None


def _known(outputs: Sequence[str], prepared: Any) -> dict[str, Any]:
    """Return the values of the names that rules do not have."""
    known = {"decision": outputs[-1], "approve": APPROVE, "hold": HOLD}
    if prepared is not None:
        known["prepare"] = prepared
    return {**known, "was": outputs[0]} if len(outputs) > 1 else known
