# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What could be seen of one event from outside of the runner: for ``tools.promises``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.runner_profiles import Profile, Stage

MOST_RECOVERIES = 3


@dataclass(eq=False)
class Attempt:
    """One start of a hook. ``journaled``: so it is in the journal, ``known`` its result, ``pid_kept`` its process."""

    uid: int
    number: int
    at: float
    ends_at: float | None
    result: str | None = None
    result_at: float = 0.0
    known: bool = False
    pid_kept: bool = False
    journaled: bool = True
    interrupted: bool = False
    dead: bool = False

    def alive(self, now: float) -> bool:
        """Tell whether its process may run."""
        return self.result is None and not self.dead and (self.ends_at is None or now < self.ends_at)


@dataclass(eq=False)
class Listing:
    """An event from the document that first had it to the one that had it no longer."""

    event_id: str
    drill: bool
    profile: Profile
    resources: list[str]
    seen_at: float
    place: int | None
    hardware: bool
    kept: bool = False  # that it is listed is in the journal
    started: bool = False
    start_known: bool = False  # that it has started is in the journal
    not_before: float | None = None
    gone_at: float | None = None
    gone_index: int | None = None
    begun: dict[int, int] = field(default_factory=dict)  # stage -> index of the entry
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=dict)
    taken: list[tuple[float, bool]] = field(default_factory=list)  # approvals: when, and whether it is in the journal
    tried: bool = False  # an approval was sent
    sending: bool = False  # that one is sent is in the journal

    @property
    def stages(self) -> list[Stage]:
        """What this VM is to prepare, in order."""
        return self.profile.stages_for(self.place is not None)

    def of(self, phase: str, name: str) -> list[Attempt]:
        """Return the attempts of a hook."""
        return self.attempts.setdefault((phase, name), [])

    def stage_of(self, phase: str, name: str) -> int | None:
        """Return which stage a hook belongs to."""
        for number, stage in enumerate(self.stages):
            if name in (stage.prepare if phase == "prepare" else stage.recover):
                return number
        return None

    def every(self, phase: str | None = None) -> Iterator[Attempt]:
        """Yield all attempts, of one phase if that is asked for."""
        for (found, _name), attempts in self.attempts.items():
            if phase in (None, found):
                yield from attempts

    def succeeded(self, phase: str, name: str) -> bool:
        """Tell whether a hook is known to have succeeded."""
        return any(attempt.result == "succeeded" for attempt in self.of(phase, name))

    def failed(self, phase: str, name: str) -> bool:
        """Tell whether a prepare hook has failed, other than by a crash."""
        return any(attempt.result not in (None, "succeeded") for attempt in self.of(phase, name))

    def given_up(self, name: str) -> bool:
        """Tell whether a recover hook is not tried again."""
        attempts = self.of("recover", name)
        last = attempts[-1] if attempts else None
        return last is not None and last.result not in (None, "succeeded") and last.number >= MOST_RECOVERIES

    def settled(self, phase: str, name: str) -> bool:
        """Tell whether there is no reason to run a hook again."""
        return self.succeeded(phase, name) or (self.failed(phase, name) if phase == "prepare" else self.given_up(name))
