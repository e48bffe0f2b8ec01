# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy query``: the events for which an expression holds; and the changes that ``policy diff --forbid`` refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...policy.artifact import Artifact
from ..proof import Progress, Proof, silent
from ..smt.effort import within_limits
from ..wording import contexts
from .answers import QueryAnswer, answered, formula_words
from .predicate import compile_question, predicate


@within_limits
def query(
    versions: Sequence[Artifact],
    expression: str,
    params: Mapping[str, Any] | None = None,
    progress: Progress = silent,
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
