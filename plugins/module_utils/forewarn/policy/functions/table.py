# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All functions of the typed form by their names, from the modules that define them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from . import dynamic, formatting, lists, mathematics, overloads, standard

_TYPED: Mapping[str, Callable[..., Any]] = {
    **standard.FUNCTIONS,
    **lists.FUNCTIONS,
    **mathematics.FUNCTIONS,
    **formatting.FUNCTIONS,
}
_NAMES = {*overloads.METHODS, *overloads.FUNCTIONS, *overloads.OPERATORS}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_TYPED,
    **dynamic.FUNCTIONS,
    # With arguments that are Dyn, the overload is chosen at run time.
    **{f"dyn {name}": dynamic.dispatcher(name, _TYPED) for name in _NAMES},
}
