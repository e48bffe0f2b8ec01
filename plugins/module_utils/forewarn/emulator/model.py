# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service as a state machine: no HTTP, no threads, and no time but the injected clock's.

Nothing happens by itself: ``settle``, which every method calls, plays what has become due since the last call, in
order. A caller with several threads holds a lock around each call.
"""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ..errors import InputError
from ..events import LATEST_API_VERSION
from .clock import Clock
from .documents import View
from .lifecycle import (
    CANCELLED,
    FINISHED,
    SCHEDULED,
    STARTED,
    Approval,
    Deployment,
    EmulatedEvent,
    EmulatedTime,
    ListedEvent,
    Transition,
    UnknownNameError,
    WrongStateError,
)
from .spec import (
    RECORDED_IMPACT,
    EventSpec,
    Settings,
    VmSpec,
    check_event,
    check_vms,
    is_guid,
    with_loneliness,
)

DEFAULT_VM = VmSpec("vm_0")
_HISTORY = 10_000  # transitions kept
_NAMED = 10  # events in the hint about an unknown one
_ROUNDING = 1e-6  # real seconds; a sum of floats just above a whole second is that second


def new_event_id() -> str:
    """Return an EventId as the service spells it: a GUID in upper case (SE-11)."""
    return str(uuid.uuid4()).upper()


class Model:
    """Events, the VMs that see them, and DocumentIncarnation.

    ``on_transition`` is called for each transition, at the moment it is played.
    Times in arguments and results are times of the clock, in emulated seconds, unless documented otherwise.
    """

    def __init__(
        self,
        clock: Clock,
        vms: Sequence[VmSpec] = (DEFAULT_VM,),
        settings: Settings | None = None,
        on_transition: Callable[[Transition], None] | None = None,
    ) -> None:
        self.clock = clock
        self.settings = settings or Settings()
        check_vms(vms)
        vms = with_loneliness(vms)
        self.events: dict[str, EmulatedEvent] = {}  # by EventId in lower case, in order of creation
        self.transitions: deque[Transition] = deque(maxlen=_HISTORY)
        self._views = {vm.name.lower(): View(vm) for vm in vms}
        self.default_vm = vms[0].name
        self._deployments = {vm.deployment: Deployment(vm.deployment) for vm in vms}
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._planned = 0
        self._playing = False
        self._new_id = new_event_id
        self._on_transition = on_transition
        self._time = clock.now()  # everything due until then has been played
        self.started_at = self._time

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """The moment being played; between calls, the moment of the last call."""
        return self._time

    def settle(self) -> None:
        """Play everything that is due."""
        if self._playing:  # a planned call comes here too: what follows it waits
            return
        now = self.clock.now()
        self._playing = True
        try:
            while True:
                due, play = self._next()
                if due > now:
                    break
                self._time = max(self._time, due)
                play()
                self._refresh()
        finally:
            self._playing = False
        self._time = max(self._time, now)

    def next_due(self) -> float | None:
        """Return the moment of the next transition that happens by itself, or None."""
        due, _play = self._next()
        return None if due == math.inf else due

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Plan a call, made when its moment is played. It can use every method of this class.

        If the call is not possible then, for example because an event has started, a transition ``failed`` is noted.
        """
        self._planned += 1
        self._agenda.append((moment, self._planned, action))
        self._agenda.sort(key=lambda entry: entry[:2])

    def retime(self) -> None:
        """Fit NotBefore to a clock that was advanced or re-scaled. Call ``settle`` before the change, this after it."""
        for event in self.events.values():
            if event.status == SCHEDULED:
                event.not_before, event.start_at = self._not_before(event.deadline)
        self._refresh()
        self.settle()

    def stamp(self) -> EmulatedTime:
        """Return the moment being played, with its real times."""
        return EmulatedTime(self._time, self.clock.wall(self._time), self.clock.monotonic(self._time))

    def _next(self) -> tuple[float, Callable[[], object]]:
        due: float = math.inf
        play: Callable[[], object] = _nothing
        if self._agenda:
            due, play = self._agenda[0][0], self._play_agenda
        for event in self.events.values():
            if event.due is not None and event.due < due:
                due, play = event.due, partial(self._step, event)
        for deployment in self._deployments.values():
            if not deployment.enabled:
                continue
            if not deployment.listing and deployment.events_from < due:
                due, play = deployment.events_from, partial(self._begin_listing, deployment)
            if self.settings.switch_off is not None and deployment.last_request + self.settings.switch_off < due:
                due, play = deployment.last_request + self.settings.switch_off, partial(self._switch_off, deployment)
        return due, play

    def _play_agenda(self) -> None:
        _due, _number, action = self._agenda.pop(0)
        try:
            action()
        except InputError as error:
            self._note("failed", "timeline", str(error))

    def _not_before(self, deadline: float) -> tuple[int, float]:
        """Return NotBefore in whole real seconds, rounded up, and the moment of the start.

        A client compares NotBefore with its own clock, and the event must not start before that clock shows it. If time
        stands still, there is no such comparison, and the event starts at the requested moment.
        """
        not_before = math.ceil(self.clock.wall(deadline) - _ROUNDING)
        if self.clock.paused:
            return not_before, deadline
        return not_before, max(deadline, self.clock.moment(not_before))

    # -- what VMs do ---------------------------------------------------------------------------------------------------

    def vm(self, name: str | None = None) -> VmSpec:
        """Return a VM by its name in any case, the default VM without a name. Raises UnknownNameError."""
        return self._view(name).vm

    def vms(self) -> tuple[VmSpec, ...]:
        """Return all VMs, the default one first."""
        return tuple(view.vm for view in self._views.values())

    def request(self, vm: str | None = None) -> float:
        """Note a request, which switches the service on (SE-05); return the moment from which it may be answered."""
        self.settle()
        deployment = self._deployments[self._view(vm).vm.deployment]
        deployment.last_request = self._time
        if not deployment.enabled:
            deployment.enabled = True
            deployment.ready_at = self._time + self.settings.first_response
            deployment.events_from = self._time + self.settings.first_events
            self._note("enabled", deployment.name)
            self.settle()
        return deployment.ready_at

    def document(
        self, vm: str | None = None, api_version: str = LATEST_API_VERSION
    ) -> tuple[int, tuple[ListedEvent, ...]]:
        """Return the DocumentIncarnation of an api-version, and the events that a VM is shown now.

        Types newer than the api-version are included. Reading this does not switch the service on.
        """
        self.settle()
        view = self._view(vm)
        return view.incarnations[api_version], view.listing

    def approve(self, event_ids: Iterable[str], vm: str | None = None) -> None:
        """Take a VM's StartRequests: all of them, or none (UnknownNameError) if one is not listed to this VM.

        Approving what has been approved or has started changes nothing (SE-31).
        """
        self.settle()
        view = self._view(vm)
        listed = {event.event_id.lower() for event in view.listing}
        approved = []
        for event_id in event_ids:
            if event_id.lower() not in listed:
                raise UnknownNameError(f"there is no event {event_id}")
            approved.append(self.events[event_id.lower()])
        for event in approved:
            event.approvals.append(Approval(view.vm.name, self.stamp()))
            self._note("approved", event.event_id, f"by {view.vm.name}")
            if event.status == SCHEDULED and event.approved_start is None and _suffices(event):
                delay = event.spec.start_delay
                event.approved_start = self._time + (self.settings.start_delay if delay is None else delay)
        self.settle()

    # -- what the platform does ----------------------------------------------------------------------------------------

    def schedule(self, spec: EventSpec) -> str:
        """Schedule an event and return its EventId. Raises InputError for an impossible event."""
        return self._schedule(spec).event_id

    def schedule_fault_domains(self, spec: EventSpec, pause: float = 0.0) -> str:
        """Serve the fault domains of the event's resources one after another (SE-24); return the first EventId.

        The next event appears ``pause`` seconds after the previous one has finished; a cancelled one ends the series.
        """
        domains: dict[str, list[str]] = {}
        for name in self._checked(spec).resources:
            domains.setdefault(self.vm(name).fault_domain, []).append(name)
        specs = []
        for number, names in enumerate(domains.values(), 1):
            alias = spec.name if spec.name is None or number == 1 else f"{spec.name}-{number}"
            event_id = spec.event_id if number == 1 else None
            specs.append(replace(spec, resources=tuple(names), name=alias, event_id=event_id))
        return self._schedule(specs[0], tuple(specs[1:]), pause).event_id

    def cancel(self, event: str) -> None:
        """Remove a Scheduled event without impact (SE-21)."""
        self._end(self._expect(event, SCHEDULED), CANCELLED)
        self._refresh()

    def start(self, event: str) -> None:
        """Start a Scheduled event now, approved or not; the service should not do this before NotBefore."""
        self._start(self._expect(event, SCHEDULED), "control")
        self._refresh()

    def finish(self, event: str) -> None:
        """Remove a Started event from the list now."""
        self._end(self._expect(event, STARTED), FINISHED)
        self._refresh()

    def secondary_impact(self, event: str, duration: float) -> None:
        """Let a Started event affect its VMs once more (SE-23). It stays listed at least until that is over."""
        started = self._expect(event, STARTED)
        started.impacts.append((self._time, self._time + duration))
        started.gone_at = max(started.gone_at or 0.0, self._time + duration)
        self._note("impact", started.event_id, f"for another {duration:g} s")

    def switch_off(self) -> None:
        """Switch the service off for all deployments, as a day without requests does (SE-05)."""
        self.settle()
        for deployment in self._deployments.values():
            if deployment.enabled:
                self._switch_off(deployment)

    def find(self, event: str) -> EmulatedEvent:
        """Return an event by its EventId in any case, or by its name. Raises UnknownNameError."""
        if event.lower() in self.events:
            return self.events[event.lower()]
        for known in self.events.values():
            if known.spec.name == event:
                return known
        newest = list(self.events.values())[-_NAMED:]
        ids = [known.event_id + (f" ({known.spec.name})" if known.spec.name else "") for known in newest]
        hint = f"The newest are {', '.join(ids)}." if ids else "None has been scheduled yet."
        raise UnknownNameError(f"there is no event {event!r}.", hint)

    # -- one step ------------------------------------------------------------------------------------------------------

    def _schedule(self, spec: EventSpec, followers: tuple[EventSpec, ...] = (), pause: float = 0.0) -> EmulatedEvent:
        self.settle()
        spec = self._checked(spec)
        notice = self.settings.notice_of(spec.event_type) if spec.notice is None else spec.notice
        deadline = self._time + notice
        not_before, start_at = self._not_before(deadline)
        event_id = spec.event_id or self._new_id()
        vms = [self.vm(name) for name in spec.resources]
        event = EmulatedEvent(event_id, spec, self.stamp(), deadline, not_before, start_at)
        event.followers, event.pause = followers, pause
        event.preview_resources = tuple(vm.preview_name for vm in vms)
        self.events[event_id.lower()] = event
        if spec.hardware_failure:
            self._start(event, "hardware failure")
        else:
            several = len({vm.fault_domain for vm in vms}) > 1
            doubt = " (of several fault domains, which Azure serves one after another)" if several else ""
            self._note("scheduled", event_id, f"{spec.event_type} of {', '.join(spec.resources)}{doubt}")
        self._refresh()
        return event

    def _checked(self, spec: EventSpec) -> EventSpec:
        """Return the spec with VM names in their own spelling, or raise InputError."""
        check_event(spec)
        names = tuple(self.vm(name).name for name in spec.resources)
        if not names or len(set(names)) != len(names):
            raise InputError("an event needs at least one VM in its resources, and each VM only once.")
        if len({self.vm(name).deployment for name in names}) > 1:
            raise InputError(
                f"no single event affects {', '.join(names)}: they are not in one group.", "Schedule one for each."
            )
        if spec.event_id is not None and (not is_guid(spec.event_id) or spec.event_id.lower() in self.events):
            raise InputError(f"the EventId {spec.event_id} is not a GUID, or is taken.")
        if spec.name is not None and any(event.spec.name == spec.name for event in self.events.values()):
            raise InputError(f"an event named {spec.name!r} exists already.")
        return replace(spec, resources=names)

    def _step(self, event: EmulatedEvent) -> None:
        if event.status == SCHEDULED:
            approved = event.approved_start is not None and event.approved_start <= event.start_at
            self._start(event, "approval" if approved else "NotBefore")
        else:
            self._end(event, FINISHED)

    def _start(self, event: EmulatedEvent, why: str) -> None:
        spec = event.spec
        impact = spec.impact
        if impact is None:
            impact = RECORDED_IMPACT if spec.listed_duration < 0 else float(spec.listed_duration)
        gone_after = self.settings.gone_after if spec.gone_after is None else spec.gone_after
        event.status, event.started, event.started_by = STARTED, self.stamp(), why
        event.impacts.append((self._time, self._time + impact))
        event.gone_at = self._time + max(gone_after, impact)
        self._note("started", event.event_id, f"by {why}")

    def _end(self, event: EmulatedEvent, status: str) -> None:
        event.status, event.ended = status, self.stamp()
        self._note(status.lower(), event.event_id)
        if status == FINISHED and event.followers:
            following, rest, pause = event.followers[0], event.followers[1:], event.pause
            self.at(self._time + pause, lambda: self._schedule(following, rest, pause))

    @staticmethod
    def _begin_listing(deployment: Deployment) -> None:
        deployment.listing = True

    def _switch_off(self, deployment: Deployment) -> None:
        deployment.enabled = deployment.listing = False
        for view in self._views.values():
            if view.vm.deployment == deployment.name:
                view.forget()
        self._note("switched off", deployment.name)

    def _refresh(self) -> None:
        """Show each VM its events."""
        for view in self._views.values():
            if not self._deployments[view.vm.deployment].listing:
                continue
            visible = [event for event in self.events.values() if event.listed and _sees(view.vm, event, self.vm)]
            listing = tuple(event.listing() for event in visible)
            if listing == view.listing:
                continue
            view.show(listing, self.settings.incarnation_step)
            seen = self.stamp()
            for event in visible:
                event.visible_since.setdefault(view.vm.name, seen)

    def _view(self, name: str | None) -> View:
        wanted = self.default_vm if name is None else name
        view = self._views.get(wanted.lower())
        if view is None:
            names = ", ".join(view.vm.name for view in self._views.values())
            raise UnknownNameError(f"there is no VM {wanted!r}.", f"The VMs are {names}.")
        return view

    def _expect(self, event: str, status: str) -> EmulatedEvent:
        self.settle()
        found = self.find(event)
        if found.status != status:
            raise WrongStateError(f"event {event} is {found.status}, not {status}.")
        return found

    def _note(self, kind: str, subject: str, detail: str = "") -> None:
        transition = Transition(self.stamp(), kind, subject, detail)
        self.transitions.append(transition)
        if self._on_transition is not None:
            self._on_transition(transition)


def _nothing() -> None:
    """Do nothing; used when nothing is due."""


def _suffices(event: EmulatedEvent) -> bool:
    """Return whether the approvals so far start the event."""
    if event.spec.start_on == "not_before":
        return False
    if event.spec.start_on == "all_approvals":
        return set(event.spec.resources) <= {approval.vm for approval in event.approvals}
    return True


def _sees(vm: VmSpec, event: EmulatedEvent, find: Callable[[str], VmSpec]) -> bool:
    if vm.name in event.spec.resources:
        return True
    return event.spec.audience == "group" and find(event.spec.resources[0]).deployment == vm.deployment
