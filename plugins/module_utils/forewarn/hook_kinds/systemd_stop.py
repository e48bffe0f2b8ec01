# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How units are kept down: stopped, and started by nobody."""

from __future__ import annotations

from collections.abc import Sequence

from .systemd_blocks import block, is_blocked
from .systemd_memory import remembered
from .systemd_units import look, order
from .work import Work


def not_down(work: Work, names: Sequence[str]) -> str:
    """Return which of these units is up, or may be started by somebody else, or an empty text."""
    for unit in look(work, names).values():
        if not unit.is_down:
            return str(unit)
        if unit.is_queued and not work.options["block"]:
            return f"somebody starts {unit.name}"
        if work.options["block"] and not is_blocked(unit):
            return f"{unit.name} is not blocked"
    return ""


def hold_down(work: Work, names: Sequence[str]) -> None:
    """Do what is missing: somebody may have started a unit again."""
    if not_down(work, names):
        units, active = look(work, names).values(), remembered(work).active
        block(work, {one.name: one.name in active for one in units if work.options["block"] and not is_blocked(one)})
        order(work, "stop", [one.name for one in units if one.state != "deactivating"])
