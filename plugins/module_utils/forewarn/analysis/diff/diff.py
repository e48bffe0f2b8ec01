# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy diff``: the events that two sets of policies decide differently, and whether the new one allows more.

Both are translated together (``proof``). The solver looks for an event that they treat differently; the outcomes that
lead to it are one pair, and the search goes on without them until there is no other event. Pairs with the same
description are one change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...policy.artifact import Artifact
from ...policy.decision import Decision
from ..contexts import Context, contexts
from ..describe import Wording, reads
from ..event_space.policies import Reading
from ..event_space.regions import ANY
from ..progress import Progress, silent
from ..proof import Proof, Shown, decision_dict
from ..smt.effort import within_limits
from ..smt.encode.decisions import Decisions, OutcomeFormula
from ..smt.encode.problem import OpaqueValue
from ..smt.solver import SolverAnswer
from ..smt.terms import Formula, conj, disj, neg, same
from .behaviour import behaviour
from .behaviour_change import Description, describe
from .declarations import Declaration, changed_declarations
from .kinds import ALIKE, EXPLANATION, INCOMPARABLE, KINDS, LESS, MORE, UNPROVEN, joint_effect

_GAVE_UP = "the solver did not find all changes within its limits, so there may be others"
_MOST_PARTS = 8  # of one change
_MOST_PAIRS = 2000  # outcomes before and after


class Part(NamedTuple):
    """The events of one change as text, with an example and its decisions before and after, as the engine makes them.

    ``usual`` is False if only events that the service does not send are among them. Where no event was found that shows
    the change, it is not ``certain``: there is no example and no decision, and ``why`` says what stands in the way.
    """

    when: str
    usual: bool
    case: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    certain: bool
    why: str = ""


