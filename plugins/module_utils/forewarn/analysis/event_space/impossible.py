# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The classes of events that cannot be, by what the service documents (docs/service-facts.md), and unusual ones."""

from __future__ import annotations

from collections.abc import Sequence

from .case import FURTHER_DOWN, LEADER, NOT_LISTED, spelling
from .class_sets import ClassSets
from .domains import MISSING
from .resources import COUNT, PLACE, VM_NAME, ResourceListed
from .symbols import EVENT_STATUS, NOTICE, TAGS_KNOWN, Tag


def normal(space: ClassSets) -> int:
    """Return the classes of events that the service sends, by its documentation."""
    result = space.all
    for dimension in space.dimensions:
        for place, value in enumerate(dimension.values):
            if not value.normal:
                unusual = space.mask(dimension.name, place)
                if dimension.symbol is NOTICE and value.concrete is MISSING:
                    unusual &= ~space.having(EVENT_STATUS.name, "Started")
                result &= ~unusual
    return result


def impossible(space: ClassSets) -> int:
    """Return the classes that cannot be."""
    result = 0
    if NOTICE.name in space.by_name:
        result |= space.having(EVENT_STATUS.name, "Started") & ~space.having(NOTICE.name, MISSING)
    for tag in space.symbols(Tag):
        result |= space.having(TAGS_KNOWN.name, False) & ~space.having(tag.name, MISSING)
    if COUNT.name in space.by_name:
        result |= _impossible_count(space)
    if PLACE.name in space.by_name:
        result |= _impossible_place(space)
    return result


def _impossible_count(space: ClassSets) -> int:
    """Return the classes in which Resources has more names than there are, or one below the only one."""
    at_least = [space.all]  # at_least[n]: n of the asked-for names, or more, are among Resources
    named = space.symbols(ResourceListed)
    for one in named:
        held = space.having(one.name, True)
        at_least = [more | (fewer & held) for more, fewer in zip([*at_least, 0], [space.all, *at_least])]
    listed = space.having(PLACE.name, LEADER, FURTHER_DOWN) & ~space.having(VM_NAME.name, MISSING)
    for value in space.values_of(VM_NAME.name):
        for one in () if value.concrete is MISSING else _spelled(named, value.concrete):
            listed &= ~(space.having(VM_NAME.name, value.concrete) & space.having(one.name, True))  # it is one of them
    result = space.having(PLACE.name, FURTHER_DOWN) & space.having(COUNT.name, 1)
    for place, value in enumerate(space.values_of(COUNT.name)):
        over = at_least[value.concrete + 1] if value.concrete + 1 < len(at_least) else 0
        over |= (at_least[value.concrete] & listed) if value.concrete < len(at_least) else 0
        result |= space.mask(COUNT.name, place) & over
    return result


def _impossible_place(space: ClassSets) -> int:
    """Return the classes in which Resources does and does not have this VM, or has it twice."""
    result = space.having(VM_NAME.name, MISSING) & ~space.having(PLACE.name, LEADER)
    named = space.symbols(ResourceListed)
    for value in space.values_of(VM_NAME.name):
        if value.concrete is MISSING:
            continue
        itself = space.having(VM_NAME.name, value.concrete)
        listed = itself & space.having(PLACE.name, LEADER, FURTHER_DOWN)
        some = twice = 0
        for one in _spelled(named, value.concrete):
            held = space.having(one.name, True)
            some, twice = some | held, twice | (some & held)
        result |= itself & space.having(PLACE.name, NOT_LISTED) & some
        result |= listed & twice
        if spelling(value.concrete, {one.vm: False for one in named}) is None:
            result |= listed & ~some
    return result


def _spelled(named: Sequence[ResourceListed], vm: str) -> list[ResourceListed]:
    """Return those that ask for a VM, however they spell its name."""
    return [one for one in named if one.vm.lower() == vm.lower()]
