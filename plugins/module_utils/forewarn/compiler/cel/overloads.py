# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which function a call means by the types of its arguments, and the functions that Forewarn refuses."""

from __future__ import annotations

from collections.abc import Sequence

from ...policy.functions.overloads import Overload
from .types import NOTHING, Type, parse_type

COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

# Functions of CEL or its extensions that Forewarn refuses, and what to do instead.
UNSUPPORTED = {"getMilliseconds": "for a duration engines do not agree on it; compare with duration('…')"}


def matching_overload(overloads: Sequence[Overload], types: Sequence[Type]) -> Overload | None:
    """Return the overload that takes values of these types."""
    return next((one for one in overloads if _takes(one, types)), None)


def possible_overloads(overloads: Sequence[Overload], types: Sequence[Type]) -> list[Overload]:
    """Return the overloads that may take values of these types, some of which are known only at run time."""
    return [one for one in overloads if _takes(one, types, ("nothing", "dyn"))]


def _takes(overload: Overload, types: Sequence[Type], any_kind: Sequence[str] = ("nothing",)) -> bool:
    return len(overload.kinds) == len(types) and all(
        type_.kind == kind or type_.kind in any_kind for kind, type_ in zip(overload.kinds, types, strict=True)
    )


def result_type(overload: Overload, types: Sequence[Type]) -> Type:
    """Return the type of what an overload makes of values of these types."""
    element = types[0].of[0] if types[0].of else NOTHING
    if overload.result == "E":
        return element
    return Type("list", (element,)) if overload.result == "list(E)" else parse_type(overload.result)


def common_result_type(overloads: Sequence[Overload], types: Sequence[Type]) -> Type | None:
    """Return the type that each overload gives, None if they differ or depend on the elements of the arguments."""
    results = {overload.result for overload in overloads}
    return result_type(overloads[0], types) if len(results) == 1 and "E" not in "".join(results) else None
