# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: the time service."""

from __future__ import annotations

from ....system.common.service_status import RUNNING
from ..check import NOT_CHECKED, OK, TROUBLE, Check
from .machine import SERVICES, WindowsMachine

_TIME = rf"{SERVICES}\W32Time"
# The host's clock, which Azure's Windows Server images use.
_HOST = rf"{_TIME}\TimeProviders\VMICTimeProvider"
_HINT = "Look at w32tm /query /status. In Azure, the time service can use the clock of the host (VMICTimeProvider)."


def clock(machine: WindowsMachine) -> Check:
    """Check that something sets the wall clock: NotBefore is a wall-clock time."""
    status = machine.service("W32Time")
    kind = machine.values(rf"{_TIME}\Parameters").get("Type")
    if status is None or kind is None:
        return Check("clock", NOT_CHECKED, "the time service cannot be asked", _HINT)
    if status.state != RUNNING:
        text = f"the time service is {status.state}: the time left until NotBefore is as wrong as the clock"
        return Check("clock", TROUBLE, text, "Start it: net start W32Time. Then look at w32tm /query /status.")
    by_host = machine.values(_HOST).get("Enabled") == 1
    if kind == "NoSync" and not by_host:
        text = "the time service runs, and asks nobody: the time left until NotBefore is as wrong as the clock"
        return Check("clock", TROUBLE, text, _HINT)
    source = "the clock of the host" if by_host else f"what its settings name ({kind})"
    return Check("clock", OK, f"the time service runs, and follows {source}")
