# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drills: synthetic events that the running service rehearses. docs/drills.md is the operator's guide.

STATE/drills/ID.json is both the request of ``forewarn drill`` and the runner's record of the drill, which survives a
restart. Nothing here knows the service: an event of a drill can be decided, not approved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timezone
from typing import NamedTuple

from ...errors import InputError
from ...events import LATEST_API_VERSION, RESOURCE_TYPES, Document, Event, has_field
from ...texts import duration_text, exact_text
from ..clocks import Clocks, Stamp
from ..telemetry import heartbeat
from .store import NOTHING, DrillRecord, DrillRequest, DrillStore, check, new_id

FINISHED, CANCELLED, OVERTAKEN, REFUSED = "finished", "cancelled", "overtaken", "refused"  # results

# A request that no runner takes in time expires: no VM may begin to drain when its runner is repaired tomorrow.
LONGEST_WAIT_SECONDS = 300.0
MOST_RUNNING = 16  # each has an event in every document that is decided


class DrillResult(NamedTuple):
    """A drill that is no longer listed. ``result`` is one of this module's constants, ``reason`` a sentence."""

    event_id: str
    result: str
    reason: str


def submit(directory: str, request: DrillRequest, clocks: Clocks) -> str:
    """Request a drill from the runner that works on a state directory; return the id of its event.

    Raises InputError if the request is invalid, if no runner works there, or if this user has no permission.
    """
    check(request)
    find_runner(directory, clocks)
    event_id = new_id()
    store = DrillStore(directory)
    store.inbox.create()
    store.write(event_id, DrillRecord(request, clocks.stamp()))
    return event_id


def cancel(directory: str, event_id: str, clocks: Clocks) -> None:
    """Ask the runner to end a drill. Raises InputError if there is no drill of this id, or as ``submit``."""
    find_runner(directory, clocks)
    DrillStore(directory).cancel(event_id)


def find_runner(directory: str, clocks: Clocks) -> None:
    """Raise InputError if no runner works on a state directory."""
    why = heartbeat.silence(heartbeat.read(directory), clocks)
    if why is not None:
        raise InputError(
            f"no runner works on {directory}: {why}.",
            "Start it, or name the state directory of the one that works: --state DIR.",
        )


class _Drill:
    """An active drill."""

    def __init__(self, record: DrillRecord, scheduled: Stamp, resources: tuple[str, ...]) -> None:
        self.record = record._replace(scheduled=scheduled, resources=resources)
        self.not_before = datetime.fromtimestamp(
            math.ceil(scheduled.wall + record.request.notice_seconds), timezone.utc
        )

    def event(self, event_id: str, api_version: str) -> Event:
        """Return the event as an api-version would have it."""
        request, started = self.record.request, self.record.started is not None
        description = request.description or f"Drill: a {request.event_type} is rehearsed."
        seconds = math.ceil(request.duration_seconds)
        return Event(
            event_id=event_id,
            event_type=request.event_type,
            resource_type=RESOURCE_TYPES[0],
            resources=self.record.resources or (),
            event_status="Started" if started else "Scheduled",
            not_before=None if started else self.not_before,  # SE-16
            description=description if has_field(api_version, "Description") else None,
            event_source=request.source if has_field(api_version, "EventSource") else None,
            duration_in_seconds=seconds if has_field(api_version, "DurationInSeconds") else None,
            extra={"Drill": True},
        )


