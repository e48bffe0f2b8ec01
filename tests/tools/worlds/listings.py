# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen of one event from outside the runner, for ``tools.judges.promises``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.worlds.runner_profiles import Profile, Stage

FAILURES = ("failed", "timed-out", "not-started")


@dataclass(eq=False)
class Attempt:
    """One start of a hook, for a content of the event (``version``).

    ``journaled``: the journal has the start, ``known``: its result, ``pid_kept``: its process.
    """

    uid: int
    number: int
    at: float
    ends_at: float | None
    version: int = 0
    result: str | None = None
    result_at: float = 0.0
    known: bool = False
    pid_kept: bool = False
    journaled: bool = True
    interrupted: bool = False
    dead: bool = False
    asked: bool = False  # it got SIGTERM
    end_by: float | None = None  # as NotBefore is near then

    def alive(self, now: float) -> bool:
        """Return whether its process may run."""
        return self.result is None and not self.dead and (self.ends_at is None or now < self.ends_at)


@dataclass(eq=False)
class Listing:
    """An event from the document that first had it to the one that had it no longer.

    ``version`` counts the changes of its content: type, resources, source, duration. ``asked`` are the stages that the
    policies have asked for while it was Scheduled, each with the version at that time.
    """

    event_id: str
    drill: bool
    profile: Profile
    resources: list[str]
    content: object
    seen_at: float
    place: int | None
    hardware: bool
    version: int = 0
    changed_at: float = 0.0
    lost: bool = False  # by a runner that could not read the journal, until it is shown again
    shown: bool = False  # to the runner that runs
    kept: bool = False  # the journal has it
    started: bool = False
    start_known: bool = False  # the journal has its start
    not_before: float | None = None
    moved: bool = False  # NotBefore has changed
    problems: bool = False  # the policies cannot be asked about it, as the document has it now
    doubtful: bool = False  # its status, as the document has it now, does not say whether it has started
    gone_at: float | None = None
    gone_index: int | None = None
    asked: list[tuple[int, Stage]] = field(default_factory=list)
    planned: list[tuple[int, Stage]] = field(default_factory=list)  # less what never began, nor is asked for
    latest: list[Stage] = field(default_factory=list)  # what the policies last asked for before it started
    in_journal: tuple[list[tuple[int, Stage]], list[Stage]] = ([], [])  # ``planned`` and ``latest`` as it has them
    steady: bool = True  # the policies have always asked for the same, for the same content
    entered: set[tuple[int, Stage]] = field(default_factory=set)  # stages of which a hook was started in time
    begun: set[tuple[int, str]] = field(default_factory=set)  # prepare hooks, by version, whose start is in the journal
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=dict)
    taken: list[tuple[float, bool]] = field(default_factory=list)  # approvals: when, and whether it is in the journal
    tried: bool = False  # an approval was sent, for this content
    sending: bool = False  # the journal has that one is sent

    @property
    def stages(self) -> list[Stage]:
        """What this VM has to prepare and to recover by the current policies, in order."""
        return self.profile.stages_for(self.place is not None)

    def go_by(self, profile: Profile) -> None:
        """Note the current policies."""
        self.steady = self.steady and profile == self.profile
        self.profile = profile

    def ask(self) -> None:
        """Note what the policies ask for now."""
        if self.started:
            return
        self.steady = self.steady and self.version == 0 and (not self.asked or self.latest == self.stages)
        self.latest = self.stages
        now = [(self.version, stage) for stage in self.latest]
        self.asked += [each for each in now if each not in self.asked]
        self.planned = [each for each in self.planned if each in now or self._has_begun(*each)]
        self.planned += [each for each in now if each not in self.planned]

    def keep(self) -> None:
        """Note that the journal has what was asked for."""
        self.kept, self.start_known = True, self.started
        self.in_journal = self.planned, self.latest

    def forget(self) -> None:
        """Go back to what the journal has: a runner that is killed forgets what was asked for since."""
        self.planned, self.latest = self.in_journal

    def _has_begun(self, version: int, stage: Stage) -> bool:
        return any((version, name) in self.begun for name in stage.prepare)

    def of(self, phase: str, name: str) -> list[Attempt]:
        """Return the attempts of a hook; of a prepare hook only those for the current content."""
        found = self.attempts.setdefault((phase, name), [])
        return [attempt for attempt in found if phase != "prepare" or attempt.version == self.version]

    def add(self, phase: str, name: str, attempt: Attempt) -> None:
        """Note a start of a hook."""
        self.attempts.setdefault((phase, name), []).append(attempt)

    def every(self, phase: str | None = None) -> Iterator[Attempt]:
        """Yield all attempts, or those of one phase."""
        for (found, _name), attempts in self.attempts.items():
            if phase in (None, found):
                yield from attempts

    def begun_stages(self) -> list[Stage]:
        """Return the stages of which a prepare hook was started while, or before, the policies asked for them."""
        return [stage for version, stage in self.planned if self._has_begun(version, stage)]

    def owed(self) -> set[str]:
        """Return the recover hooks that have to run once the event has left the list."""
        stages = self.begun_stages()
        if self.started or self.doubtful:
            now = [] if self.problems else self.stages  # the policies cannot decide what cannot be read
            stages += [stage for stage in (*self.latest, *now) if stage.recover_when == "started"]
        return {name for stage in stages for name in stage.recover}

    def may_recover(self) -> set[str]:
        """Return the recover hooks that may run then: more than must, since nobody saw whether it had started."""
        stages = [stage for _version, stage in self.asked] + self.stages
        when_started = {name for stage in stages if stage.recover_when == "started" for name in stage.recover}
        return self.owed() | when_started

    def succeeded(self, phase: str, name: str) -> bool:
        """Return whether a hook is known to have succeeded."""
        return any(attempt.result == "succeeded" for attempt in self.of(phase, name))

    def failures(self, phase: str, name: str) -> int:
        """Return how often a hook has failed by itself: neither by a crash nor by being ended."""
        return sum(attempt.result in FAILURES for attempt in self.of(phase, name))

    def failed(self, phase: str, name: str) -> bool:
        """Return whether a hook has failed by itself."""
        return self.failures(phase, name) > 0

    def asking(self, name: str) -> list[Stage]:
        """Return the stages that ask for a prepare hook now."""
        return [stage for stage in self.stages if name in stage.prepare]

    def once_only(self, name: str) -> bool:
        """Return whether a prepare hook may be started only once: one stage that asks for it says so."""
        return any(stage.attempts == 1 for stage in self.asking(name))

    def over(self, name: str) -> bool:
        """Return whether there is no reason to run a prepare hook again, by the stages that ask for it now."""
        if self.succeeded("prepare", name):
            return True
        if self.once_only(name):
            return (self.version, name) in self.begun
        return self.failures("prepare", name) >= max((stage.limit for stage in self.asking(name)), default=1.0)

    def accepted(self, name: str) -> bool:
        """Return whether no approval waits for a prepare hook: it has succeeded, or all stages accept its failure."""
        accept = all(stage.on_failure == "approve" for stage in self.asking(name))
        return self.succeeded("prepare", name) or (accept and self.over(name))
