# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has happened in a world, read from its ledger: runners that come and go, documents, and how hooks end.

It judges nothing: ``tools.judges.promises`` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from tools.worlds.listings import Attempt, Listing
from tools.worlds.runner_profiles import GENERATIONS
from tools.worlds.runner_world import Entry

_Reader = TypeVar("_Reader", bound="LedgerReader")


class LedgerReader:
    """Reads a ledger, entry by entry, and keeps what can be known from outside the runner.

    An entry goes to the method named after its kind. Those of hooks that start and of approvals are the judge's.
    """

    def __init__(self, vm: str) -> None:
        self.vm = vm
        self.listed: dict[tuple[bool, str], Listing] = {}
        self.ended: list[Listing] = []
        self.trouble = False
        self.unread = False  # the journal could not be read when this runner started, and cannot yet
        self.named = False  # this runner knows who its VM is
        self._unnamed: tuple[float, dict[int, Any]] = (-1.0, {})  # when it learned that, and what was asked for before
        self.kills = 0
        self.wall_stepped = False  # an event without time left may have had some later
        self.generation = 0  # of the policies
        self.paused_until: float | None = None  # by the wall clock: an operator's pause
        self.rebooted = False
        self.entries: list[Entry] = []
        self._by_uid: dict[int, Attempt] = {}
        self._just_gone: list[Listing] = []  # since the last commit

    def read(self: _Reader, entries: Iterable[Entry]) -> _Reader:
        """Read the new entries."""
        for entry in list(entries)[len(self.entries) :]:
            self.entries.append(entry)
            if entry.fields.get("phase") != "notify":
                getattr(self, "_" + entry.kind.replace("-", "_"))(entry.at, **entry.fields)
        return self

    def everything(self) -> list[Listing]:
        """Return all listings so far."""
        return [*self.ended, *self.listed.values()]

    def over_for_good(self, key: str) -> bool:
        """Return whether the runner knows that an event has left the list, and would know it after a crash."""
        going = [*self.listed.values(), *self._just_gone]
        return key not in [listing.event_id.lower() for listing in going if not listing.drill]

    def _since(self, moment: float, *kinds: str) -> bool:
        return any(entry.kind in kinds and entry.at >= moment for entry in self.entries)

    # Runners come and go

    def _run(self, at: float, boot: int, booted_at: float, generation: int = 0) -> None:
        self._just_gone.clear()
        self.trouble = self.named = False
        self.generation = generation  # from the next document on
        for listing in self.listed.values():
            listing.shown = False

    def _reload(self, at: float, generation: int) -> None:
        """The runner applies the new policies at once to the events that it has seen since it started."""
        self.generation = generation
        for listing in self.listed.values():
            if listing.shown:
                listing.go_by(GENERATIONS[generation][listing.profile.name])
        self._ask()

    def _kill(self, at: float) -> None:
        self.kills += 1
        for listing in self.everything():
            listing.forget()
            listing.taken = [(when, known) for when, known in listing.taken if known]
            listing.started = listing.start_known or (listing.drill and listing.started)  # drills do not come back
            for attempt in listing.every():
                if attempt.result is not None and not attempt.known:
                    attempt.result, attempt.dead = None, True
                attempt.interrupted = attempt.interrupted or attempt.result is None
        # What is in no journal is forgotten: the next document shows it again.
        for listing in self._just_gone:
            key = (listing.drill, listing.event_id.lower())
            if key not in self.listed:
                self.ended.remove(listing)
                listing.gone_at = listing.gone_index = None
                self.listed[key] = listing
        # A drill may be overtaken before anybody is shown it again.
        self.listed = {key: listing for key, listing in self.listed.items() if listing.kept or not listing.drill}

    def _hidden(self, at: float) -> None:
        """The new runner cannot read the journal: it does not know what was approved, nor what has started."""
        self.kills += 1
        self.unread = True
        for listing in self.everything():
            listing.taken = []
            listing.lost = True

    def _step(self, at: float, seconds: float) -> None:
        self.wall_stepped = True

    def _reboot(self, at: float) -> None:
        self.rebooted = True
        for listing in self.everything():
            for attempt in listing.every():
                attempt.dead = True

    def _leftover(self, at: float, uid: int) -> None:
        if uid in self._by_uid:
            self._by_uid[uid].dead = True

    def _stopped(self, at: float, uid: int) -> None:
        if uid in self._by_uid:
            self._by_uid[uid].dead = self._by_uid[uid].interrupted = True

    _exit = _leftover  # of a process that no runner watches

    def _asked(self, at: float, uid: int) -> None:
        if uid in self._by_uid:
            self._by_uid[uid].asked = True

    def _rehearse(self, at: float, event: str) -> None:
        """A drill is asked for: nothing to judge."""

    def _pause(self, at: float, until: float | None) -> None:
        """An operator pauses approvals, or, without an end, spoils the file: then it holds until somebody resumes."""
        self.paused_until = math.inf if until is None else until

    def _resume(self, at: float) -> None:
        self.paused_until = None

    def _known(self, at: float) -> None:
        """The runner learns who its VM is: until then the policies decided nothing."""
        self.named = True
        self._unnamed = (at, {id(listing): (listing.planned, listing.latest) for listing in self.listed.values()})
        self._ask()

    def _ask(self) -> None:
        for listing in self.listed.values() if self.named else ():
            if listing.shown and not listing.problems:
                listing.ask()

    def _driven(self, at: float, on: bool) -> None:
        """Time passes in the runner's own loop, or does no more: ``tools.judges.waiting_promises`` judges that."""

    def _trouble(self, at: float) -> None:
        self.trouble = True

    def _commit(self, at: float) -> None:
        # What the journal had is resumed after the first commit; until the next one a crash brings it back.
        found, self.unread = self.unread, False
        self.trouble = False
        self._just_gone = [listing for listing in self._just_gone if found and listing.kept]
        for listing in self.everything():
            listing.taken = [(when, True) for when, _known in listing.taken]
            if listing.shown:  # what only an earlier runner saw, and could not keep, is in no journal
                listing.keep()
            for attempt in listing.every() if not found else ():
                if not attempt.interrupted:
                    attempt.journaled = attempt.pid_kept = True
                attempt.known = attempt.result is not None

    # Documents

    def _document(self, at: float, source: str, events: list[Any], unreadable: bool) -> None:
        drill = source == "drills"
        named = {event["id"].lower(): event for event in events}
        profiles = GENERATIONS[self.generation]
        for key, event in named.items():
            places = [name.lower() for name in event["resources"]]
            place = places.index(self.vm.lower()) if self.vm.lower() in places else None
            content = [event["type"], sorted(set(places)), event["source"], event["duration"]]
            listing = self.listed.get((drill, key))
            if listing is None:
                profile, hardware = profiles[event["description"]], event["status"] == "Started"
                listing = Listing(
                    event["id"], drill, profile, event["resources"], content, at, place, hardware, changed_at=at
                )
                listing.not_before = event["not_before"]
                self.listed[drill, key] = listing
            elif content != listing.content and not event["problems"]:
                listing.version += 1
                listing.content, listing.changed_at = content, at
                listing.taken, listing.tried, listing.sending = [], False, False
            listing.go_by(profiles[event["description"]])
            listing.shown, listing.lost = True, False
            listing.started = listing.started or event["status"] == "Started"
            listing.doubtful = event["status"] not in ("Scheduled", "Started")
            listing.problems = event["problems"] or listing.doubtful
            if event["problems"]:  # what cannot be read changes nothing
                continue
            listing.resources, listing.place = event["resources"], place
            listing.moved = listing.moved or (event["not_before"] != listing.not_before and not listing.started)
            if not listing.started:
                for attempt in listing.every("prepare"):
                    if attempt.end_by is not None and None not in (listing.not_before, event["not_before"]):
                        attempt.end_by += event["not_before"] - listing.not_before
                    elif event["not_before"] != listing.not_before:
                        attempt.end_by = None
            listing.not_before = event["not_before"]
        self._ask()
        if unreadable:
            return
        for found in [found for found in self.listed if found[0] == drill and found[1] not in named]:
            listing = self.listed.pop(found)
            if self._unnamed[0] == at:  # it was gone before the policies could decide
                listing.planned, listing.latest = self._unnamed[1].get(id(listing), (listing.planned, listing.latest))
            listing.gone_at, listing.gone_index = at, len(self.entries)
            self.ended.append(listing)
            self._just_gone.append(listing)

    # Hooks

    def _end(self, at: float, uid: int, result: str, late: float = 0.0) -> None:
        if uid in self._by_uid:
            attempt = self._by_uid[uid]
            attempt.result, attempt.result_at = result, at
