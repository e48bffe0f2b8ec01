# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random expressions: the evaluator that records what it reads gives the answers of the one that does not."""

from __future__ import annotations

from random import Random

from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.policy.builder import Builder
from forewarn.policy.decision import Value
from forewarn.policy.environment import Scope
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
from forewarn.policy.program import ROOTS
from forewarn.policy.trace import TracingBuilder
from tools.generators.cel_expressions import Generator
from tools.generators.cel_variables import DECLARATIONS, PARAMS, values
from tools.judges.cel_oracles import MISSING
from tools.suite.sizes import SEED, examples


def test_recording_what_is_read_changes_no_answer() -> None:
    """Explanations, and the conditions of what matched, are evaluated by the builder that records."""
    random = Random(SEED)
    recorded = 0
    for _ in range(examples(1500)):
        source = Generator(random).expression()
        form = check(source, DECLARATIONS).form
        if form is None:
            continue
        given = {name: value for name, value in values(random).items() if value is not MISSING}
        outcomes = []
        trace: list[Value] = []
        for builder in (Builder, TracingBuilder):
            scope = Scope(tuple(DECLARATIONS.variables))
            closure = builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(form))
            try:
                outcomes.append(repr(closure(scope.environment(given, trace))))
            except EvaluationError as error:
                outcomes.append(f"error at {error.start} to {error.end}: {error}")
        assert outcomes[0] == outcomes[1], source
        assert all(isinstance(value.value, str) and len(value.value) <= 200 for value in trace)
        recorded += len(trace)
    assert recorded > examples(1000)


def test_declarations_of_these_tests_are_those_of_policies() -> None:
    assert policy_declarations("2020-07-01", PARAMS, {}, {}) == DECLARATIONS
    assert not set(DECLARATIONS.variables) ^ set(ROOTS)
