# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares events that differ in one respect: of unknown duration and long ones, unprepared and prepared ones."""

from __future__ import annotations

from collections.abc import Iterator

from ...events import has_field
from ...policy.decision import APPROVE, HOLD
from ...policy.forms import Literal, every_expression, read_form
from ..artifacts import every_part
from ..proof import Example, Proof
from ..smt.encode.decisions import Decisions
from ..smt.terms import Formula, conj, disj, neg, same
from ..witness import Witness
from .all_policies import prepared
from .finding import ProofFinding
from .search import TYPES, Search, at_rule

_LONG = 30 * 24 * 3600  # seconds: longer than any interruption that a policy cares about
_TIMES = ("NotBefore", "now", "age")
_ALIKE = ("EventSource", "Description", "ResourceType", "EventId", *_TIMES)


class VariantDecisions:
    """What a set of policies decides about events that differ from others in a few respects.

    It is translated together with the policies, before the first question. ``longer`` is about an event of
    ``long`` seconds that is the same in all else; ``alike`` about one of the same kind at another time, and so on.
    ``read`` has the names of all that rules read.
    """

    def __init__(self, proof: Proof) -> None:
        expressions = [one for data in proof.versions[0].data["policies"] for one in every_expression(data["rule"])]
        parts = [part for one in expressions for part in every_part(read_form(one["form"]))]
        self.read = {part.name for part in parts if hasattr(part, "name")}  # of fields and variables
        literals = [one.value for one in parts if isinstance(one, Literal) and one.type in ("int", "double")]
        constants = {int(one) for one in literals if abs(one) < 2**62}
        self.long = max([_LONG, *(one + 1 for one in constants)])
        self.cuts = sorted({0, *(cut for one in constants for cut in (one, one + 1) if 0 <= cut <= self.long)})
        self.longer: Decisions | None = None
        self.has_longer: Formula = False
        if has_field(proof.inputs.api_version, "DurationInSeconds") and "DurationInSeconds" in self.read:
            inputs = proof.inputs.variant(["DurationInSeconds"], same_document=False)
            duration, there = inputs.event_field("DurationInSeconds")
            self.longer = proof.decided(inputs)
            self.has_longer = conj((there, duration == self.long))
        other = proof.inputs.variant(
            [name for name in _ALIKE if name in _TIMES or name in self.read], same_document=True
        )
        self.alike: Decisions | None = None
        self.inputs = other
        if any(match.data.get("prepare") for policy in proof.decisions[0].policies for match in policy.every()):
            self.alike = proof.decided(other)
            self.alike_normal = conj((other.normal({}), proof.normal))


def paired_findings(search: Search, beside: VariantDecisions) -> Iterator[ProofFinding]:
    """Yield approvals of events that are held, or prepared for, if they differ a little."""
    if beside.longer is not None:
        yield from _unknown_duration(search, beside, beside.longer)
    if beside.alike is not None:
        yield from _unprepared(search, beside, beside.alike)


def _unknown_duration(search: Search, beside: VariantDecisions, longer: Decisions) -> Iterator[ProofFinding]:
    duration, there = search.proof.inputs.event_field("DurationInSeconds")
    unknown = conj((there, same(duration, -1), beside.has_longer, neg(longer.approved)))
    hint = "DurationInSeconds is -1 when it is not known: add event.DurationInSeconds >= 0 &&"
    for match, taken in search.deciding(unknown):

        def confirm(shown: Example) -> bool:
            return search.proof.decide(with_duration(shown.witness, beside.long)).output == HOLD

        shown = search.proof.shows(taken, confirm=confirm)
        which = "a longer one"
        if isinstance(shown, Example):
            which = f"one of {_least(search.proof, shown.witness, beside.cuts, beside.long)} s and more"
        message = f"rule {match.path} approves {TYPES} whose duration is unknown (-1), though {which} is held"
        finding = at_rule("unknown-duration-approved", "error", match, message, hint)
        yield from search.shown(finding, taken, confirm=confirm)


def with_duration(witness: Witness, seconds: int) -> Witness:
    """Return the same case with an event of another duration."""
    return witness.with_event({**witness.event, "DurationInSeconds": seconds})


def _least(proof: Proof, witness: Witness, cuts: list[int], longest: int) -> int:
    """Return the duration from which on an event is held, of those at which a policy may change its mind."""
    least = longest
    for cut in reversed(cuts):
        if proof.decide(with_duration(witness, cut)).output != HOLD:
            break
        least = cut
    return least


def _unprepared(search: Search, beside: VariantDecisions, alike: Decisions) -> Iterator[ProofFinding]:
    other = conj((alike.approved, prepared(alike), beside.alike_normal))
    formula = conj((other, neg(prepared(search.decisions)), search.proof.normal))
    hint = "give the rule the same prepare, or move it after the one that prepares"
    for match, taken in search.deciding(formula):

        def confirm(shown: Example) -> bool:
            found = search.proof.solver.other_witness(shown.model, beside.inputs)
            decision = None if found is None else search.proof.decide(found)
            return decision is not None and decision.output == APPROVE and bool(decision.prepare)

        names = _differing(search, beside, taken)
        message = (
            f"rule {match.path} approves {TYPES} without preparing, though the policies prepare "
            f"for others that differ in {' or '.join(names)} only"
        )
        finding = at_rule("approved-unprepared", "warning", match, message, hint)
        yield from search.shown(finding, taken, confirm=confirm)


def _differing(search: Search, beside: VariantDecisions, formula: Formula) -> list[str]:
    """Return which single input can make the difference, all that rules read if it takes several."""
    read = [name for name in (*_ALIKE, "notice") if name in beside.read]
    found = []
    for name in read:
        others = [one for one in _ALIKE if one != name and not (name == "notice" and one in ("NotBefore", "now"))]
        if isinstance(
            search.proof.shows(conj((formula, *(_equal(search, beside, one) for one in others))), usual=False), Example
        ):
            found.append(name)
    if "notice" in found:
        found = [name for name in found if name not in ("NotBefore", "now")]
    return found or read or ["time"]


def _equal(search: Search, beside: VariantDecisions, name: str) -> Formula:
    """Return where both events have the same value of an input."""
    one, other = search.proof.inputs, beside.inputs
    if name == "now":
        return same(one.now_us, other.now_us)
    if name == "age":
        return same(one.age_us, other.age_us)
    first, second = one.event_field(name), other.event_field(name)
    return conj((same(first[1], second[1]), disj((neg(first[1]), same(first[0], second[0])))))
