# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind systemd remembers: the states of units before its first run, until they are restored."""

from __future__ import annotations

from typing import NamedTuple

from .common.work import HookFailedError, Work
from .systemd_blocks import drop_in, was_active
from .systemd_units import Unit, read_related_units, read_units, triggers_among

# What is remembered of a unit: its InvocationID while it was active, or one of these.
_DOWN, RESTARTING, _UNKNOWN = "", "restarting", "unknown"


class UnitStates(NamedTuple):
    """The states of units before the event. ``active`` are the units to start again, in this order.

    ``active`` maps names to an InvocationID, "restarting" or "unknown". ``own`` are the units that the hook stops and
    blocks, the unit of the option last; systemd stops others with them.
    """

    active: dict[str, str]
    own: list[str]


def recall_states(work: Work) -> UnitStates:
    """Return the states in the memory."""
    # An older runner remembered something else.
    known = {name: value for name, value in work.memory.items() if isinstance(value, list)}
    return UnitStates(
        {name: state for name, (state, _is_ours) in known.items() if state != _DOWN},
        [name for name, (_state, is_ours) in known.items() if is_ours],
    )


def record_states(work: Work, state: str = "") -> UnitStates:
    """Remember the states of the unit, its triggers, and the units that systemd stops with them; earlier states stay.

    ``state`` replaces the current state of the unit. Raises HookFailedError if there is no such unit.
    """
    (unit,) = read_units(work, [work.options["unit"]]).values()
    if not unit.is_loaded:
        raise HookFailedError(f"systemd has no usable unit {unit.name}: it is {unit.load_state}")
    units = read_related_units(work, unit, with_triggers=work.options["block"])
    triggers = [one.name for one in triggers_among(units) if one is not unit] if work.options["block"] else []
    for one in units.values():
        if not one.is_down and not one.can_be_started:
            work.say(f"{one.name} is stopped with it, and nothing can start it again")
    # What triggers the unit comes first, also where systemd has forgotten it; then the unit, and what needs it.
    known = {name: work.memory[name] for name in recall_states(work).own if name not in units}
    found = {name: [_state_of(units[name], True), True] for name in (*triggers, unit.name)}
    found[unit.name][0] = state or found[unit.name][0]
    others = {name: [_state_of(one, False), False] for name, one in units.items() if name not in found}
    work.remember(**{**known, **found, **others})
    return recall_states(work)


def restore_states(work: Work) -> UnitStates:
    """Return the states in the memory. If it is lost, or an older runner's, the drop-ins tell what was active."""
    if not recall_states(work).own:
        # Nothing blocks them after a reboot.
        was_up = work.memory.get("was_active", not drop_in(work.options["unit"]).exists())
        record_states(work, _UNKNOWN if was_up else _DOWN)
    return recall_states(work)


def _state_of(unit: Unit, is_ours: bool) -> str:
    if unit.is_restarting:
        return RESTARTING
    if not unit.is_down and unit.state != "deactivating" and unit.can_be_started:
        return unit.invocation or _UNKNOWN
    # Another hook may have stopped it.
    return _UNKNOWN if is_ours and was_active(unit.name) else _DOWN
