# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner promises, checked on the ledger of a world: on documents shown, hooks and requests, nothing else.

docs/runner-states.md has the promises in words. This knows nothing of lives, plans or states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tools.listings import Attempt, Listing
from tools.runner_profiles import PROFILES, Stage
from tools.runner_world import Entry

MARGIN_SECONDS = 3.0  # between the end of a prepare hook and NotBefore
SHORTEST_SECONDS = 1.0
RETRY_SECONDS = (10.0, 60.0)
REPEAT_SECONDS = 60.0
PLACE_SECONDS = 30.0
_TINY = 1e-6


class BrokenPromise(AssertionError):  # noqa: N818 - it is what it is called
    """The runner did what it should not, or did not what it should."""


class Judge:
    """Reads a ledger, entry by entry. Raises BrokenPromise."""

    def __init__(self, vm: str) -> None:
        self.vm = vm
        self.listed: dict[tuple[bool, str], Listing] = {}
        self.ended: list[Listing] = []
        self.trouble = False
        self.kills = 0
        self.wall_stepped = False  # what had no time left may have had some later
        self.rebooted = False
        self.entries: list[Entry] = []
        self._by_uid: dict[int, Attempt] = {}
        self._just_gone: list[Listing] = []  # since the last commit
        self._commits = 0

    def read(self, entries: Iterable[Entry]) -> Judge:
        """Judge the entries that are new."""
        for entry in list(entries)[len(self.entries) :]:
            self.entries.append(entry)
            if entry.fields.get("phase") != "notify":
                getattr(self, "_" + entry.kind.replace("-", "_"))(entry.at, **entry.fields)
        return self

    def everything(self) -> list[Listing]:
        """Return all listings so far."""
        return [*self.ended, *self.listed.values()]

    def over_for_good(self, key: str) -> bool:
        """Tell whether an event has left the list to the runner's knowledge, and not even a crash brings it back."""
        going = [*self.listed.values(), *self._just_gone]
        return key not in [listing.event_id.lower() for listing in going if not listing.drill]

    def demand(self, condition: object, promise: str, *about: object) -> None:
        """Raise BrokenPromise, with what happened of late, unless the condition holds."""
        if not condition:
            told = "\n".join(f"{entry.at:8.2f} {entry.kind:9} {_short(entry.fields)}" for entry in self.entries[-60:])
            raise BrokenPromise(f"{promise}: {' '.join(map(str, about))}\n{told}")

    # Runners come and go

    def _run(self, at: float, boot: int, booted_at: float) -> None:
        self._just_gone.clear()
        self.trouble = False

    def _kill(self, at: float) -> None:
        self.kills += 1
        for listing in self.everything():
            listing.taken = [(when, known) for when, known in listing.taken if known]
            listing.started = listing.start_known or (listing.drill and listing.started)  # drills do not come back
            for attempt in listing.every():
                if attempt.result is not None and not attempt.known:
                    attempt.result, attempt.dead = None, True
                attempt.interrupted = attempt.interrupted or attempt.result is None
        # What is in no journal is forgotten: the next document tells it again.
        for listing in self._just_gone:
            key = (listing.drill, listing.event_id.lower())
            if key not in self.listed:
                self.ended.remove(listing)
                listing.gone_at = listing.gone_index = None
                self.listed[key] = listing
        # A drill may be overtaken before anybody is shown it again.
        self.listed = {key: listing for key, listing in self.listed.items() if listing.kept or not listing.drill}

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
        """A prepare hook is asked to end: nothing to judge."""

    def _rehearse(self, at: float, event: str) -> None:
        """A drill is asked for: nothing to judge."""

    def _known(self, at: float) -> None:
        """The runner learns who its VM is: nothing to judge."""

    def _driven(self, at: float, on: bool) -> None:
        """Time passes in the runner's own loop, or does no more: ``tools.waiting_promises`` judges that."""

    def _trouble(self, at: float) -> None:
        self.trouble = True

    def _commit(self, at: float) -> None:
        self.trouble = False
        self._just_gone.clear()
        for listing in self.everything():
            listing.taken = [(when, True) for when, _known in listing.taken]
            listing.start_known, listing.kept = listing.started, True
            for attempt in listing.every():
                if not attempt.interrupted:
                    attempt.journaled = attempt.pid_kept = True
                attempt.known = attempt.result is not None

    # Documents

    def _document(self, at: float, source: str, events: list[Any], unreadable: bool) -> None:
        drill = source == "drills"
        named = {event[0].lower(): event for event in events}
        for key, event in named.items():
            event_id, status, description, resources, not_before = event
            listing = self.listed.get((drill, key))
            if listing is None:
                places = [name.lower() for name in resources]
                place = places.index(self.vm.lower()) if self.vm.lower() in places else None
                listing = Listing(event_id, drill, PROFILES[description], resources, at, place, status == "Started")
                self.listed[drill, key] = listing
            listing.started = listing.started or status == "Started"
            listing.not_before = not_before
        if unreadable:
            return
        for found in [found for found in self.listed if found[0] == drill and found[1] not in named]:
            listing = self.listed.pop(found)
            listing.gone_at, listing.gone_index = at, len(self.entries)
            self.ended.append(listing)
            self._just_gone.append(listing)

    # The journal tells of a start before it happens

    def _begun(self, at: float, event: str, drill: bool, phase: str, name: str, attempt: int) -> None:
        if phase != "prepare":
            return
        listing = self.listed.get((drill, event.lower()))
        self.demand(listing is not None, "nothing is prepared for what is not listed", event, name)
        assert listing is not None
        stage = listing.stage_of(phase, name)
        self.demand(stage is not None, "a hook is of the event's own match", event, name)
        assert stage is not None
        listing.begun.setdefault(stage, len(self.entries))

    def _sending(self, at: float, event: str) -> None:
        listing = self.listed.get((False, event.lower()))
        if listing is not None:
            listing.sending = True

    # Hooks

    def _start(
        self,
        at: float,
        uid: int,
        event: str,
        drill: bool,
        phase: str,
        name: str,
        attempt: int,
        timeout: float,
        wall: float,
        ends_at: float | None,
    ) -> None:
        check = self._prepare if phase == "prepare" else self._recover
        listing = check(at, event, drill, name, wall + timeout)
        before = listing.of(phase, name)
        known = max((earlier.number for earlier in before if earlier.journaled), default=0)
        last = max((earlier.number for earlier in before), default=0)
        self.demand(
            known < attempt <= last + 1 + self.kills, "attempts are counted", event, name, attempt, "after", last
        )
        for earlier in before:
            self.demand(
                not (earlier.alive(at) and earlier.pid_kept), "no hook runs twice at the same time", event, name
            )
        started = Attempt(uid, attempt, at, ends_at, journaled=not self.trouble)
        before.append(started)
        started.dead = uid < 0  # it could not be started
        self._by_uid[uid] = started

    def _prepare(self, at: float, event: str, drill: bool, name: str, end: float) -> Listing:
        listing = self.listed.get((drill, event.lower()))
        self.demand(listing is not None, "nothing is prepared for what is not listed", event, name)
        assert listing is not None
        self.demand(not listing.started, "nothing is prepared once the event has started", event, name)
        self.demand(not self.trouble, "nothing is prepared that could not be recovered", event, name)
        number = listing.stage_of("prepare", name)
        self.demand(number is not None, "only this VM's own events are prepared, or as a witness", event, name)
        assert number is not None
        self.demand(number in listing.begun, "a start is in the journal before it happens", event, name)
        self.demand(
            listing.not_before is None or end <= listing.not_before - MARGIN_SECONDS + _TINY,
            "a prepare hook ends before NotBefore",
            event,
            name,
        )
        for earlier in listing.stages[:number]:
            for other in earlier.prepare:
                self.demand(self._left_behind(listing, earlier, other), "stages are prepared in order", event, name)
        stage = listing.stages[number]
        if not stage.parallel:
            for other in stage.prepare[: stage.prepare.index(name)]:
                fine = listing.succeeded("prepare", other)
                if stage.on_failure == "approve":
                    fine = fine or listing.failed("prepare", other) or self.wall_stepped
                self.demand(fine, "hooks of a stage run in order, and no further than one that fails", event, name)
        for attempt in listing.of("prepare", name):
            self.demand(attempt.result is None, "no prepare hook runs twice", event, name)
        shared = set(stage.recover)
        for other_listing in self.everything():
            for recover in shared:
                undone = any(
                    attempt.alive(at) and not attempt.interrupted for attempt in other_listing.of("recover", recover)
                )
                self.demand(not undone, "nothing is prepared while it is being undone", event, name)
        return listing

    def _left_behind(self, listing: Listing, stage: Stage, name: str) -> bool:
        """Tell whether nothing waits for a hook of an earlier stage any longer."""
        if listing.settled("prepare", name) or self.wall_stepped:
            return True
        skipped = stage.on_failure == "hold" and not stage.parallel
        return skipped and any(listing.failed("prepare", other) for other in stage.prepare)

    def _recover(self, at: float, event: str, drill: bool, name: str, _end: float) -> Listing:
        key = event.lower()
        ended = [listing for listing in self.ended if (listing.drill, listing.event_id.lower()) == (drill, key)]
        fitting = [listing for listing in ended if listing.stage_of("recover", name) in listing.begun]
        self.demand(fitting, "recovered is what was prepared, and has left the list", event, name)
        due = [listing for listing in fitting if not listing.settled("recover", name)]
        self.demand(due, "nothing is recovered twice", event, name)
        # Of an event that came back: the first time may have been left to another, which is rid of it by now.
        listing = min(due, key=lambda listing: self._left(listing, name, 1))
        running = [attempt for attempt in listing.every("prepare") if attempt.alive(at) and attempt.pid_kept]
        self.demand(not running, "nothing is recovered while it is still prepared", event, name)
        stage = listing.stages[listing.stage_of("recover", name) or 0]
        for other in stage.recover[: stage.recover.index(name)]:
            self.demand(not listing.given_up(other), "recovery ends at a hook that keeps failing", event, name)
            self.demand(
                not any(attempt.alive(at) and not attempt.interrupted for attempt in listing.of("recover", other)),
                "recover hooks run in order",
                event,
                name,
            )
        for other_listing in self.listed.values():
            number = other_listing.stage_of("recover", name)
            self.demand(
                other_listing is listing or number not in other_listing.begun,
                "nothing is undone that another listed event has prepared",
                event,
                name,
                "needed by",
                other_listing.event_id,
            )
        attempts = listing.of("recover", name)
        if attempts and attempts[-1].known and not self._restarted_since(attempts[-1].result_at):
            wait = RETRY_SECONDS[min(len(attempts), len(RETRY_SECONDS)) - 1]
            self.demand(at >= attempts[-1].result_at + wait - _TINY, "a recovery is not hurried", event, name)
        return listing

    def _restarted_since(self, moment: float) -> bool:
        return any(entry.kind == "run" and entry.at >= moment for entry in self.entries)

    def _end(self, at: float, uid: int, result: str, late: float = 0.0) -> None:
        if uid in self._by_uid:
            attempt = self._by_uid[uid]
            attempt.result, attempt.result_at = result, at

    # Approvals

    def _post(self, at: float, ids: list[str], result: str, age: float, wall: float, after: str) -> None:
        self.demand(age < _TINY, "an approval rests on a fresh document", ids)
        self.demand(after == "document", "an approval is the first request after its document", ids, "after", after)
        for event_id in ids:
            listing = self.listed.get((False, event_id.lower()))
            self.demand(listing is not None, "no approval for what is not listed, nor for a drill", event_id)
            assert listing is not None
            self._approval(listing, at, wall, result)

    def _approval(self, listing: Listing, at: float, wall: float, result: str) -> None:
        about = (listing.event_id, listing.profile.name)
        profile = listing.profile
        self.demand(profile.approves, "no approval unless the policies approve", *about)
        self.demand(not listing.started, "no approval of what has started", *about)
        self.demand(listing.not_before is None or wall < listing.not_before, "no approval after NotBefore", *about)
        self.demand(listing.place is not None or profile.witness, "no approval of what does not affect this VM", *about)
        self.demand(at - listing.seen_at >= profile.after, "no approval before the policies approve", *about)
        self.demand(len(listing.resources) == 1 or not profile.holds_groups, "no approval for a held group", *about)
        if all(stage.approver == "leader" for stage in profile.stages) and listing.place:
            waited = at - listing.seen_at
            self.demand(waited >= PLACE_SECONDS * listing.place - _TINY, "the leader comes first", *about)
        self.demand(listing.sending or self.trouble, "an approval is in the journal before it is sent", *about)
        self.demand(not (listing.stages and self.trouble), "no approval while nothing can be kept", *about)
        for stage in listing.stages:
            for name in stage.prepare:
                done = listing.succeeded("prepare", name)
                if stage.on_failure == "approve":
                    late = (
                        listing.not_before is not None
                        and listing.not_before - wall <= MARGIN_SECONDS + SHORTEST_SECONDS
                    )
                    done = done or listing.failed("prepare", name) or late or self.wall_stepped
                self.demand(done, "no approval before every prepare hook has succeeded", *about, name)
        busy = [attempt for attempt in listing.every("prepare") if attempt.alive(at) and not attempt.interrupted]
        self.demand(not busy, "no approval while a prepare hook runs", *about)
        if listing.taken and listing.taken[-1][1] and not self.rebooted:  # a boot leaves the wall clock alone to tell
            wait = REPEAT_SECONDS * 2.0 ** (len(listing.taken) - 1)
            self.demand(at - listing.taken[-1][0] >= wait - _TINY, "an approval that was taken is not repeated", *about)
        listing.tried = True
        listing.sending = False
        if result == "taken":
            listing.taken.append((at, False))

    # In the end

    def at_rest(self, wall: float) -> None:
        """Judge what should have been done by now: all works, no hook runs, and there were some polls."""
        if self.wall_stepped:
            return
        for listing in self.listed.values():
            left = None if listing.not_before is None else listing.not_before - wall
            if listing.started or listing.hardware or (left is not None and left < 20):
                continue
            self._prepared(listing)
            if not listing.drill and self.to_be_approved(listing):
                self.demand(listing.tried, "what is prepared is approved", listing.event_id, listing.profile.name)

    def _prepared(self, listing: Listing) -> None:
        for stage in listing.stages:
            for name in stage.prepare:
                if stage.on_failure == "hold" and listing.failed("prepare", name) and not stage.parallel:
                    break
                about = (listing.event_id, listing.profile.name, name)
                self.demand(listing.settled("prepare", name), "what is announced is prepared", *about)

    @staticmethod
    def to_be_approved(listing: Listing) -> bool:
        """Tell whether this VM is to approve it, once it is prepared."""
        profile = listing.profile
        held = len(listing.resources) > 1 and profile.holds_groups
        ours = profile.witness or (listing.place is not None and (listing.place == 0 or profile.name == "anyone"))
        failed = any(
            listing.failed("prepare", name)
            for stage in listing.stages
            for name in stage.prepare
            if stage.on_failure == "hold"
        )
        return profile.approves and ours and not held and not failed

    def over(self) -> None:
        """Judge the whole: nothing is listed any longer, and whatever was to be tried again had the time for it."""
        self.demand(not self.listed, "the test lets every event end", *self.listed)
        for listing in self.ended:
            for number, stage in enumerate(listing.stages):
                if number in listing.begun:
                    self._recovered(listing, stage)

    def _recovered(self, listing: Listing, stage: Stage) -> None:
        for name in stage.recover:
            about = (listing.event_id, listing.profile.name, name)
            successes = sum(attempt.result == "succeeded" for attempt in listing.of("recover", name))
            self.demand(successes <= 1 + self.kills, "what is recovered is recovered once", *about)
            if listing.given_up(name):
                break
            if not successes:
                self.demand(self._left(listing, name), "what was prepared is recovered", *about)

    def _left(self, listing: Listing, name: str, longer: int = 0) -> bool:
        """Tell whether another event that was listed longer, or as long, had prepared what the hook undoes."""
        return any(
            other is not listing
            and other.stage_of("recover", name) in other.begun
            and (other.gone_index or 0) >= (listing.gone_index or 0) + longer
            for other in self.ended
        )


def _short(fields: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("wall", "timeout"))
