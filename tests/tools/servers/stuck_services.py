# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Scheduled Events service on loopback that gets stuck in every way a socket knows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any, NamedTuple

from tools.fixtures.events import listed
from tools.servers import scripted_imds
from tools.servers.scripted_imds import Answer, AnsweringServer, document, instance, status

# What it does with a request once it is stuck: it accepts and is silent; it sends the head of an answer and no body;
# it sends a byte a second; it does so for approvals alone; it does not even accept the connection.
SILENT, HEAD, DRIP, APPROVALS, REFUSES_TO_ACCEPT = "silent", "head", "drip", "approvals", "no-accept"
WAYS = (SILENT, HEAD, DRIP, REFUSES_TO_ACCEPT)
_FOR_EVER = 86_400.0


class Request(NamedTuple):
    """A request that arrived, at a moment of the monotonic clock."""

    at: float
    method: str
    target: str


class StuckService:
    """Lists ``events`` and names the VM ``web_0``, as long as ``way`` is None."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.way: str | None = None
        self.received: list[Request] = []
        self.server = AnsweringServer(self._answer)
        self.url = self.server.url
        self._incarnation = 1

    def schedule(self, event_id: str, notice_seconds: float, kind: str = "Preempt", status: str = "Scheduled") -> None:
        """List an event of web_0."""
        moment = datetime.now(timezone.utc) + timedelta(seconds=notice_seconds)
        self.events.append(
            listed(
                event_id,
                EventType=kind,
                EventStatus=status,
                Resources=["web_0"],
                NotBefore="" if status == "Started" else format_datetime(moment, usegmt=True),
                DurationInSeconds=-1,
            )
        )
        self._incarnation += 1

    def clear(self) -> None:
        """List nothing any more."""
        self.events.clear()
        self._incarnation += 1

    def get_stuck(self, way: str) -> None:
        """Answer nothing from now on, in one of ``WAYS`` or ``APPROVALS``."""
        self.way = way
        if way == REFUSES_TO_ACCEPT:
            self.server.stop_accepting()

    def requests(self, method: str, after: float = 0.0) -> Sequence[Request]:
        """Return the requests with a method that arrived after a moment."""
        return [each for each in self.received if each.method == method and each.at > after]

    def _answer(self, request: scripted_imds.Request) -> Answer:
        self.received.append(Request(time.monotonic(), request.method, request.target))
        if request.method == "POST":
            answer = status(200, b"{}")
        elif "/instance" in request.target:
            answer = instance("web_0")
        else:
            answer = document(*self.events, incarnation=self._incarnation)
        if self.way is None or (self.way == APPROVALS and request.method == "GET"):
            return answer
        head = answer.pieces[0].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        if self.way == HEAD:
            return Answer((head, b""), pause=_FOR_EVER)
        if self.way == DRIP:
            return Answer(tuple(bytes([byte]) for byte in head), pause=1.0)
        return Answer(delay=_FOR_EVER)


@contextmanager
def stuck_service() -> Iterator[StuckService]:
    """Yield a service that answers until ``get_stuck`` is called."""
    service = StuckService()
    with service.server:
        yield service
