# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision table of policies as data for a page: which rule decides which class of events, why, and an example.

It has all classes, as decision diagrams (see decision_diagram). A class's example is put together from parts: the base
event, and for each group of dimensions what their values change about it. Reasons are the engine's; they depend on the
few dimensions that the explanation reads, and are listed by the values of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Dict, NamedTuple, Tuple

from ...policy.artifact import Artifact
from ...policy.decision import APPROVE, HOLD
from ..artifacts import Json
from ..engine import Engine
from ..event_space.case import Case
from ..event_space.policies import Reading, ReadPolicy, read_together
from ..event_space.space import Space
from ..event_space.symbol_table import case_of
from ..hook_wording import hook_texts
from ..limits import limit_words
from ..policy_outcome import RULE
from .categories import HOLDS, SAME, WORDS, change_category, joint_category, preparation, region_category
from .conditions import Evaluation
from .decision_diagram import EMPTY, DecisionDiagrams
from .decisions import Region, SpaceDecisions, changed_classes
from .dependencies import ReasonInputs
from .dimension_words import dimension_data

_MOST_REASONS = 300  # of one rule; beyond that a page shows the expression that gives them
_MOST_PARTS = 5000  # of the examples' parts that one group of dimensions decides

Table = Dict[str, Any]
Key = Tuple[str, int]  # how a region came about, and the number of its match; -1 without


def verification_table(artifact: Artifact, params: Json | None = None) -> Table:
    """Return the table of policies: one view for all together, and one for each.

    ``params`` as reading.read takes them. A parameter that is not given and has an open range has its default here.
    Raises InputError if there are too many classes.
    """
    readings, given = _read([artifact], params)
    builder = _TableBuilder(readings, given)
    policies = readings[0].policies
    views = [_View(builder.diagrams, "all policies together")] if len(policies) > 1 else []
    each = [_View(builder.diagrams, policy.name) for policy in policies]
    for space in readings[0].spaces():
        decided = SpaceDecisions(readings[0], space)
        builder.add(0, decided)
        if views:
            views[0].add(space, [((category, by), held) for (category, by, _hooks), held in _together(decided).items()])
        for place, regions in enumerate(decided.policies):
            each[place].add(space, [((region_category(one), (place, _key(one))), one.classes) for one in regions])
    return builder.table("verify", [*views, *each])


def difference_table(old: Artifact, new: Artifact, params: Json | None = None) -> Table:
    """Return the table of what differs between two sets of policies. ``params`` and errors as verification_table's."""
    readings, given = _read([old, new], params)
    builder = _TableBuilder(readings, given)
    view = _View(builder.diagrams, "what changes")
    for space in readings[0].spaces():
        evaluation = Evaluation(space)
        before, after = (SpaceDecisions(reading, space, evaluation) for reading in readings)
        builder.add(0, before)
        builder.add(1, after)
        same = space.reachable
        sets: list[tuple[str, str, int]] = []
        for what, effect, classes in changed_classes(before, after):
            sets.append((what, effect, classes))
            same &= ~classes
        sets.append(("", SAME, same))
        sides = _together(before), _together(after)
        view.add(
            space,
            [
                (
                    (change_category(effect, first[0], second[0], (first[2], second[2])), what, first[:2], second[:2]),
                    both,
                )
                for what, effect, classes in sets
                for first, held in sides[0].items()
                if classes & held
                for second, others in sides[1].items()
                if (both := classes & held & others)
            ],
        )
    return builder.table("diff", [view])


def _read(artifacts: Sequence[Artifact], params: Json | None) -> tuple[list[Reading], dict[str, Any]]:
    """Read policies with their parameters' defaults, where that is clearer than a range. Returns the values, too."""
    given = dict(params or {})
    declared: dict[str, list[Json]] = {}
    for artifact in artifacts:
        for entry in artifact.params:
            declared.setdefault(entry["name"], []).append(entry)
    for name, entries in declared.items():
        first = entries[0]
        alike = all("default" in one and one["default"] == first.get("default") for one in entries)
        if name not in given and alike and first["type"] != "bool" and "enum" not in first:
            given[name] = first["default"]
    return read_together(artifacts, given, at_default=declared), given


def _key(region: Region) -> Key:
    return region.how, -1 if region.match is None else region.match.number


