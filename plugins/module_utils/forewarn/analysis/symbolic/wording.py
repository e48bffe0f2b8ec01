# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of dimensions in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .domains import MISSING, Dimension, Value, merged_range


def phrase(dimension: Dimension, values: Sequence[Value]) -> str:
    """Return in words that a dimension has one of some values, which are in its order."""
    name = dimension.name
    if name == "place":
        words = {
            "leader": "this VM leads",
            "further down": "this VM is further down",
            "not listed": "this VM is not affected",
        }
        if [value.label for value in values] == ["leader", "further down"]:
            return "this VM is affected"
        return " or ".join(words[value.label] for value in values)
    if name == "vm.tags" and len(values) == 1:
        return f"vm.tags are {values[0].label}"
    if name == "notice" and [value.concrete for value in values] == [MISSING]:
        return "NotBefore is blank"
    if name.startswith("names:"):
        return f"Resources {'names' if values[0].concrete else 'does not name'} {name[6:]}"
    shown = spoken(name)
    if [value.label for value in values] == ["missing"]:
        return f"{shown} is {'not known' if name == 'vm.name' else 'missing'}"
    listed = _ranges(dimension, values) if dimension.ordered else [value.label for value in values]
    verb = (
        "="
        if len(listed) == 1
        and not (dimension.ordered and (".." in listed[0] or " " in listed[0].removesuffix(" (unknown)")))
        else "in"
    )
    return f"{shown} {verb} {', '.join(listed)}"


def spoken(name: str) -> str:
    """Return the name of a dimension as people say it."""
    return "number of Resources" if name == "count" else name.removeprefix("event.").replace("tag:", "vm.tags.")


def _ranges(dimension: Dimension, values: Sequence[Value]) -> list[str]:
    """Return ordered values as ranges, adjacent intervals as one. An interval of which not all representatives are
    meant, since something else is compared with it, is told as such.
    """
    told: list[str] = []
    run: list[Value] = []
    bounds: dict[tuple[Any, Any], list[Value]] = {}
    for value in dimension.values:
        bounds.setdefault((value.low, value.high), []).append(value)
    for every in bounds.values():
        meant = [value for value in every if value in values]
        whole = len(meant) == len(every) and every[0].concrete is not MISSING and every[0].low != -1
        if whole:
            run.append(every[0])
            continue
        if run:
            told.append(merged_range(dimension.kind, run))
            run = []
        if len(meant) == len(every):
            told.append(every[0].label)
        elif meant:
            told.append(f"a part of {merged_range(dimension.kind, every[:1])}")
    return [*told, merged_range(dimension.kind, run)] if run else told