class Drills:
    """The active drills of one runner, in the order of their begin. Nothing here raises.

    Their document has the fields of ``api_version``, and its own incarnations. ``directory`` is the state directory.
    """

    def __init__(self, directory: str, clocks: Clocks, api_version: str = LATEST_API_VERSION) -> None:
        self._store = DrillStore(directory)
        self._clocks = clocks
        self._api_version = api_version
        self._running: dict[str, _Drill] = {}  # by id
        self._pending: set[str] = set()  # waiting for the name of this VM
        self._results: list[DrillResult] = []
        self._incarnation = 0
        self._document = Document(self._incarnation, api_version=api_version)

    def poll(self, vm_name: str | None, end_reason: str | None = None) -> Document | None:
        """Return the document of the drills as they are now: once empty after the last of them, then None.

        Without ``vm_name`` only drills that name their resources can begin. ``end_reason`` is a reason to end all.
        """
        if end_reason is None:
            self._read_requests(vm_name)
        else:
            self.end_all(end_reason)
        for event_id, drill in list(self._running.items()):
            self._advance(event_id, drill)
        events = tuple(drill.event(event_id, self._api_version) for event_id, drill in self._running.items())
        if events != self._document.events:
            self._incarnation += 1
            self._document = Document(self._incarnation, events, api_version=self._api_version)
        elif not events:
            return None
        return self._document

    def approve(self, event_ids: Iterable[str]) -> None:
        """Start drills, as an approval would: with the next ``poll`` they are Started."""
        for event_id in event_ids:
            drill = self._running.get(event_id.lower())
            if drill is not None and drill.record.started is None:
                self._start(event_id.lower(), drill, self._clocks.stamp())

    def end_all(self, reason: str) -> None:
        """End all drills, even those that have not begun: a real event comes first."""
        self._read_requests(None)
        for event_id in [*self._running, *self._pending]:
            self._end(event_id, OVERTAKEN, reason)

    def take_results(self) -> list[DrillResult]:
        """Return the drills that have ended since the last call."""
        results, self._results = self._results, []
        return results

    def _read_requests(self, vm_name: str | None) -> None:
        names = self._store.names()
        if names is None:  # it cannot be read now: active drills continue
            return
        if names == NOTHING and not self._running and not self._pending:  # as at nearly every poll
            return
        for event_id in [event_id for event_id in self._running if event_id not in names.drills]:
            self._end(event_id, CANCELLED, "its file was removed")
        self._pending &= names.drills
        for event_id in sorted(names.drills - self._running.keys()):
            if event_id not in names.cancelled:
                self._begin(event_id, vm_name)
        for event_id in names.cancelled:
            if event_id in names.drills:
                self._end(event_id, CANCELLED, "somebody cancelled it")
            else:
                self._store.remove(event_id)
        for name in names.strange:
            self._store.inbox.refuse(name)
            self._results.append(DrillResult(name, REFUSED, f"{name} is not the name of a drill's file"))

    def _begin(self, event_id: str, vm_name: str | None) -> None:
        try:
            record = self._store.read(event_id)
            resources = record.resources or record.request.resources or ((vm_name,) if vm_name else ())
            if record.scheduled is None:
                waited = self._clocks.since(record.handed_over)
                if waited > LONGEST_WAIT_SECONDS:
                    why = "" if resources else ", since the name of this VM is not known"
                    raise InputError(f"it could not begin for {duration_text(waited)}{why}")
                if len(self._running) >= MOST_RUNNING:
                    raise InputError(f"{MOST_RUNNING} drills are under way already")
                if not resources:
                    self._pending.add(event_id)
                    return
            drill = _Drill(record, record.scheduled or self._clocks.stamp(), resources)
            if record.scheduled is None:
                self._store.write(event_id, drill.record)
        except (InputError, ValueError, OverflowError, OSError) as error:  # OSError: datetime's, beside the files'
            self._pending.discard(event_id)
            self._store.inbox.refuse(f"{event_id}.json")
            self._results.append(DrillResult(event_id, REFUSED, str(error)))
            return
        self._pending.discard(event_id)
        self._running[event_id] = drill

    def _advance(self, event_id: str, drill: _Drill) -> None:
        request, scheduled = drill.record.request, drill.record.scheduled
        if drill.record.started is None and scheduled is not None:
            if self._clocks.since(scheduled) < request.notice_seconds:
                return
            # The moment when it was due, not now: the runner may not have run.
            later = request.notice_seconds
            self._start(event_id, drill, scheduled._replace(wall=scheduled.wall + later, boot=scheduled.boot + later))
        started = drill.record.started
        if started is not None and self._clocks.since(started) >= request.duration_seconds:
            self._end(event_id, FINISHED, f"it lasted {exact_text(request.duration_seconds)}")

    def _start(self, event_id: str, drill: _Drill, moment: Stamp) -> None:
        drill.record = drill.record._replace(started=moment)
        with suppress(InputError):  # after a restart it is Scheduled again, which a rehearsal allows
            self._store.write(event_id, drill.record)

    def _end(self, event_id: str, result: str, reason: str) -> None:
        self._running.pop(event_id, None)
        self._pending.discard(event_id)
        self._store.remove(event_id)
        self._results.append(DrillResult(event_id, result, reason))