def _together(decided: SpaceDecisions) -> dict[tuple[str, tuple[int, Key] | None, tuple[str, ...]], int]:
    """Return the classes by category, the region with its policy that decides (None: no region does), and the hooks."""
    found: dict[tuple[str, tuple[int, Key] | None, tuple[str, ...]], int] = {}
    for regions, classes in decided.regions():
        category, place = joint_category(regions)
        key = category, None if place is None else (place, _key(regions[place])), preparation(regions)
        found[key] = found.get(key, 0) | classes
    return found


class _View:
    """One diagram, and its leaves: each a category with what decides, and whether the service sends such events."""

    def __init__(self, diagrams: DecisionDiagrams, title: str) -> None:
        self.title = title
        self.root = EMPTY
        self.leaves: dict[tuple[Any, bool], int] = {}
        self._diagrams = diagrams

    def add(self, space: Space, sets: Sequence[tuple[Any, int]]) -> None:
        merged: dict[int, int] = {}
        for what, classes in sets:
            for usual in (True, False):
                some = classes & space.reachable & (space.normal if usual else ~space.normal)
                if some:
                    leaf = self.leaves.setdefault((what, usual), len(self.leaves) + 1)
                    merged[leaf] = merged.get(leaf, 0) | some
        self.root = self._diagrams.union(self.root, self._diagrams.build(space, merged.items()))


class _Region(NamedTuple):
    """What a page shows of a region of one policy. ``reasons`` maps the places of ``dims`` to the engine's reasons."""

    region: Region
    dims: tuple[int, ...] | None
    reasons: dict[tuple[int, ...], str]


