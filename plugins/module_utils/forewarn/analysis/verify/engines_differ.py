# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for rules on which forewarn and cel-python differ, with an event for each result that a rule can have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...compiler.testing.second_opinion import CODE, HINT, SecondOpinion
from ..proof import Example
from ..smt.encode.decisions import MatchFormulas
from ..witness import Witness
from .finding import ProofFinding
from .rules import RuleExample
from .search import Search, at_rule


def rule_differences(search: Search, seen: Sequence[RuleExample]) -> Iterator[ProofFinding]:
    """Yield the expressions on which the engines differ, for events of ``RuleSearch``."""
    opinion = SecondOpinion(search.artifact)
    for place, one in enumerate(seen):
        yield from _differences(search, opinion, one.match, one.witness)
        before = seen[place - 1].match if place else one.match
        if before is not one.match:  # the event reached the rule before this one, whose condition does not hold
            yield from _differences(search, opinion, before, one.witness)


def example_differences(search: Search) -> Iterator[ProofFinding]:
    """Yield the expressions on which the engines differ for the event of a finding, in the rules that decide it."""
    opinion = SecondOpinion(search.artifact)
    for shown in list(search.cases):
        for verdict in shown.decisions[0].verdicts:
            match = search.decisions.rule(verdict.policy, verdict.rule)
            if match is not None:
                yield from _differences(search, opinion, match, shown.witness)


def _differences(
    search: Search, opinion: SecondOpinion, match: MatchFormulas, witness: Witness
) -> Iterator[ProofFinding]:
    document, facts, params = witness.document, witness.facts, search.proof.with_given(witness).params
    name, source = match.policy["name"], match.policy["source"]
    for one in opinion.differences(name, (match.path,), document.events[0], document, facts, params):
        at = one.expression
        finding = at_rule(CODE, "error", match, one.message, HINT)
        finding = replace(finding, source=at.get("file", source), line=at["line"], column=at["column"])
        yield search.with_case(finding, Example(witness, (search.proof.decide(witness),), None))
