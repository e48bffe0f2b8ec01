# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Scheduled Events service on loopback that gets stuck in every way a socket knows."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any, NamedTuple

from tools.fixtures.events import listed

# What it does with a request once it is stuck: it accepts and is silent; it sends the head of an answer and no body;
# it sends a byte a second; it does so for approvals alone; it does not even accept the connection.
SILENT, HEAD, DRIP, APPROVALS, REFUSES_TO_ACCEPT = "silent", "head", "drip", "approvals", "no-accept"
WAYS = (SILENT, HEAD, DRIP, REFUSES_TO_ACCEPT)


class Request(NamedTuple):
    """A request that arrived, at a moment of the monotonic clock."""

    at: float
    method: str
    target: str


class StuckService:
    """Lists ``events`` and names the VM ``web_0``, as long as ``way`` is None. To be entered."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.way: str | None = None
        self.received: list[Request] = []
        self._incarnation = 1
        self._end = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._crowd: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> StuckService:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the acceptor, as closing would not
        self._acceptor.join()
        for each in (*self._crowd, self._listener):
            each.close()

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
            self._fill_the_backlog()

    def requests(self, method: str, after: float = 0.0) -> Sequence[Request]:
        """Return the requests with a method that arrived after a moment."""
        return [each for each in self.received if each.method == method and each.at > after]

    def _fill_the_backlog(self) -> None:
        """Fill the kernel's queue of connections, so that connecting takes until the client gives up."""
        time.sleep(0.1)  # the acceptor waits for one more, which it keeps
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(self._listener.getsockname())
            self._crowd.append(one)

    def _accept(self) -> None:
        while not self._end.is_set():
            if self.way == REFUSES_TO_ACCEPT:
                self._end.wait()
                return
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError), connection.makefile("rb") as stream:
            while request := _read_request(stream):
                self.received.append(Request(time.monotonic(), *request))
                self._answer(connection, *request)

    def _answer(self, connection: socket.socket, method: str, target: str) -> None:
        way = self.way
        body = b"{}"
        if method == "GET" and "/instance" in target:
            body = json.dumps({"compute": {"name": "web_0"}}).encode()
        elif method == "GET":
            body = json.dumps({"DocumentIncarnation": self._incarnation, "Events": self.events}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        if way is None or (way == APPROVALS and method == "GET"):
            connection.sendall(head + body)
        elif way == HEAD:
            connection.sendall(head)
            self._end.wait()
        elif way == DRIP:
            for number in range(len(head)):
                connection.sendall(head[number : number + 1])
                if self._end.wait(1.0):
                    return
        else:
            self._end.wait()


def _read_request(stream: Any) -> tuple[str, str] | None:
    line = stream.readline().decode()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    length = 0
    while header := stream.readline().decode().strip():
        name, _, value = header.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    stream.read(length)
    return method, target


@contextmanager
def stuck_service() -> Iterator[StuckService]:
    """Yield a service that answers until ``get_stuck`` is called."""
    with StuckService() as service:
        yield service
