# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of VMs in other letters: the same names to Azure, but not to expressions that look into Resources."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping

VM = "vm_0"  # the name of a VM that no policy names


def spelling(name: str, named: Mapping[str, bool]) -> str | None:
    """Return how a VM is listed by an event of which is known what Resources has.

    None if each way to spell it is asked for, and denied.
    """
    listed = [one for one, has in named.items() if has and one.lower() == name.lower()]
    if listed or name not in named:
        return listed[0] if listed else name
    return other_spelling(name, named)


def other_spelling(name: str, taken: Container[str]) -> str | None:
    """Return a name that is the same to Azure, in other letters, and not among ``taken``. None if there is none."""
    cases = [(one.swapcase(), one) if one.swapcase().lower() == one.lower() else (one,) for one in name]
    spellings = map("".join, itertools.product(*(dict.fromkeys(one) for one in cases)))
    return next((one for one in spellings if one not in taken and one.lower() == name.lower()), None)
