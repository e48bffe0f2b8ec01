# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which classes of events two versions of policies decide differently."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..diff.behaviour import Behaviour, behaviour
from ..diff.behaviour_change import Description, describe
from .decisions import Decided


def changed_classes(old: Decided, new: Decided) -> Iterator[tuple[str, str, int]]:
    """Yield each change and its effect, with its classes."""
    merged: dict[Description, int] = {}
    pairs = itertools.product(_behaviours(old).items(), _behaviours(new).items())
    for (before, classes), (after, others) in pairs:
        if before != after and (both := classes & others):
            change = describe(before, after)
            merged[change] = merged.get(change, 0) | both
    for change, classes in merged.items():
        yield change.what, change.effect, classes


def _behaviours(decided: Decided) -> dict[Behaviour, int]:
    found: dict[Behaviour, int] = {}
    for regions, classes in decided.regions():
        key = behaviour(regions)
        found[key] = found.get(key, 0) | classes
    return found
