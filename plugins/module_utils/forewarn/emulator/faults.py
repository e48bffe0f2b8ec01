# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the service and the network: the requests that they hit, and their duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError

# Faults that replace the answer before the request is processed, unless ``processed``; the others spoil it.
REFUSING = ("status", "drop", "reset")
SPOILING = ("cut_head", "cut_off", "empty", "truncated", "garbage", "wrong_json")
KINDS = ("latency", *REFUSING, *SPOILING)
REQUESTS = ("get", "post", "instance")


@dataclass
class InjectedFault:
    """One fault. ``until`` is a moment, ``left`` a number of requests; with neither it lasts until it is cleared.

    ``latency`` and ``retry_after`` are emulated seconds. ``vms`` and ``requests``: only those, None means all.
    ``processed``: the request takes effect and only its answer is lost.
    """

    kind: str
    status: int = 503
    latency: float = 0.0
    retry_after: float | None = None
    until: float | None = None
    left: int | None = None
    vms: tuple[str, ...] | None = None
    requests: tuple[str, ...] | None = None
    processed: bool = False

    def __post_init__(self) -> None:
        if self.kind == "latency" and self.latency <= 0:
            raise InputError("the fault latency needs a latency.", 'Add for example latency: "3s".')

    def hits(self, vm: str, request: str, now: float) -> bool:
        """Return whether a request is hit: ``request`` is one of REQUESTS, ``now`` the present moment."""
        if self.is_over(now):
            return False
        if self.vms is not None and vm.lower() not in (name.lower() for name in self.vms):
            return False
        return self.requests is None or request in self.requests

    def is_over(self, now: float) -> bool:
        """Return whether the fault has passed."""
        return self.left == 0 or (self.until is not None and now >= self.until)

    def as_dict(self) -> dict[str, Any]:
        """Return the fault for JSON."""
        return {name: value for name, value in self.__dict__.items() if value is not None}


class Faults:
    """All current faults."""

    def __init__(self) -> None:
        self._faults: list[InjectedFault] = []

    def add(self, fault: InjectedFault) -> None:
        """Begin a fault."""
        self._faults.append(fault)

    def clear(self) -> None:
        """End all faults."""
        self._faults.clear()

    def present(self, now: float) -> Sequence[InjectedFault]:
        """Return the faults that have not passed."""
        self._faults = [fault for fault in self._faults if not fault.is_over(now)]
        return tuple(self._faults)

    def take(self, vm: str, request: str, now: float) -> tuple[float, InjectedFault | None]:
        """Return a request's faults: the sum of latencies, and the first other fault. Both count as used once."""
        latency = 0.0
        chosen: InjectedFault | None = None
        for fault in self.present(now):
            if not fault.hits(vm, request, now) or (fault.kind != "latency" and chosen is not None):
                continue
            if fault.left is not None:
                fault.left -= 1
            if fault.kind == "latency":
                latency += fault.latency
            else:
                chosen = fault
        return latency, chosen
