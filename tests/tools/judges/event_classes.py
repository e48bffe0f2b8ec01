# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The class of the event space that a concrete event belongs to: the opposite of ``Space.witness``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forewarn.analysis.event_space.case import FURTHER_DOWN, LEADER, NOT_LISTED, Case
from forewarn.analysis.event_space.domains import MISSING, DomainValue
from forewarn.analysis.event_space.policies import Reading
from forewarn.analysis.event_space.resources import OTHER_CASE, Place, ResourceListed
from forewarn.analysis.event_space.space import Space
from forewarn.analysis.event_space.symbol_table import Dimension, Symbol
from forewarn.analysis.event_space.symbols import NOTICE, Opaque
from forewarn.events import Event
from forewarn.policy.decision import Facts
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.timevalues import from_datetime

_FIELDS = ("EventId", "EventType", "ResourceType", "EventStatus", "Description", "EventSource", "DurationInSeconds")
_FACTS = ("name", "location", "zone", "size", "scale_set", "fault_domain")


def case_of_event(event: Event, facts: Facts, params: Mapping[str, Any]) -> Case:
    """Return the case of a concrete event. ``params`` are converted values."""
    now, fields = from_datetime(facts.now), event.as_dict()
    place = event.place_of(facts.vm.name)
    return Case(
        event={name: fields.get(name, MISSING) for name in _FIELDS},
        notice=MISSING if event.not_before is None else from_datetime(event.not_before) - now,
        now=now,
        age=max(0, now - from_datetime(facts.first_seen.get(event.key, facts.now))),
        named=dict.fromkeys(event.resources, True),
        count=len(event.resources),
        place=NOT_LISTED if place is None else FURTHER_DOWN if place else LEADER,
        vm={fact: MISSING if (value := getattr(facts.vm, fact)) is None else value for fact in _FACTS},
        tags_known=facts.vm.tags is not None,
        tags=dict(facts.vm.tags or {}),
        params=dict(params),
    )


class EventClasses:
    """Finds classes of a space of policies, which may be a slice of the whole."""

    def __init__(self, reading: Reading, space: Space) -> None:
        self._space, self._dimensions = space, {one.name: one for one in reading.symbols.dimensions()}
        self._only = dict(space.cell)

    def locate(self, event: Event, facts: Facts, params: Mapping[str, Any], roots: tuple[Any, ...]) -> int | None:
        """Return the class of an event, None if the service never sends it or if another slice has it.

        ``params`` are converted values; ``roots`` as policy.view makes them, for expressions that are not understood.
        """
        case = case_of_event(event, facts, params)
        notice = self._dimensions.get(NOTICE.name)
        if notice is not None and notice.values[0].low == 0 and case.notice is not MISSING:
            case.notice = max(0, case.notice)  # nothing asks how long ago NotBefore was
        number = 0
        for dimension in self._space.dimensions:
            place = self._place(self._dimensions[dimension.name], case, roots)
            if dimension.name in self._only:
                place = 0 if place == self._only[dimension.name] else None
            if place is None:
                return None
            number = number * len(dimension.values) + place
        return number if self._space.reachable >> number & 1 else None

    def _place(self, dimension: Dimension, case: Case, roots: tuple[Any, ...]) -> int | None:
        if isinstance(dimension.symbol, Opaque):
            return 0 if _holds(dimension.symbol, roots) else 1
        actual = _value_in(dimension.symbol, case)
        same = [place for place, value in enumerate(dimension.values) if _is(value.concrete, actual)]
        if same and (actual is MISSING or not (dimension.ordered and dimension.values[same[0]].interval)):
            return same[0]
        if actual is MISSING:
            return None
        if not dimension.ordered:
            for place, value in enumerate(dimension.values):
                if value.label.endswith(OTHER_CASE) and value.concrete.lower() == actual.lower():
                    return place  # a VM's name
            labels = [value.label for value in dimension.values]
            return labels.index("any other") if "any other" in labels else None
        inside = [place for place, value in enumerate(dimension.values) if _within(value, actual)]
        peers = [_value_in(self._dimensions[peer].symbol, case) for peer in dimension.peers] if inside else []
        rivals = sorted({one for one in peers if _within(dimension.values[inside[0]], one)})
        return inside[rivals.index(actual)] if inside else None


def _value_in(symbol: Symbol, case: Case) -> Any:
    if isinstance(symbol, Place) and case.vm.get("name") is MISSING:
        return LEADER
    return symbol.entries(case).get(symbol.key, False if isinstance(symbol, ResourceListed) else MISSING)


def _holds(symbol: Opaque, roots: tuple[Any, ...]) -> bool:
    """Return whether an expression is true, or for no test whether it has a value."""
    try:
        value = symbol.atom.value(roots)
    except EvaluationError:
        return False
    return value is not False or not symbol.atom.is_test


def _is(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and one == other and one is not MISSING)


def _within(value: DomainValue, actual: Any) -> bool:
    if value.concrete is MISSING or actual is MISSING:
        return False
    return (value.low is None or value.low <= actual) and (value.high is None or actual <= value.high)
