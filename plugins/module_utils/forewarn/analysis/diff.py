# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy diff``: the events that two sets of policies decide differently, and whether the new one allows more.

``compare`` reads both over one table of symbols (reading) and goes through the space of events (space). On each slice
it walks the rules of both (decide), pairs the outcomes of each class (``changed_classes``), covers each change by cubes
in words (regions), and shows it by an event for which both engines confirm what was found (``_checked``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Tuple

from ..policy.artifact import Artifact
from ..policy.decision import APPROVERS, GROUPS, HOLD, RECOVER_WHEN, Decision
from .counterexamples import AnalysisError, Example, Prover, agrees, tried
from .hook_wording import hook_text
from .symbolic.abstract import Evaluation
from .symbolic.decide import DOUBT, REFUSED, Decided, JointDecision, Region, combine
from .symbolic.reading import Reading, read_together
from .symbolic.regions import ANY, cubes, united, words
from .symbolic.space import Cell, Space

MORE, LESS, INCOMPARABLE, ALIKE, NO_CHANGE = "more-permissive", "less-permissive", "incomparable", "alike", "no-change"
_MOST_CUBES = 8
_SAMPLE = 4  # events of each part that both engines are asked about, beside its last one
_MOST_DEFAULTS = 3  # parameters with another default in each version, of which each choice is compared
_TRIES = 50  # where an expression is not understood


class Behaviour(NamedTuple):
    """The effect of a class's outcome.

    ``preparing``: each rule's prepare hooks with on_failure, parallel and prepare_within_seconds. ``recover``: each
    rule's recover hooks with recover_when.
    """

    output: str
    approver: str
    group: str
    preparing: tuple[Any, ...]
    recover: tuple[Any, ...]
    notify: tuple[Any, ...]
    reason: tuple[str | None, str | None, str | None]  # policy, rule, how


class Part(NamedTuple):
    """The events of one change as text, with an example and its decisions before and after.

    ``usual`` is False if only events that the service does not send are among them.
    """

    when: str
    usual: bool
    case: Mapping[str, Any]
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    certain: bool


# Parts by whether they are usual and by their words, each with the slices of the space that have it.
_Parts = Dict[Tuple[bool, str], Tuple[Part, List[Cell]]]


@dataclass
class Change:
    """One kind of change: the outcome before and after, and its events. ``effect``: MORE, LESS, INCOMPARABLE or ALIKE.

    ``rule`` is the match of the new policies that decides, as (policy, path, source, line, column), None if none does.
    """

    what: str
    effect: str
    rule: tuple[str, str, str, int, int] | None
    parts: list[Part] = field(default_factory=list)
    complete: bool = True  # whether ``parts`` has all parts

    def as_dict(self) -> dict[str, Any]:
        """Return the change for ``--format json``."""
        names = ("policy", "rule", "path", "line", "column")
        return {
            "change": self.what,
            "effect": self.effect,
            "decided_by": None if self.rule is None else dict(zip(names, self.rule)),
            "complete": self.complete,
            "events": [part._asdict() for part in self.parts],
        }


@dataclass(frozen=True)
class Difference:
    """All changes, and their overall effect: the same constants, or NO_CHANGE."""

    verdict: str
    changes: tuple[Change, ...]
    classes: int
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]


def compare(old: Artifact, new: Artifact, params: Mapping[str, Any] | None = None) -> Difference:
    """Compare policies. Raises InputError if there are too many classes, AnalysisError on a defect of our own."""
    readings = read_together([old, new], params)
    found = [_compared(readings)]
    names = readings[0].defaults
    for fixed in _some(names):
        others = _compared(read_together([old, new], params, at_default=fixed))
        given = " and ".join(f"params.{name} is not given" for name in fixed)
        for change in others.changes:
            change.parts = [
                part._replace(when=given if part.when in ("", ANY) else f"{given} and {part.when}")
                for part in change.parts
            ]
        found.append(others)
    changes: dict[tuple[str, str], Change] = {}
    for change in itertools.chain.from_iterable(one.changes for one in found):
        known = changes.setdefault((change.what, change.effect), change)
        if known is not change:
            known.parts += change.parts
            known.complete = known.complete and change.complete
    ordered = sorted(changes.values(), key=lambda one: ([MORE, INCOMPARABLE, LESS, ALIKE].index(one.effect), one.what))
    for change in ordered:
        if any(part.usual for part in change.parts):
            change.parts = [part for part in change.parts if part.usual]
    sources = tuple(dict.fromkeys(source for one in found for source in one.not_understood))
    classes = sum(one.classes for one in found)
    return Difference(_verdict(ordered), tuple(ordered), classes, found[0].assumptions, sources)


