# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of what happens to events: its words, and the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..artifacts import Json


class Part(NamedTuple):
    """The events of one change as text, with an example and its decisions before and after, as the engine makes them.

    ``usual`` is False if only events that the service does not send are among them. Where no event was found that shows
    the change, it is not ``certain``: there is no example and no decision, and ``why`` says what stands in the way.
    """

    when: str
    usual: bool
    case: Json | None
    old: Json | None
    new: Json | None
    certain: bool
    why: str = ""


@dataclass
class Change:
    """One change of what happens to events: its words, its effect and kinds (see kinds), and the events.

    ``rule`` is the match of the new policies that decides, as (policy, path, source, line, column), None if none does.
    """

    what: str
    effect: str
    rule: tuple[str, str, str, int, int] | None
    parts: list[Part] = field(default_factory=list)
    complete: bool = True  # whether ``parts`` has all parts
    kinds: tuple[str, ...] = ()  # the most important one first

    @property
    def certain(self) -> bool:
        """Whether an event shows it."""
        return any(part.certain for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the change for ``--format json``."""
        names = ("policy", "rule", "path", "line", "column")
        return {
            "change": self.what,
            "kinds": list(self.kinds),
            "effect": self.effect,
            "decided_by": None if self.rule is None else dict(zip(names, self.rule)),
            "complete": self.complete,
            "events": [part._asdict() for part in self.parts],
        }
