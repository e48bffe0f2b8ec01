# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of rules as an analysis compares them: a number or a share of the VMs of a group, named by an expression."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import Any

from .artifacts import Json


@dataclass(frozen=True)
class LimitTerms:
    """A rule's limit: ``at_most`` or ``percent``, the other is None.

    ``group`` is the same for expressions that have the same value, None for the group in the VM's configuration;
    ``source`` is the expression.
    """

    at_most: int | None
    percent: int | None
    group: Hashable = None
    source: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The limit in short: ``1``, ``25% of vm.scale_set``."""
        most = f"{self.at_most}" if self.percent is None else f"{self.percent}%"
        return most if self.source is None else f"{most} of {self.source}"

    def implies(self, other: LimitTerms) -> bool:
        """Return whether what keeps within this limit keeps within another."""
        if self.group != other.group:
            return False
        if self.at_most is not None and other.at_most is not None:
            return self.at_most <= other.at_most
        return self.percent is not None and other.percent is not None and self.percent <= other.percent


def limit_terms(match: Json, group: Hashable) -> LimitTerms | None:
    """Return the limit of a match of an artifact; ``group`` stands for the value of its expression."""
    limit = match.get("limit")
    if limit is None:
        return None
    source = " ".join(limit["group"]["source"].split()) if "group" in limit else None
    return LimitTerms(limit.get("at_most"), limit.get("percent"), None if source is None else group, source)


def at_least_as_strict(some: Collection[LimitTerms], others: Collection[LimitTerms]) -> bool:
    """Return whether what keeps within some limits keeps within others."""
    return all(any(one.implies(other) for one in some) for other in others)


def limit_words(limit: Json) -> str:
    """Describe a limit of an artifact: ``at most 1 VM of the group vm.scale_set at once``."""
    whose = f"the group {' '.join(limit['group']['source'].split())}" if "group" in limit else "its group"
    if "percent" in limit:
        return f"at most {limit['percent']}% of {whose} at once"
    return f"at most {limit['at_most']} VM{'' if limit['at_most'] == 1 else 's'} of {whose} at once"


def named(expression: Json) -> dict[str, Any]:
    """Return the expression of an artifact that says whether another one, which names a group, is not empty."""
    form = expression["form"]
    start, end = form[2:4]
    return {**expression, "form": ["call", "bool", start, end, "ne", form, ["lit", "string", end, end, ""]]}
