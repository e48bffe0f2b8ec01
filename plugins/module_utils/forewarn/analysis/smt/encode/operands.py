# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A translated condition with the operands of its ``&&`` and ``||``, and what it would be without some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, Tuple

from ....policy.forms import Form, Or
from ..terms import Formula, conj, disj, neg
from .problem import Encoding

Place = Tuple[int, int]  # where a part begins and ends in the source of its expression


class ConditionPart(NamedTuple):
    """A condition, or an operand of one. ``inner`` are its own operands, none if it is neither ``&&`` nor ``||``."""

    form: Form
    value: Encoding
    inner: tuple[ConditionPart, ...] = ()

    @property
    def place(self) -> Place:
        """Where it is; no two parts of a condition share a place."""
        return self.form.start, self.form.end

    def pairs(self) -> Iterator[tuple[ConditionPart, ConditionPart]]:
        """Yield each operand below this one, after the operand that it belongs to: outer ones and last ones first."""
        for one in reversed(self.inner):
            yield self, one
            yield from one.pairs()

    def without(self, dropped: Collection[Place]) -> tuple[Formula, Formula]:
        """Return where this is true and where it is false, if operands at some places were not there.

        One operand of each ``&&`` and ``||`` has to be left.
        """
        if not self.inner:
            value, error = self.value
            return conj((neg(error), value)), conj((neg(error), neg(value)))
        true, false = zip(*(one.without(dropped) for one in self.inner if one.place not in dropped))
        return (disj(true), conj(false)) if isinstance(self.form, Or) else (conj(true), disj(false))
