# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the solver what changes: the outcomes of two versions that differ for some event, and the events of a change.

The solver looks for an event that the versions treat differently; the outcomes that lead to it are one pair, and the
search goes on without them until there is no other event. Pairs with the same description are one change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..event_space.policies import Reading
from ..event_space.regions import ANY
from ..proof import Example, NoProof, Progress, Proof, decision_dict
from ..smt.encode.decisions import Decisions, OutcomeFormula
from ..smt.encode.problem import OpaqueValue
from ..smt.terms import Formula, conj, disj, neg, same
from ..wording import Context, Wording, contexts
from .behaviour import Behaviour, behaviour
from .behaviour_change import Description
from .change import Change, Part

_MOST_PAIRS = 2000
_MOST_PARTS = 8  # of one change


class OutcomePair(NamedTuple):
    """Outcomes before and after, one for each policy, and where they occur and differ."""

    old: tuple[OutcomeFormula, ...]
    new: tuple[OutcomeFormula, ...]
    when: Formula


def differing_pairs(proof: Proof, progress: Progress) -> tuple[list[OutcomePair], bool]:
    """Return the pairs of outcomes that some event has and that differ, and whether they are all."""
    found: list[OutcomePair] = []
    with proof.solver.scope():
        proof.solver.add(_may_differ(*proof.decisions))
        for _turn in range(_MOST_PAIRS):
            answer = proof.solver.ask()
            if not answer.possible:
                return found, answer.never
            old, new = (_outcomes(proof, one, answer.model) for one in proof.decisions)
            when, differ = conj(one.when for one in (*old, *new)), _differ(proof, old, new)
            possible = not proof.never(when, differ)
            proof.solver.add(neg(when))
            if possible:
                progress("pairs of rules that differ", len(found), 0)
                found.append(OutcomePair(old, new, conj((when, differ))))
    return found, False


def _outcomes(proof: Proof, decisions: Decisions, model: Any) -> tuple[OutcomeFormula, ...]:
    """Return the outcome of each policy in a model."""
    return tuple(
        next(one for one in policy.outcomes if proof.solver.holds(model, one.when)) for policy in decisions.policies
    )


def _differ(proof: Proof, old: Sequence[OutcomeFormula], new: Sequence[OutcomeFormula]) -> Formula:
    """Return where two behaviours differ: everywhere, unless the names of groups are all that can differ."""
    if behaviour(old) == behaviour(new):
        return False
    if behaviour(list(map(_unnamed, old))) != behaviour(list(map(_unnamed, new))):
        return True
    limited = [[one.match for one in side if "limit" in one.data and one.match is not None] for side in (old, new)]
    if len(limited[0]) != len(limited[1]):
        return True
    parts: list[Formula] = []
    for pair in zip(*limited):
        names = [match.limit_value.value for match in pair if match.limit_value is not None]
        if names and (len(names) < len(pair) or any(isinstance(name, OpaqueValue) for name in names)):
            return True
        codes = list(map(proof.problem.texts.code, names))
        parts += [neg(same(*codes))] if codes else []
    return disj(parts)


def _unnamed(one: OutcomeFormula) -> OutcomeFormula:
    """Return an outcome as if all expressions that name a group had the same value."""
    return one if one.match is None else replace(one, match=replace(one.match, limit_group=None))


def _may_differ(before: Decisions, after: Decisions) -> Formula:
    """Return where the outcome of some policy is not the same in both versions."""
    names = [policy.name for policy in before.policies]
    if names != [policy.name for policy in after.policies]:
        return True
    parts = []
    for old, new in zip(before.policies, after.policies):
        alike: dict[Behaviour, tuple[list[Formula], list[Formula]]] = {}
        for side, policy in enumerate((old, new)):
            for one in policy.outcomes:
                alike.setdefault(behaviour([one]), ([], []))[side].append(one.when)
        parts.append(neg(disj(conj((disj(both[0]), disj(both[1]))) for both in alike.values())))
    return disj(parts)


def changes_of(
    proof: Proof, descriptions: Mapping[Description, Sequence[OutcomePair]], progress: Progress
) -> Iterator[Change]:
    """Yield the changes that some event shows or may show, each with its events."""
    among = [(one, Wording(proof, one.readings)) for one in contexts(proof)] if descriptions else []
    for number, (description, pairs) in enumerate(descriptions.items(), 1):
        progress("changes", number, len(descriptions))
        change = _change(proof, among, description, pairs)
        if change.parts:
            yield change


def _change(
    proof: Proof, among: Sequence[tuple[Context, Wording]], description: Description, pairs: Sequence[OutcomePair]
) -> Change:
    """Return a change with its events; without any if they turn out to be impossible."""
    change = Change(description.what, description.effect, None, kinds=description.kinds)
    formula = disj(pair.when for pair in pairs)
    usual = not proof.never(formula, proof.normal)
    if usual:
        formula = conj((formula, proof.normal))
    found: list[tuple[str, Formula]] = []
    for context, wording in among:
        if proof.never(formula, context.given):
            continue
        here = conj((context.given, proof.normal if usual else True))
        inside = conj((formula, context.given))
        parts, complete = wording.parts(inside, here, _reads(context.readings, pairs), _MOST_PARTS)
        change.complete = change.complete and complete
        found += ((context.joined(when), conj((part, context.given))) for when, part in parts)
    words_fit = any(not proof.never(formula, part) for _when, part in found)
    for when, part in found if words_fit else [(ANY, True)]:  # no words are a reason to drop a change
        shown = proof.shows(formula, part)
        if isinstance(shown, NoProof):
            change.parts.append(Part(when, usual, None, None, None, certain=False, why=shown.why))
        elif shown is not None:
            change.rule = change.rule or _deciding_rule(proof, shown)
            sides = [decision_dict(one) for one in shown.decisions]
            change.parts.append(Part(when, usual, shown.witness.as_dict(), sides[0], sides[1], certain=True))
    return change


def _reads(readings: Sequence[Reading], pairs: Sequence[OutcomePair]) -> set[str]:
    """Return the names of the inputs that the rules read which decide before or after."""
    sides = ([pair.old for pair in pairs], [pair.new for pair in pairs])
    deciding = [{(one.policy, one.rule) for outcomes in side for one in outcomes} for side in sides]
    return set().union(*(reading.reads_of(rules) for reading, rules in zip(readings, deciding)))


def _deciding_rule(proof: Proof, shown: Example) -> tuple[str, str, str, int, int] | None:
    decision = shown.decisions[1]
    match = proof.decisions[1].rule(decision.policy, decision.rule)
    if match is None:
        return None
    policy = match.policy
    return policy["name"], match.path, policy["source"], match.data["line"], match.data["column"]
