# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the table of a fleet in Ansible's colours, as Ansible shows everything else."""

from __future__ import annotations

from collections.abc import Iterable

from ansible import constants as C  # noqa: N812 - its usual name
from ansible.utils.display import Display

from ..module_utils.forewarn.fleet.table import GOOD, HEADING, TROUBLE, WARNING, TableLine

_COLOURS = {
    HEADING: C.COLOR_HIGHLIGHT,
    TROUBLE: C.COLOR_ERROR,
    WARNING: C.COLOR_WARN,
    GOOD: C.COLOR_OK,
}


def show(lines: Iterable[TableLine]) -> None:
    """Write the lines to standard output, coloured on a terminal."""
    display = Display()
    for line in lines:
        display.display(line.text, color=_COLOURS.get(line.kind))