@dataclass
class Change:
    """One change of what happens to events: its words, its effect and kinds (see kinds), and the events.

    ``rule`` is the match of the new policies that decides, as (policy, path, source, line, column), None if none does.
    """

    what: str
    effect: str
    rule: tuple[str, str, str, int, int] | None
    parts: list[Part] = field(default_factory=list)
    complete: bool = True  # whether ``parts`` has all parts
    kinds: tuple[str, ...] = ()  # the most important one first

    @property
    def certain(self) -> bool:
        """Whether an event shows it."""
        return any(part.certain for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the change for ``--format json``."""
        names = ("policy", "rule", "path", "line", "column")
        return {
            "change": self.what,
            "kinds": list(self.kinds),
            "effect": self.effect,
            "decided_by": None if self.rule is None else dict(zip(names, self.rule)),
            "complete": self.complete,
            "events": [part._asdict() for part in self.parts],
        }


@dataclass(frozen=True)
class Difference:
    """All changes, of what happens to events and of what policies declare, and their overall effect.

    ``unproven`` says why the verdict is not proven, empty if it is. With ``incomplete`` there may be further changes;
    without, each that is possible is among these.
    """

    verdict: str
    changes: tuple[Change, ...]
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    declarations: tuple[Declaration, ...] = ()
    unproven: str = ""
    incomplete: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all changes, the most important one first."""
        found = {kind for change in self.changes for kind in change.kinds} | {one.kind for one in self.declarations}
        return tuple(kind for kind in KINDS if kind in found)


class _Pair(NamedTuple):
    """Outcomes before and after, one for each policy, and where they occur."""

    old: tuple[OutcomeFormula, ...]
    new: tuple[OutcomeFormula, ...]
    when: Formula


@within_limits
def compare(
    old: Artifact, new: Artifact, params: Mapping[str, Any] | None = None, progress: Progress = silent
) -> Difference:
    """Compare policies. Raises InputError where z3 is missing, AnalysisError on a defect of our own."""
    given = dict(params or {})
    proof = Proof([old, new], given)
    found: dict[Description, list[_Pair]] = {}
    incomplete = False
    for number, pair in enumerate(_pairs(proof)):
        progress("pairs of rules that differ", number, 0)
        if pair is None:
            incomplete = True
            continue
        description = describe(behaviour(pair.old), behaviour(pair.new))
        if description.kinds != (EXPLANATION,):  # the declarations have it, without any event
            found.setdefault(description, []).append(pair)
    among = [(one, Wording(proof, one.readings)) for one in contexts(proof)] if found else []
    changes = []
    for number, (description, pairs) in enumerate(found.items(), 1):
        progress("changes", number, len(found))
        changes.append(_change(proof, among, description, pairs))
    ordered = sorted(
        (one for one in changes if one is not None),
        key=lambda one: ([MORE, INCOMPARABLE, LESS, ALIKE].index(one.effect), one.what),
    )
    declared = changed_declarations(old, new)
    unproven = _GAVE_UP if incomplete else _doubt(ordered)
    verdict = (
        UNPROVEN if unproven else joint_effect([*(one.effect for one in ordered), *(one.effect for one in declared)])
    )
    return Difference(verdict, tuple(ordered), proof.assumptions, proof.not_understood, declared, unproven, incomplete)


def _doubt(changes: Sequence[Change]) -> str:
    """Return why changes that no event shows leave the verdict open, empty if they do not."""
    shown = joint_effect(one.effect for one in changes if one.certain or one.effect == ALIKE)
    if joint_effect(one.effect for one in changes) == shown:
        return ""
    return next(part.why for one in changes if not one.certain and one.effect != ALIKE for part in one.parts)


def _pairs(proof: Proof) -> Iterator[_Pair | None]:
    """Yield each pair of outcomes that some event has and that differ; None if there may be others."""
    before, after = proof.decisions
    with proof.solver.assuming():
        proof.solver.add(_may_differ(before, after))
        for _turn in range(_MOST_PAIRS):
            found = proof.solver.ask()
            if found.answer is SolverAnswer.NEVER:
                return
            if found.answer is SolverAnswer.UNKNOWN:
                break
            sides = [_outcomes(proof, one, found.model) for one in proof.decisions]
            when = conj(one.when for side in sides for one in side)
            alike = behaviour(sides[0]) == behaviour(sides[1])
            differ = False if alike else _differ(proof, sides[0], sides[1])
            differs = proof.ask(when, differ) is not SolverAnswer.NEVER
            proof.solver.add(neg(when))
            if differs:
                yield _Pair(sides[0], sides[1], conj((when, differ)))
    yield None


def _outcomes(proof: Proof, decisions: Decisions, model: Any) -> tuple[OutcomeFormula, ...]:
    """Return the outcome of each policy in a model."""
    return tuple(
        next(one for one in policy.outcomes if proof.solver.holds(model, one.when)) for policy in decisions.policies
    )


def _differ(proof: Proof, old: Sequence[OutcomeFormula], new: Sequence[OutcomeFormula]) -> Formula:
    """Return where two behaviours differ: everywhere, unless the names of groups are all that can differ."""
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
        same: dict[Any, tuple[list[Formula], list[Formula]]] = {}
        for side, policy in enumerate((old, new)):
            for one in policy.outcomes:
                same.setdefault(behaviour([one]), ([], []))[side].append(one.when)
        parts.append(neg(disj(conj((disj(both[0]), disj(both[1]))) for both in same.values())))
    return disj(parts)


def _change(
    proof: Proof, given: Sequence[tuple[Context, Wording]], description: Description, pairs: Sequence[_Pair]
) -> Change | None:
    """Return a change with its events; None if they turn out to be impossible."""
    formula = disj(pair.when for pair in pairs)
    usual = proof.ask(formula, proof.normal) is not SolverAnswer.NEVER
    if usual:
        formula = conj((formula, proof.normal))
    change = Change(description.what, description.effect, None, kinds=description.kinds)
    found: list[tuple[str, Formula]] = []
    for context, wording in given:
        if proof.ask(formula, context.given) is SolverAnswer.NEVER:
            continue
        among = conj((context.given, proof.normal if usual else True))
        about = _about(context.readings, pairs)
        parts, complete = wording.parts(conj((formula, context.given)), among, about, _MOST_PARTS)
        change.complete = change.complete and complete
        for when, part in parts:
            texts = [one for one in (context.words, when) if one not in ("", ANY)]
            found.append((" and ".join(texts) or ANY, conj((part, context.given))))
    words_fit = any(proof.ask(formula, part) is not SolverAnswer.NEVER for _when, part in found)
    for when, part in found if words_fit else [(ANY, True)]:  # no words are a reason to drop a change
        shown = proof.shows(formula, part)
        if shown is None:
            continue
        if isinstance(shown, Shown):
            change.rule = change.rule or _rule(proof, shown.decisions[1])
            sides = [decision_dict(one) for one in shown.decisions]
            change.parts.append(Part(when, usual, shown.witness.as_dict(), sides[0], sides[1], certain=True))
        else:
            change.parts.append(Part(when, usual, None, None, None, certain=False, why=shown.why))
    return change if change.parts else None


def _about(readings: Sequence[Reading], pairs: Sequence[_Pair]) -> set[str]:
    """Return the names of the inputs that the rules read which decide before or after."""
    sides = ([pair.old for pair in pairs], [pair.new for pair in pairs])
    deciding = [{(one.policy, one.rule) for outcomes in side for one in outcomes} for side in sides]
    return {
        name
        for decided, reading in zip(deciding, readings)
        for policy in reading.policies
        for match in policy.every()
        if (policy.name, match.path) in decided
        for name in reads(match)
    }


def _rule(proof: Proof, decision: Decision) -> tuple[str, str, str, int, int] | None:
    for policy in proof.decisions[1].policies:
        for match in policy.every():
            if (policy.name, match.path) == (decision.policy, decision.rule):
                return policy.name, match.path, policy.data["source"], match.data["line"], match.data["column"]
    return None
