# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a slip of a finger makes of a name."""

from __future__ import annotations

from random import Random

from tools.suite.sizes import SEED


def misspelled(name: str) -> set[str]:
    """Return what one slip at each place makes of a name; the letters that do not belong there depend on the seed."""
    random = Random(f"{name}{SEED}")
    found = {name.upper(), name.capitalize()}
    for place in range(len(name)):
        before, letter, after = name[:place], name[place], name[place + 1 :]
        other = random.choice("abcdefghijklmnopqrstuvwxyz_0123456789".replace(letter, ""))
        found |= {before + after, f"{before}{letter}{letter}{after}", before + other + after}
        found |= {f"{before}{other}{letter}{after}", before + after[:1] + letter + after[1:]}
    found.add(f"{name}s")
    return {slip for slip in found - {name} if slip and not slip[0].isdigit()}
