# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps units stopped: stops them, and blocks their starts."""

from __future__ import annotations

from collections.abc import Sequence

from .common.work import Work
from .systemd_blocks import block, is_blocked
from .systemd_memory import recall_states
from .systemd_units import read_units, systemctl


def running_unit(work: Work, names: Sequence[str]) -> str:
    """Return which of these units runs, or may be started by somebody else, or an empty text."""
    for unit in read_units(work, names).values():
        if not unit.is_down:
            return str(unit)
        if unit.is_queued and not work.options["block"]:
            return f"somebody starts {unit.name}"
        if work.options["block"] and not is_blocked(unit):
            return f"{unit.name} is not blocked"
    return ""


def keep_stopped(work: Work, names: Sequence[str]) -> None:
    """Stop and block the units, unless all are; somebody may have started one again."""
    if running_unit(work, names):
        units, active = read_units(work, names).values(), recall_states(work).active
        block(work, {one.name: one.name in active for one in units if work.options["block"] and not is_blocked(one)})
        systemctl(work, "stop", [one.name for one in units if one.state != "deactivating"])
