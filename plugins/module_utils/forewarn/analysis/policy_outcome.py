# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one policy does with events, for one reason, whether as formulas or as classes of the event space."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from .artifacts import Json

# How an outcome comes about: a rule decides; its condition, its explanation or the group of its limit has no value, so
# it holds; the type or status is unknown; no rule applies; a parameter has a value with which the policies do not run.
RULE, ERROR, EXPLANATION, LIMIT = "rule", "error", "explanation", "limit"
DOUBT, NO_RULE, REFUSED = "doubt", "no-rule", "refused"
# With the part that has no value, as in policy.decision.Verdict.
FAILED = {ERROR: "condition", EXPLANATION: "explanation", LIMIT: "limit"}

M = TypeVar("M", bound="PolicyMatch")  # type: ignore[type-arg]  # of Any, which pylint does not see in a text


@dataclass(frozen=True, eq=False)
class PolicyMatch(Generic[M]):
    """One match of a policy: the artifact's entries of both, the path of ids, and its number in the file.

    ``conditional``: a nested rule ends the search where nothing in it decides, and does not only group. ``limit_group``
    is the same for expressions of groups that have the same value, None without one.
    """

    policy: Json
    path: str
    data: Json
    number: int
    conditional: bool
    limit_group: Hashable
    inner: tuple[M, ...] | None


@dataclass(frozen=True, eq=False)
class PolicyOutcome(Generic[M]):
    """What one policy does with events for one reason (``how``); ``match`` is the one that decides, if any."""

    policy: str
    how: str
    output: str
    match: M | None

    @property
    def rule(self) -> str | None:
        """The rule's path, as decisions name it."""
        return None if self.match is None else self.match.path

    @property
    def data(self) -> Json:
        """The artifact's entry of the match that decided, empty where none did."""
        return self.match.data if self.how == RULE and self.match is not None else {}

    @property
    def limit_group(self) -> Hashable:
        """What stands for the name of the limit's group: the same for the same value."""
        return None if self.match is None else self.match.limit_group


def with_inner(matches: Iterable[M]) -> Iterator[M]:
    """Yield matches, each before those of its nested rule: in the order of the file."""
    for match in matches:
        yield match
        yield from with_inner(match.inner or ())
