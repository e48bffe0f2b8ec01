# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy implies``: how what two sets of policies approve is related, proven for every event."""

from __future__ import annotations

from ...policy.artifact import Artifact
from ...policy.decision import APPROVE
from ..artifacts import Json
from ..proof import Example, Progress, Proof, silent
from ..smt.effort import within_limits
from ..smt.terms import conj, neg
from ..wording import contexts
from .answers import QueryAnswer, answered

# What may be claimed of A and B.
IMPLIES, EQUIVALENT, DISJOINT = "implies", "equivalent", "disjoint"


@within_limits
def exceptions(
    relation: str, one: Artifact, other: Artifact, params: Json | None = None, progress: Progress = silent
) -> tuple[QueryAnswer, ...]:
    """Return the events that contradict a relation, as one answer for each way to contradict it.

    IMPLIES: events that the first policies approve and the others hold. EQUIVALENT: these, and those the other way
    round. DISJOINT: events that both approve. ``params`` are JSON values, the same for both.

    Raises InputError where z3 is missing, AnalysisError on a defect of our own.
    """
    proof = Proof([one, other], params)
    first, second = (decisions.approved for decisions in proof.decisions)
    cases = list(contexts(proof))
    found = []
    for wanted in _CONTRADICTIONS[relation]:

        def confirm(shown: Example, wanted: tuple[bool, bool] = wanted) -> bool:
            return tuple(decision.output == APPROVE for decision in shown.decisions) == wanted

        formula = conj(term if approved else neg(term) for term, approved in zip((first, second), wanted))
        found.append(answered(proof, cases, formula, confirm, progress))
    return tuple(found)


# Whether the first and the second policies approve an event that contradicts a relation.
_CONTRADICTIONS = {
    IMPLIES: ((True, False),),
    EQUIVALENT: ((True, False), (False, True)),
    DISJOINT: ((True, True),),
}