class _PolicyTable:
    """What a page shows of one policy, the one at ``place``; ``engine`` says why it decides so."""

    def __init__(self, policy: ReadPolicy, place: int, diagrams: DecisionDiagrams, engine: Engine) -> None:
        self._name, self._place, self._diagrams, self._engine = policy.name, place, diagrams, engine
        self._inputs = ReasonInputs(policy.data, diagrams.dimensions)
        self._regions: dict[Key, _Region] = {}
        self._root = EMPTY

    def add(self, space: Space, regions: Sequence[Region]) -> None:
        """Add what the policy decides in a space, and why."""
        leaves = []
        for region in regions:
            key = _key(region)
            if key not in self._regions:
                dims = self._inputs.of(region)
                size = math.prod(len(self._diagrams.dimensions[dim].values) for dim in dims)
                self._regions[key] = _Region(region, dims if size <= _MOST_REASONS else None, {})
            leaves.append((self.index(key) + 1, region.classes))
            self._add_reasons(space, self._regions[key], region.classes)
        self._root = self._diagrams.union(self._root, self._diagrams.build(space, leaves))

    def _add_reasons(self, space: Space, known: _Region, classes: int) -> None:
        """Ask the engine why, once for each combination of the values that the reason reads."""
        if known.dims is None:
            return
        dimensions = [self._diagrams.dimensions[dim] for dim in known.dims]
        for values in itertools.product(*(range(len(space.by_name[one.name].values)) for one in dimensions)):
            some = classes
            for dimension, value in zip(dimensions, values):
                some &= space.mask(dimension.name, value)
            if some:
                concretes = (space.by_name[one.name].values[value] for one, value in zip(dimensions, values))
                at = tuple(one.values.index(value) for one, value in zip(dimensions, concretes))
                verdict = self._engine.decide(space.witness(space.first(some))).verdicts[self._place]
                if (verdict.output, verdict.rule) == (known.region.output, known.region.rule):
                    known.reasons.setdefault(at, verdict.reason)

    def index(self, key: Key) -> int:
        """Return the place of a region."""
        return list(self._regions).index(key)

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for a page."""
        return {"name": self._name, "root": self._root, "regions": list(map(_region, self._regions.values()))}


class _TableBuilder:
    """Puts a table together, space by space."""

    def __init__(self, readings: Sequence[Reading], params: Json) -> None:
        self._params, self._api_version = params, readings[0].symbols.api_version
        self.dimensions = readings[0].symbols.dimensions()
        self.diagrams = DecisionDiagrams(self.dimensions)
        self._sides = []
        for reading in readings:
            engine, policies = Engine(reading.artifact, reading.fixed), enumerate(reading.policies)
            self._sides.append([_PolicyTable(one, place, self.diagrams, engine) for place, one in policies])

    def add(self, side: int, decided: SpaceDecisions) -> None:
        """Add what each policy decides in a space, and why."""
        for policy, regions in zip(self._sides[side], decided.policies):
            policy.add(decided.space, regions)

    def table(self, kind: str, views: Sequence[_View]) -> Table:
        groups, base, deltas = self._examples()
        return {
            "kind": kind,
            "words": WORDS,
            "holds": HOLDS,
            "dims": list(map(dimension_data, self.dimensions)),
            "nodes": [[dimension, list(children)] for dimension, children in self.diagrams.nodes],
            "sides": [{"policies": [policy.as_dict() for policy in policies]} for policies in self._sides],
            "views": [
                {"title": view.title, "root": view.root, "leaves": [self._leaf(kind, *one) for one in view.leaves]}
                for view in views
            ],
            "base": base,
            "groups": groups,
            "deltas": deltas,
            "params": dict(sorted(self._params.items())),
        }

    def _leaf(self, kind: str, what: Any, usual: bool) -> dict[str, Any]:
        leaf: dict[str, Any] = {"usual": usual, "category": what[0]}
        if kind == "verify":
            leaf["by"] = [self._place(0, what[1])]
            return leaf
        _effect, text, *sides = what
        leaf["by"] = [self._place(side, by) for side, (_category, by) in enumerate(sides)]
        leaf["decisions"] = [category for category, _by in sides]
        leaf["what"] = text
        return leaf

    def _place(self, side: int, by: tuple[int, Key] | None) -> list[int] | None:
        return None if by is None else [by[0], self._sides[side][by[0]].index(by[1])]

    def _examples(self) -> tuple[list[dict[str, Any]] | None, dict[str, Any], list[dict[str, Any]]]:
        """Return the groups with the part that each combination of their values adds, the base, and the parts."""
        base = Case().witness(self._api_version).as_dict()
        groups: list[dict[str, Any]] = []
        deltas: list[dict[str, Any]] = []
        for dims in self._groups():
            dimensions = [self.dimensions[dim] for dim in dims]
            choices = [dimension.values for dimension in dimensions]
            if math.prod(map(len, choices)) > _MOST_PARTS:
                return None, base, []
            parts_of = []
            for values in itertools.product(*choices):
                delta = _delta(base, case_of(zip(dimensions, values)).witness(self._api_version).as_dict())
                if delta not in deltas:
                    deltas.append(delta)
                parts_of.append(deltas.index(delta))
            groups.append({"dims": dims, "parts": parts_of})
        return groups, base, deltas

    def _groups(self) -> list[list[int]]:
        """Return the dimensions whose values are shown together, since together they make one part of an event."""
        found: dict[str, list[int]] = {}
        for place, dimension in enumerate(self.dimensions):
            if dimension.kind != "opaque":
                found.setdefault(dimension.symbol.part, []).append(place)
        return list(found.values())


def _region(one: _Region) -> dict[str, Any]:
    region, data = one.region, one.region.data
    shown: dict[str, Any] = {"how": region.how, "output": region.output, "rule": region.rule}
    shown["category"] = region_category(region)
    if region.match is not None:
        shown["number"] = region.match.number
    if region.how == RULE:
        hooks = hook_texts(data)
        shown.update(hooks)
        if region.output == APPROVE:
            shown["approver"] = data.get("approver", "leader")
            shown["group"] = data.get("group", HOLD)
        if "limit" in data:
            shown["limit"] = limit_words(data["limit"])
        if data.get("explanation"):
            shown["explanation"] = " ".join(data["explanation"]["source"].split())
    if one.dims is not None and len(set(one.reasons.values())) == 1:
        shown["reason"] = next(iter(one.reasons.values()))
    elif one.dims is not None and one.reasons:
        shown["dims"] = list(one.dims)
        shown["reasons"] = {",".join(map(str, at)): reason for at, reason in one.reasons.items()}
    return shown


def _delta(base: Json, case: Json) -> dict[str, Any]:
    """Return the entries of a case that differ from the base; an entry that only the base has is null."""
    delta: dict[str, Any] = {}
    for name, value in case.items():
        before = base[name]
        if isinstance(before, Mapping):
            inner = {key: one for key, one in value.items() if key not in before or before[key] != one}
            inner.update(dict.fromkeys(before.keys() - value.keys()))
            if inner:
                delta[name] = inner
        elif value != before:
            delta[name] = value
    return delta