def _some(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of parameters to leave out: every set but the empty one; of many parameters, each one and all."""
    for count in range(1, len(names) + 1):
        if len(names) <= _MOST_DEFAULTS or count in (1, len(names)):
            yield from itertools.combinations(names, count)


def _compared(readings: Sequence[Reading]) -> Difference:
    """Compare two versions over one space. The verdict is left open."""
    before, after = readings
    provers = Prover(before), Prover(after)
    changes: dict[tuple[str, str], Change] = {}
    parts_of: dict[tuple[str, str], _Parts] = {}
    classes = 0
    for space in before.spaces():
        classes += space.reachable.bit_count()
        evaluation = Evaluation(space)
        pair = Decided(before, space, evaluation), Decided(after, space, evaluation)
        for what, effect, found in changed_classes(*pair):
            change = changes.setdefault((what, effect), Change(what, effect, _rule(pair[1], found)))
            _add_parts(change, parts_of.setdefault((what, effect), {}), pair, provers, found)
    for key, change in changes.items():
        parts = parts_of[key].values()
        usual = any(part.usual for part, _cells in parts)
        for part, cells in parts:
            if part.usual == usual:
                when = united(space, [(part.when, cell) for cell in cells])
                change.parts.append(part._replace(when=when))
    sources = tuple(dict.fromkeys(opaque.source for opaque in before.symbols.opaque_terms.values()))
    assumptions = tuple(dict.fromkeys((*before.assumptions, *after.assumptions)))
    return Difference("", tuple(changes.values()), classes, assumptions, sources)


def _verdict(changes: list[Change]) -> str:
    effects = {change.effect for change in changes} - {ALIKE}
    if not changes:
        return NO_CHANGE
    if not effects:
        return ALIKE
    return effects.pop() if len(effects) == 1 else INCOMPARABLE


def changed_classes(old: Decided, new: Decided) -> Iterator[tuple[str, str, int]]:
    """Yield each change and its effect, with its classes."""
    merged: dict[tuple[str, str], int] = {}
    pairs = itertools.product(_behaviours(old).items(), _behaviours(new).items())
    for (before, classes), (after, others) in pairs:
        if before != after and (both := classes & others):
            key = _what(before, after), _effect(before, after)
            merged[key] = merged.get(key, 0) | both
    for (what, effect), classes in merged.items():
        yield what, effect, classes


def _behaviours(decided: Decided) -> dict[Behaviour, int]:
    found: dict[Behaviour, int] = {}
    for regions, classes in decided.regions():
        key = _behaviour(regions, combine(regions))
        found[key] = found.get(key, 0) | classes
    return found


def _behaviour(regions: tuple[Region, ...], outcome: JointDecision) -> Behaviour:
    preparing, recover = [], []
    for region in regions:
        data = region.data
        if data.get("prepare"):
            more = data.get("on_failure", HOLD), bool(data.get("parallel", False)), data.get("prepare_within_seconds")
            preparing.append((tuple(map(hook_text, data["prepare"])), *more))
        if data.get("recover"):
            recover.append((tuple(map(hook_text, data["recover"])), data.get("recover_when", RECOVER_WHEN[0])))
    return Behaviour(
        outcome.output,
        outcome.approver if outcome.output == "approve" else "",
        outcome.group if outcome.output == "approve" and preparing else "",
        tuple(preparing),
        tuple(recover),
        tuple(map(hook_text, outcome.notify)),
        (None, None, outcome.how) if outcome.how in (DOUBT, REFUSED) else (outcome.policy, outcome.rule, outcome.how),
    )


def _what(old: Behaviour, new: Behaviour) -> str:
    texts = []
    if old.output != new.output:
        texts.append(f"{old.output} → {new.output}")
    if old.preparing != new.preparing:
        texts.append(f"prepare: {_preparation(old)} → {_preparation(new)}")
    if old.recover != new.recover:
        texts.append(f"recover: {_recovery(old)} → {_recovery(new)}")
    if old.notify != new.notify:
        texts.append(f"notify: {_list(old.notify)} → {_list(new.notify)}")
    who = (("approver", old.approver, new.approver), ("group", old.group, new.group))
    texts += [f"{name}: {before} → {after}" for name, before, after in who if before and after and before != after]
    if not texts:
        refused = any(one.reason[2] == REFUSED for one in (old, new))  # which rule holds instead matters little
        reasons = ["the rules" if refused and one.reason[2] != REFUSED else _reason(one) for one in (old, new)]
        texts.append(f"{old.output}, for another reason: {' → '.join(reasons)}")
    return "; ".join(texts)


def _list(hooks: tuple[str, ...]) -> str:
    return ", ".join(hooks) or "nothing"


def _preparation(one: Behaviour) -> str:
    texts = []
    for hooks, on_failure, parallel, within in one.preparing:
        notes = (
            ("approve on failure", on_failure == "approve"),
            ("parallel", parallel),
            (f"within {within or 0:.15g} s", within is not None),
        )
        more = [word for word, is_so in notes if is_so]
        texts.append(_list(hooks) + (f" [{', '.join(more)}]" if more else ""))
    return ", ".join(texts) or "nothing"


def _recovery(one: Behaviour) -> str:
    texts = [_list(hooks) + (" [when started]" if when == "started" else "") for hooks, when in one.recover]
    return ", ".join(texts) or "nothing"


_NO_POLICY = {DOUBT: "unknown EventType or EventStatus", REFUSED: "a parameter that is refused"}


def _reason(one: Behaviour) -> str:
    policy, rule, how = one.reason
    if policy is None:
        return _NO_POLICY.get(how or "", "no rule applies")
    words_ = {"error": " (no value)", "explanation": " (explanation without value)"}.get(how or "", "")
    return f"{policy}/{rule}{words_}" if rule else f"{policy} ({how})"


def _effect(old: Behaviour, new: Behaviour) -> str:
    """Return whether the new behaviour lets an event start sooner, or with less done before."""
    if old.output != new.output:
        return MORE if new.output == "approve" else LESS
    if old.output != "approve":
        return ALIKE
    directions = set()
    if old.preparing and new.preparing and _begins(old) != _begins(new):  # the approval comes after it
        directions.add(MORE if _begins(new) > _begins(old) else LESS)
    for order, before, after in (
        (APPROVERS, old.approver, new.approver),
        (GROUPS, old.group or GROUPS[-1], new.group or GROUPS[-1]),
    ):
        if before != after:
            directions.add(MORE if order.index(after) > order.index(before) else LESS)
    if old.preparing != new.preparing:
        before_hooks, after_hooks = _strictness(old), _strictness(new)
        if before_hooks > after_hooks:
            directions.add(MORE)
        elif before_hooks < after_hooks:
            directions.add(LESS)
        elif before_hooks != after_hooks:
            directions.add(INCOMPARABLE)
    if not directions:
        return ALIKE
    return directions.pop() if len(directions) == 1 else INCOMPARABLE


def _begins(one: Behaviour) -> float:
    """Return the seconds before NotBefore at which the last preparation begins; infinite if it begins at once."""
    return min(math.inf if within is None else within for *_hooks, within in one.preparing)


def _strictness(one: Behaviour) -> frozenset[tuple[str, str]]:
    """Return the work that must be done before an approval, and the part that must succeed."""
    done = {(hook, "done") for hooks, *_more in one.preparing for hook in hooks}
    succeeded = {
        (hook, "succeeded") for hooks, on_failure, *_more in one.preparing if on_failure == HOLD for hook in hooks
    }
    return frozenset(done | succeeded)


def _rule(decided: Decided, classes: int) -> tuple[str, str, str, int, int] | None:
    outcome = decided.outcome(decided.space.first(classes))
    for policy in decided.policies:
        for sets in policy.matches.values():
            if (policy.policy.name, sets.match.path) == (outcome.policy, outcome.rule):
                data = sets.match.data
                return policy.policy.name, sets.match.path, policy.policy.data["source"], data["line"], data["column"]
    return None


def _add_parts(
    change: Change, parts: _Parts, pair: tuple[Decided, Decided], provers: tuple[Prover, Prover], classes: int
) -> None:
    space = pair[0].space
    usual = bool(classes & space.normal)
    care = space.reachable & (space.normal if usual else space.all)
    found, rest = cubes(space, classes & care, _MOST_CUBES, care)
    change.complete = change.complete and not rest
    for cube in found:
        when = words(space, cube, care)
        if (usual, when) in parts:
            parts[usual, when][1].append(space.cell)
            _checked(pair, provers, cube.classes & classes)
            continue
        shown = _checked(pair, provers, cube.classes & classes)
        number = space.first(cube.classes & classes) if shown is None else shown[0].number
        sides = [one.decision for one in shown] if shown else [one.outcome(number) for one in pair]
        case = space.witness(number).as_dict()
        certain = shown is not None
        parts[usual, when] = Part(when, usual, case, _decided(sides[0]), _decided(sides[1]), certain), [space.cell]


def _checked(
    pair: tuple[Decided, Decided], provers: tuple[Prover, Prover], classes: int
) -> tuple[Example, Example] | None:
    """Return both engines' decisions for an event of the classes, once they confirm the analysis for some events."""
    space: Space = pair[0].space
    last = classes.bit_length() - 1
    numbers = tried(space, space.members(classes), _TRIES if space.opaque_terms else _SAMPLE)
    shown = None
    for number, instead in itertools.chain(numbers, [(last, None)]):
        seen = space.witness(number, instead)
        decisions = [prover.decide(seen) for prover in provers]
        if all(agrees(one.outcome(number), decision) for one, decision in zip(pair, decisions)):
            shown = shown or (Example(number, seen, decisions[0]), Example(number, seen, decisions[1]))
            if space.opaque_terms:
                break
        elif not space.opaque_terms:
            raise AnalysisError(f"forewarn disagrees with itself about the event {dict(seen.event)}")
    return shown


def _decided(one: Decision | JointDecision) -> dict[str, Any]:
    """Return the engine's decision for an event; if no event was found, the analysis's result for its class."""
    reason = one.reason if isinstance(one, Decision) else None
    return {"output": one.output, "policy": one.policy, "rule": one.rule, "reason": reason}
