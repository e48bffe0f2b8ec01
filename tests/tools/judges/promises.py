# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner promises, checked on the ledger of a world: on its documents, hooks and requests alone.

docs/runner-states.md lists the promises. This module knows nothing of records, plans or states.
"""

from __future__ import annotations

from typing import Any

from tools.worlds.ledger_reader import LedgerReader
from tools.worlds.listings import FAILURES, Attempt, Listing
from tools.worlds.runner_profiles import Stage

FRESH_SECONDS = 1.0
MARGIN_SECONDS = 3.0  # between the end of a prepare hook and NotBefore
SHORTEST_SECONDS = 1.0
RECOVER_PAUSES = (10.0, 60.0, 300.0, 900.0, 3600.0)
PREPARE_PAUSE_SECONDS, LONGEST_PREPARE_PAUSE_SECONDS = 1.0, 60.0
GRACE_SECONDS = 2.0  # from SIGTERM to SIGKILL
REPEAT_SECONDS = 60.0
PLACE_SECONDS = 30.0
AT_REST_SECONDS = 60.0  # within which all is done that can be done for an event
OVERTAKEN_SECONDS = 3.0  # within which a real event ends a drill
_TINY = 1e-6


class BrokenPromise(AssertionError):  # noqa: N818 - it is what it is called
    """The runner did what it must not do, or did not do what it must."""


class Judge(LedgerReader):
    """Judges a ledger, entry by entry. Raises BrokenPromise."""

    def __init__(self, vm: str) -> None:
        super().__init__(vm)
        self._document_at = 0.0
        self._approved_by = ""  # the document of the latest approval

    def demand(self, condition: object, promise: str, *about: object) -> None:
        """Raise BrokenPromise, with the latest entries, unless the condition holds."""
        if not condition:
            latest = "\n".join(f"{entry.at:8.2f} {entry.kind:9} {_short(entry.fields)}" for entry in self.entries[-60:])
            raise BrokenPromise(f"{promise}: {' '.join(map(str, about))}\n{latest}")

    def _run(self, at: float, boot: int, booted_at: float, generation: int = 0) -> None:
        self._approved_by = ""  # the next runner counts its own
        super()._run(at, boot, booted_at, generation)

    # Documents

    def _document(self, at: float, source: str, events: list[Any], unreadable: bool) -> None:
        self._ended_in_time(at)
        super()._document(at, source, events, unreadable)

    def _ended_in_time(self, at: float) -> None:
        """Prepare hooks that ran until NotBefore was near have got SIGTERM by the time of the next document."""
        if at <= self._document_at:  # the other source's, in the same cycle
            return
        for attempt in self._by_uid.values():
            if attempt.end_by is not None and attempt.end_by + _TINY < self._document_at and attempt.alive(at):
                ending = attempt.asked or attempt.interrupted or self.wall_stepped
                self.demand(ending, "a prepare hook ends before NotBefore", attempt.uid, attempt.end_by)
        self._document_at = at

    # The journal records a start before it happens

    def _begun(self, at: float, event: str, drill: bool, phase: str, name: str, attempt: int) -> None:
        if phase != "prepare":
            return
        listing = self.listed.get((drill, event.lower()))
        self.demand(listing is not None, "nothing is prepared for what is not listed", event, name)
        assert listing is not None
        known = [stage for version, stage in listing.asked if version == listing.version]
        self.demand(any(name in stage.prepare for stage in known), "a hook is of the event's own match", event, name)
        listing.begun.add((listing.version, name))

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
        if phase == "prepare":
            listing = self._prepare(at, event, drill, name, wall)
        else:
            listing = self._recover(at, event, drill, name, attempt)
        counted = self._counted(listing, phase, name, attempt)
        self.demand(counted, "attempts are counted", event, name, attempt)
        for earlier in listing.attempts.get((phase, name), []):
            self.demand(
                not (earlier.alive(at) and earlier.pid_kept), "no hook runs twice at the same time", event, name
            )
        started = Attempt(uid, attempt, at, ends_at, listing.version, journaled=not self.trouble)
        if phase == "prepare" and listing.not_before is not None:
            started.end_by = at + listing.not_before - MARGIN_SECONDS - wall
        listing.add(phase, name, started)
        started.dead = uid < 0  # it could not be started
        self._by_uid[uid] = started

    def _counted(self, listing: Listing, phase: str, name: str, attempt: int) -> bool:
        before = listing.of(phase, name)
        known = max((earlier.number for earlier in before if earlier.journaled), default=0)
        last = max((earlier.number for earlier in before), default=0)
        return known < attempt <= last + 1 + self.kills

    def _prepare(self, at: float, event: str, drill: bool, name: str, wall: float) -> Listing:
        listing = self.listed.get((drill, event.lower()))
        self.demand(listing is not None, "nothing is prepared for what is not listed", event, name)
        assert listing is not None
        real = [
            other
            for other in self.listed.values()
            if drill and not other.drill and other.place is not None and other.kept and not other.lost
        ]
        ahead = [other.event_id for other in real if at - max(other.seen_at, other.changed_at) > OVERTAKEN_SECONDS]
        self.demand(not ahead, "nothing is prepared for a drill beside a real event", event, name, *ahead)
        self.demand(not listing.started, "nothing is prepared once the event has started", event, name)
        self.demand(not listing.problems, "nothing is prepared for what cannot be read", event, name)
        self.demand(not self.trouble, "nothing is prepared that could not be recovered", event, name)
        self.demand(
            (listing.version, name) in listing.begun, "a start is in the journal before it happens", event, name
        )
        self.demand(
            listing.not_before is None or wall + SHORTEST_SECONDS <= listing.not_before - MARGIN_SECONDS + _TINY,
            "no prepare hook is started when there is no time left for it",
            event,
            name,
        )
        # What the policies ask for, now and before: a runner that was killed may still act on the latter.
        known = [stage for version, stage in listing.asked if version == listing.version and name in stage.prepare]
        self.demand(known, "only this VM's own events are prepared, or as a witness", event, name)
        fitting = [stage for stage in known if self._in_order(listing, stage, name)]
        self.demand(fitting, "hooks of a stage run in order, and no further than one that fails", event, name)
        near = [stage for stage in fitting if self._near(listing, stage, wall)]
        self.demand(near, "nothing is prepared before it is near enough", event, name)
        listing.entered |= {(listing.version, stage) for stage in near}
        for attempt in listing.of("prepare", name):
            self.demand(attempt.result != "succeeded", "no prepare hook that has succeeded runs again", event, name)
        if listing.once_only(name):
            again = any(attempt.number > 0 for attempt in listing.of("prepare", name))
            self.demand(not again, "what may run once only runs once", event, name)
        self._not_hurried(listing, name, at, wall)
        shared = {recover for stage in fitting for recover in stage.recover}
        for other_listing in self.everything():
            for recover in shared:
                undone = any(
                    attempt.alive(at) and not attempt.interrupted for attempt in other_listing.of("recover", recover)
                )
                self.demand(not undone, "nothing is prepared while it is being undone", event, name)
        return listing

    def _in_order(self, listing: Listing, stage: Stage, name: str) -> bool:
        """Return whether the hooks before a prepare hook of a stage let it run."""
        if not stage.parallel:
            for other in stage.prepare[: stage.prepare.index(name)]:
                accepted = stage.on_failure == "approve" and listing.over(other)
                if not (listing.succeeded("prepare", other) or accepted or self.wall_stepped):
                    return False
        stages = listing.stages
        before = stages[: stages.index(stage)] if stage in stages else []
        return all(self._left_behind(listing, earlier, other) for earlier in before for other in earlier.prepare)

    def _left_behind(self, listing: Listing, stage: Stage, name: str) -> bool:
        """Return whether the next stage no longer waits for a hook: one that failed is tried again beside it."""
        tried = listing.succeeded("prepare", name) or listing.failed("prepare", name)
        if tried or listing.over(name) or self.wall_stepped or stage.within is not None:
            return True
        return any(listing.failed("prepare", other) or listing.over(other) for other in stage.prepare)

    def _near(self, listing: Listing, stage: Stage, wall: float) -> bool:
        entered = (listing.version, stage) in listing.entered
        if stage.within is None or listing.not_before is None or entered or self.wall_stepped or listing.moved:
            return True
        return listing.not_before - wall <= stage.within + _TINY

    def _not_hurried(self, listing: Listing, name: str, at: float, wall: float) -> None:
        """A hook that failed is tried again after a pause, which grows, unless time is short or the policies change."""
        attempts = listing.of("prepare", name)
        failures = listing.failures("prepare", name)
        if not failures or self.kills or self.wall_stepped or listing.moved:
            return
        if self._since(attempts[-1].at, "run", "reload"):
            return
        pause = min(PREPARE_PAUSE_SECONDS * 2.0 ** (failures - 1), LONGEST_PREPARE_PAUSE_SECONDS)
        if listing.not_before is not None:
            pause = min(pause, max(0.0, listing.not_before - MARGIN_SECONDS - wall))
        waited = at - attempts[-1].result_at
        self.demand(waited >= pause - _TINY, "a prepare hook is not hurried", listing.event_id, name, waited, pause)

    def _recover(self, at: float, event: str, drill: bool, name: str, number: int) -> Listing:
        key = event.lower()
        ended = [listing for listing in self.ended if (listing.drill, listing.event_id.lower()) == (drill, key)]
        fitting = [listing for listing in ended if name in listing.may_recover()]
        self.demand(fitting, "recovered is what was prepared, and has left the list", event, name)
        due = [listing for listing in fitting if not listing.succeeded("recover", name)]
        self.demand(due, "nothing is recovered twice", event, name)
        # Of an event that came back: its first recovery may have been left to another event, which has run it by now.
        listing = min(due, key=lambda each: (self._done(each, name), not self._counted(each, "recover", name, number)))
        running = [attempt for attempt in listing.every("prepare") if attempt.alive(at) and attempt.pid_kept]
        self.demand(not running, "nothing is recovered while it is still prepared", event, name)
        for other_listing in self.everything():
            for attempt in other_listing.of("recover", name):
                alive = attempt.alive(at) and attempt.pid_kept and not attempt.interrupted
                self.demand(not alive, "the same recovery does not run twice at once", event, name)
        for other_listing in self.listed.values():
            begun = {recover for stage in other_listing.begun_stages() for recover in stage.recover}
            self.demand(
                name not in begun,
                "nothing is undone that another listed event has prepared",
                event,
                name,
                "needed by",
                other_listing.event_id,
            )
        attempts = listing.of("recover", name)
        failed = [attempt for attempt in attempts if attempt.result in FAILURES]
        if failed and attempts[-1].known and not self._since(failed[-1].result_at, "run"):
            wait = RECOVER_PAUSES[min(len(failed), len(RECOVER_PAUSES)) - 1]
            self.demand(at >= failed[-1].result_at + wait - _TINY, "a recovery is not hurried", event, name)
        return listing

    # Approvals

    def _post(
        self, at: float, ids: list[str], result: str, age: float, wall: float, after: str, document: str, changed: bool
    ) -> None:
        self.demand(age <= FRESH_SECONDS, "an approval rests on a fresh document", ids, age)
        self.demand(not changed, "nothing changes between a document and its approval", ids)
        self.demand(document != self._approved_by, "each approval has a document of its own", ids)
        self._approved_by = document
        self.demand(after == "document", "an approval is the first request after its document", ids, "after", after)
        paused = self.paused_until is not None and wall < self.paused_until
        self.demand(not paused, "no approval while an operator has paused approvals", ids)
        for event_id in ids:
            listing = self.listed.get((False, event_id.lower()))
            self.demand(listing is not None, "no approval for what is not listed, nor for a drill", event_id)
            assert listing is not None
            self._approval(listing, at, wall, result)

    def _approval(self, listing: Listing, at: float, wall: float, result: str) -> None:
        about = (listing.event_id, listing.profile.name)
        profile = listing.profile
        self.demand(profile.approves, "no approval unless the policies approve", *about)
        self.demand(not listing.problems, "no approval of what cannot be read", *about)
        self.demand(not listing.started, "no approval of what has started", *about)
        self.demand(listing.not_before is None or wall < listing.not_before, "no approval after NotBefore", *about)
        self.demand(listing.place is not None or profile.witness, "no approval of what does not affect this VM", *about)
        self.demand(at - listing.seen_at >= profile.after - _TINY, "no approval before the policies approve", *about)
        self.demand(len(listing.resources) == 1 or not profile.holds_groups, "no approval for a held group", *about)
        if all(stage.approver == "leader" for stage in profile.stages) and listing.place:
            waited = at - listing.changed_at
            self.demand(waited >= PLACE_SECONDS * listing.place - _TINY, "the leader comes first", *about)
        self.demand(listing.sending or self.trouble, "an approval is in the journal before it is sent", *about)
        prepared = any(stage.prepare for stage in listing.stages)
        self.demand(not (prepared and self.trouble), "no approval while nothing can be kept", *about)
        for stage in listing.stages:
            for name in stage.prepare:
                done = listing.succeeded("prepare", name)
                if stage.on_failure == "approve":
                    late = (
                        listing.not_before is not None
                        and listing.not_before - wall <= MARGIN_SECONDS + SHORTEST_SECONDS
                    )
                    done = listing.accepted(name) or late
                self.demand(
                    done, "no approval before every prepare hook has succeeded for what is listed now", *about, name
                )
        busy = [attempt for attempt in listing.every("prepare") if attempt.alive(at) and not attempt.interrupted]
        self.demand(not busy, "no approval while a prepare hook runs", *about)
        if listing.taken and listing.taken[-1][1] and not self.rebooted:  # after a boot only the wall clock measures it
            wait = REPEAT_SECONDS * 2.0 ** (len(listing.taken) - 1)
            self.demand(at - listing.taken[-1][0] >= wait - _TINY, "an approval that was taken is not repeated", *about)
        listing.tried = True
        listing.sending = False
        if result == "taken":
            listing.taken.append((at, False))

    # In the end

    def at_rest(self, now: float, wall: float) -> None:
        """Judge what should have been done by now: everything works, and no hook runs."""
        if self.wall_stepped:
            return
        for listing in self.listed.values():
            left = None if listing.not_before is None else listing.not_before - wall
            new = now - max(listing.seen_at, listing.changed_at) < AT_REST_SECONDS  # as after a fault
            if listing.started or listing.hardware or new or (left is not None and left < 20):
                continue
            self._prepared(listing)
            if not listing.drill and self.to_be_approved(listing):
                self.demand(listing.tried, "what is prepared is approved", listing.event_id, listing.profile.name)

    def _prepared(self, listing: Listing) -> None:
        for stage in listing.stages:
            for name in stage.prepare:
                about = (listing.event_id, listing.profile.name, name)
                if listing.once_only(name) and not listing.succeeded("prepare", name):
                    if listing.over(name):
                        break
                elif stage.within is None:
                    self.demand(listing.over(name), "what is announced is prepared", *about)

    @staticmethod
    def to_be_approved(listing: Listing) -> bool:
        """Return whether this VM has to approve it, once it is prepared."""
        profile = listing.profile
        held = len(listing.resources) > 1 and profile.holds_groups
        first = profile.witness or listing.place == 0 or profile.name == "anyone"
        ours = listing.place is not None and first  # a witness outside waits, up to a minute
        ready = all(listing.accepted(name) for stage in listing.stages for name in stage.prepare)
        return profile.approves and ours and not held and ready

    def over(self) -> None:
        """Judge the whole: nothing is listed any longer, and every retry had enough time."""
        self.demand(not self.listed, "the test lets every event end", *self.listed)
        for listing in self.ended:
            for name in listing.owed():
                about = (listing.event_id, listing.profile.name, name)
                successes = sum(attempt.result == "succeeded" for attempt in listing.of("recover", name))
                self.demand(successes <= 1 + self.kills, "what is recovered is recovered once", *about)
                self.demand(self._done(listing, name), "what was prepared is recovered", *about)

    def _done(self, listing: Listing, name: str) -> bool:
        """Return whether a recover hook has succeeded since the event left the list, for whichever event."""
        since = listing.gone_at or 0.0
        return any(
            attempt.result == "succeeded" and attempt.at >= since and (other.drill <= listing.drill)
            for other in self.everything()
            for attempt in other.of("recover", name)
        )


def _short(fields: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("wall", "timeout"))
