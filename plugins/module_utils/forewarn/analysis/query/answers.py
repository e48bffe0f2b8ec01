# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events for which something holds: whether there are any, in words, and an example of each kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..artifacts import Json
from ..event_space.policies import Reading
from ..proof import Example, ExampleCheck, NoProof, Progress, Proof, decision_dict, silent
from ..smt.terms import Formula, conj, neg
from ..wording import Context, Wording

NONE, SOME, NOT_PROVEN = "none", "some", "not-proven"  # verdicts
SOURCE = "expression"  # the file that messages about a question name
_MOST_GROUPS = 8


class EventGroup(NamedTuple):
    """Some events, in words (``when``), with an example that the engine decides, and its decision by each version.

    ``all``: it holds for every event of these words, otherwise for some. ``usual`` is False for events that the service
    does not send. Without an example (``case`` is None), it is not certain that there are any. A decision has
    ``explain``, the arguments of ``forewarn policy explain`` that repeat it, beside ``--policy`` and ``--event``.
    """

    when: str
    all: bool
    usual: bool
    case: Json | None
    decisions: tuple[Json, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the group for ``--json``."""
        return {**self._asdict(), "decisions": list(self.decisions)}


@dataclass(frozen=True)
class QueryAnswer:
    """Whether there are events for which something holds: proven that there are none, some, or not proven (``why``).

    ``complete``: the groups have them all. ``no_value`` says in words where the expression has no value.
    """

    verdict: str
    groups: tuple[EventGroup, ...]
    complete: bool
    why: str
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    no_value: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer for ``--json``."""
        return {
            "verdict": self.verdict,
            "why": self.why,
            "events": [group.as_dict() for group in self.groups],
            "complete": self.complete,
            "no_value": self.no_value,
            "assumptions": list(self.assumptions),
            "not_understood": list(self.not_understood),
        }


def answered(
    proof: Proof, contexts: Sequence[Context], formula: Formula, confirm: ExampleCheck, progress: Progress = silent
) -> QueryAnswer:
    """Return for which events a formula holds; ``confirm`` says whether it does for an example."""
    progress("whether there is such an event", 0, 0)
    basis = proof.assumptions, proof.not_understood
    usual = conj((formula, proof.normal))
    among: Formula = proof.normal
    shown = proof.shows(usual, confirm=confirm)
    if not isinstance(shown, Example):
        unusual = proof.shows(formula, confirm=confirm)
        if unusual is None:
            return QueryAnswer(NONE, (), True, "", *basis)
        if isinstance(unusual, Example) or shown is None:
            shown, usual, among = unusual, formula, True
    groups, complete = _groups(proof, contexts, usual, among, confirm, progress)
    if isinstance(shown, NoProof):
        return QueryAnswer(NOT_PROVEN, groups, complete, shown.why, *basis)
    return QueryAnswer(SOME, groups, complete, "", *basis)


def formula_words(proof: Proof, contexts: Sequence[Context], formula: Formula) -> str:
    """Return for which events a formula holds, in words; empty if there are none that the service sends."""
    usual = conj((formula, proof.normal))
    if proof.never(usual):
        return ""
    readings = contexts[0].readings
    return Wording(proof, readings).when(usual, proof.normal, _about(proof, readings, usual))


def _groups(
    proof: Proof,
    contexts: Sequence[Context],
    formula: Formula,
    among: Formula,
    confirm: ExampleCheck,
    progress: Progress,
) -> tuple[tuple[EventGroup, ...], bool]:
    """Return the groups of events for which a formula holds, and whether they are all."""
    found: list[EventGroup] = []
    complete = True
    for context in contexts:
        here = conj((among, context.given))
        inside = conj((formula, here))
        if proof.never(inside):
            continue
        parts, whole = _parts(proof, context.readings, formula, here)
        complete = complete and whole
        for number, (when, part, always) in enumerate(parts, 1):
            progress("groups of events", number, len(parts))
            shown = proof.shows(inside, part, confirm=confirm)
            if shown is not None:
                words = context.joined(when)
                found.append(_group(proof, words, shown, always=always, usual=among is not True))
    return tuple(found), complete


def _parts(
    proof: Proof, readings: Sequence[Reading], formula: Formula, here: Formula
) -> tuple[list[tuple[str, Formula, bool]], bool]:
    """Return the events for which a formula holds, ``here``, as parts: words, a formula, whether it holds for all of
    these events; and whether the parts are all.

    The words are about what the deciding rules read. Where that does not tell the events apart, they are also about
    what the rules before these read, if that does.
    """
    wording, inside, first = Wording(proof, readings), conj((formula, here)), None
    for earlier in (False, True):
        about = _about(proof, readings, inside, earlier=earlier)
        parts, whole = wording.parts(inside, here, about, _MOST_GROUPS)
        found = [(when, part, proof.never(neg(formula), here, part)) for when, part in parts], whole
        if whole and all(always for _when, _part, always in found[0]):
            return found
        first = first or found
    return first or ([], True)


def _group(proof: Proof, words: str, shown: Example | NoProof, *, always: bool, usual: bool) -> EventGroup:
    if isinstance(shown, NoProof):
        return EventGroup(words, always, usual, None, ())
    seen = proof.with_given(shown.witness)
    decisions = []
    for artifact, one in zip(proof.versions, shown.decisions):
        declared = {entry["name"] for entry in artifact.params}
        own = seen._replace(params={name: value for name, value in seen.params.items() if name in declared})
        decisions.append({**decision_dict(one), "prepare": bool(one.prepare), "explain": own.explain})
    return EventGroup(words, always, usual, seen.as_dict(), tuple(decisions))


def _about(proof: Proof, readings: Sequence[Reading], formula: Formula, *, earlier: bool = False) -> Collection[str]:
    """Return the names of the inputs that the question reads, and the rules that decide such events.

    With ``earlier``, also those that the rules before these read.
    """
    invariants = (invariant for reading in readings for invariant in reading.invariants)
    found = set().union(*(one.reads for one in invariants if one.source == SOURCE))
    for decisions, reading in zip(proof.decisions, readings):
        deciding = {
            (one.policy, one.rule)
            for policy in decisions.policies
            for one in policy.outcomes
            if one.match is not None and not proof.never(formula, one.when)
        }
        for policy in reading.policies:
            matches = list(policy.every())
            places = [place for place, match in enumerate(matches) if (policy.name, match.path) in deciding]
            for place in range(places[-1] + 1) if earlier and places else places:
                found |= matches[place].reads()
    return found
