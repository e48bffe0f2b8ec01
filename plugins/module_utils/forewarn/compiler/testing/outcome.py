# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of an expression in an engine, in a form that can be compared with another engine's."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """The result of an expression. ``kind`` is ``value``, ``error`` or ``broken`` (the engine itself failed).

    ``detail`` is the value, or a text that describes the failure.
    """

    kind: str
    detail: Any

    def same(self, other: Outcome) -> bool:
        """Return whether both are errors, or both the same value: NaN equals NaN, -0.0 differs from 0.0."""
        if self.kind != other.kind:
            return False
        return self.kind != "value" or _identical(self.detail, other.detail)


def _identical(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return repr(a) == repr(b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_identical, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_identical(value, b[key]) for key, value in a.items())
    return type(a) is type(b) and bool(a == b)
