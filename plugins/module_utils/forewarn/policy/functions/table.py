# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every function of the typed form by its name, from the modules that define them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from . import dynamic, formatting, lists, mathematics, overloads, standard

_KNOWN: Mapping[str, Callable[..., Any]] = {
    **standard.FUNCTIONS,
    **lists.FUNCTIONS,
    **mathematics.FUNCTIONS,
    **formatting.FUNCTIONS,
}
_NAMES = {*overloads.METHODS, *overloads.FUNCTIONS, *overloads.OPERATORS}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_KNOWN,
    **dynamic.FUNCTIONS,
    # Those whose arguments carry their types choose their overload when they are called.
    **{f"dyn {name}": dynamic.caller(name, _KNOWN) for name in _NAMES},
}
