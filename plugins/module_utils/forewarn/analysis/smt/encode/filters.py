# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of ``x.filter(…).size()``, and of what is the same as to ask whether a filter leaves anything."""

from __future__ import annotations

from ....policy import forms as f

# Whether a size is not 0, for comparisons with a number on the right.
_EMPTINESS = {
    ("gt", 0): True,
    ("ge", 1): True,
    ("ne", 0): True,
    ("le", 0): False,
    ("lt", 1): False,
    ("eq", 0): False,
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def counted(form: f.Call) -> f.Filter | None:
    """Return the filter of ``x.filter(…).size()``, None for another call."""
    (first, *_rest) = (*form.arguments, None)
    return first if form.function == "size" and isinstance(first, f.Filter) else None


def emptiness(form: f.Call) -> tuple[f.Filter, bool] | None:
    """Return the filter of ``x.filter(…).size() > 0`` or ``x.filter(…) == []``, and whether something is to be left.

    None for another call.
    """
    if len(form.arguments) != 2:
        return None
    (left, right), function = form.arguments, form.function
    if isinstance(left, (f.Literal, f.List)):
        left, right, function = right, left, _MIRRORED.get(function, function)
    if isinstance(left, f.Filter) and isinstance(right, f.List) and not right.parts:
        return (left, function in ("ne", "ne_deep")) if function in ("eq", "ne", "eq_deep", "ne_deep") else None
    if not isinstance(left, f.Call) or left.function != "size" or not isinstance(left.arguments[0], f.Filter):
        return None
    if not isinstance(right, f.Literal) or right.type != "int":
        return None
    wanted = _EMPTINESS.get((function, right.value))
    return None if wanted is None else (left.arguments[0], wanted)
