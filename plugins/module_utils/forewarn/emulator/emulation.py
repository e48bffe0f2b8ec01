# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One running emulation: model, faults, request log and clock behind one lock, for threads to share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .actions import perform
from .clock import Clock
from .faults import Faults
from .lifecycle import EmulatedTime, Transition
from .model import DEFAULT_VM, Model
from .requestlog import LoggedRequest, RequestLog
from .spec import Settings, VmSpec

_LONGEST_WAIT = 1.0  # real seconds after which a waiting request checks the clock again


@dataclass(frozen=True)
class TimelineStep:
    """One entry of a timeline: ``at`` is in emulated seconds since the start; ``action`` and ``data`` are checked."""

    at: float
    action: str
    data: Any


@dataclass(frozen=True)
class Scenario:
    """What to emulate; by default a single VM for which nothing is planned."""

    vms: tuple[VmSpec, ...] = (DEFAULT_VM,)
    settings: Settings = field(default_factory=Settings)
    timeline: tuple[TimelineStep, ...] = ()
    name: str = ""


class Emulation:
    """``lock`` guards ``model``, ``faults`` and ``log``: hold it whenever they are used."""

    def __init__(
        self,
        scenario: Scenario | None = None,
        clock: Clock | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_answer: Callable[[LoggedRequest], None] | None = None,
    ) -> None:
        self.scenario = scenario or Scenario()
        self.clock = Clock() if clock is None else clock
        self.lock = threading.Condition(threading.RLock())
        self.log = RequestLog(on_answer)
        self._on_transition = on_transition
        self._closed = False
        self.model, self.faults = self._begin()

    def _begin(self) -> tuple[Model, Faults]:
        model = Model(self.clock, self.scenario.vms, self.scenario.settings, on_transition=self._on_transition)
        faults = Faults()
        for step in self.scenario.timeline:
            model.at(model.started_at + step.at, partial(perform, step.action, step.data, model, faults))
        return model, faults

    def reset(self) -> None:
        """Restart the scenario: forget events, faults and the request log; keep the time scale."""
        with self.lock:
            self.model, self.faults = self._begin()
            self.log.clear()
            self.lock.notify_all()

    def perform(self, action: str, data: Any) -> str | None:
        """Perform a checked action now; return the EventId if it creates an event. Raises InputError."""
        with self.lock:
            self.model.settle()
            result = perform(action, data, self.model, self.faults)
            self.model.settle()
            self.lock.notify_all()
            return result

    def advance(self, seconds: float) -> None:
        """Jump ahead by emulated seconds."""
        with self.lock:
            self.model.settle()
            self.clock.advance(seconds)
            self.model.settle()
            self.model.retime()
            self.lock.notify_all()

    def set_scale(self, scale: float) -> None:
        """Change how fast emulated time runs; 0 pauses it."""
        with self.lock:
            self.model.settle()
            self.clock.set_scale(scale)
            self.model.retime()
            self.lock.notify_all()

    def stamp(self) -> EmulatedTime:
        """Return the present moment with its real times."""
        now = self.clock.now()
        return EmulatedTime(now, self.clock.wall(now), self.clock.monotonic(now))

    def wait_until(self, moment: float) -> None:
        """Return at that moment, or when the emulation is closed."""
        with self.lock:
            while not self._closed and (left := moment - self.clock.now()) > 0:
                real = left / self.clock.scale if self.clock.scale else _LONGEST_WAIT
                self.lock.wait(min(real, _LONGEST_WAIT))

    def close(self) -> None:
        """Answer all waiting requests at once."""
        with self.lock:
            self._closed = True
            self.lock.notify_all()

    def state(self) -> dict[str, Any]:
        """Return the whole state, as ``service.json_response`` writes it. This does not switch the service on."""
        with self.lock:
            model = self.model
            model.settle()
            events = [event.as_dict(model.time) for event in model.events.values()]
            return {
                "scenario": self.scenario.name,
                "now": model.stamp(),
                "elapsed": model.time - model.started_at,
                "time_scale": self.clock.scale,
                "vms": [self._vm_state(vm, events) for vm in model.vms()],
                "events": events,
                "faults": [fault.as_dict() for fault in self.faults.present(model.time)],
                "transitions": list(model.transitions),
            }

    def _vm_state(self, vm: VmSpec, events: list[dict[str, Any]]) -> Mapping[str, Any]:
        incarnation, listing = self.model.document(vm.name)
        return {
            "name": vm.name,
            "group": None if vm.alone else vm.group,
            "fault_domain": vm.fault_domain,
            "incarnation": incarnation,
            "listed": [event.event_id for event in listing],
            "impacted_by": [
                event["event_id"] for event in events if event["impacted"] and vm.name in event["resources"]
            ],
        }
