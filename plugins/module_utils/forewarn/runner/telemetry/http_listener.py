# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small HTTP server for metrics and probes, in a thread of its own, which no client can delay.

One thread serves all connections side by side and waits for none of them; each has ``patience_seconds`` in all, and
where there are too many, the oldest makes room. Between two rounds the thread sleeps, so that not even a flood takes
the processor from the runner.

Not ``http.server``: it serves one connection after another or starts a thread for each, without a limit. Its timeouts
count from one byte to the next, so that a client that drips stays for as long as it likes. Out of file descriptors, it
tries again without a pause.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InputError
from ...system.signals import block_signals

if TYPE_CHECKING:
    import selectors
    import threading

MOST_CONNECTIONS = 64
_AT_ONCE = 16  # new connections in a round
_PAUSE_SECONDS = 0.005  # between two rounds
_IDLE_SECONDS = 1.0
_READABLE, _WRITABLE = 1, 2  # of selectors: the module is imported by who listens only
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (\S{1,2048}) HTTP/1\.[01]\r?\n")
_ADDRESS = re.compile(r"([^\[\]:]+|\[[^\[\]]+\]):([0-9]{1,5})")


class HttpAnswer(NamedTuple):
    """A status, a body, and the media type of the body."""

    status: int
    body: bytes
    media_type: str = "text/plain"


_MALFORMED = HttpAnswer(400, b"malformed\n")
_UNKNOWN = HttpAnswer(404, b"unknown\n")
_UNSUPPORTED = HttpAnswer(405, b"unsupported\n")
_OVERSIZED = HttpAnswer(431, b"oversized\n")


class ListenAddress(NamedTuple):
    """Where to listen. ``host`` is an address without brackets."""

    family: socket.AddressFamily
    host: str
    port: int


class _ClientConnection:
    """``head`` is the received part of the request, None once it is answered; ``unsent`` the rest of the answer."""

    def __init__(self, connected: socket.socket, patience_seconds: float) -> None:
        self.socket = connected
        self.deadline = time.monotonic() + patience_seconds
        self.head: bytes | None = b""
        self.unsent = memoryview(b"")


class HttpListener:
    """Answers GET and HEAD of the paths of ``routes`` with what the functions return, on one connection each.

    The functions are called in the listener's own thread and must not wait for anything. ``address`` is how the user
    wrote ``place``.
    """

    purpose: str  # what it serves, for people
    option: str  # the command line option for the address
    patience_seconds = 2.0  # for the request, the answer, and the client's close together
    longest_head = 4096  # bytes

    def __init__(self, address: str, place: ListenAddress, routes: Mapping[bytes, Callable[[], HttpAnswer]]) -> None:
        self.address = address
        self._place = place
        self._routes = routes
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._connections: dict[int, _ClientConnection] = {}  # by descriptor, the oldest first

    def start(self) -> None:
        """Listen, and answer from now on. Raises InputError where it cannot listen."""
        import threading  # only here: a runner without listener and hooks has no threads

        family, host, port = self._place
        dual = host == "::" and socket.has_dualstack_ipv6()
        try:
            listener = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS, dualstack_ipv6=dual)
        except OSError as error:
            raise InputError(
                f"Cannot listen on {self.address} for {self.purpose}: {os.strerror(error.errno or 0)}.",
                f"Give {self.option} another port, from 1024 on, or see who has it: ss -ltnp 'sport = :{port}'.",
            ) from error
        listener.setblocking(False)
        self._place = self._place._replace(port=listener.getsockname()[1])
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, args=(listener,), name=self.purpose, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port: the one that was given, or for 0, once started, the one that was free."""
        return self._place.port

    def close(self) -> None:
        """Stop listening, and abort the connections."""
        if self._listener is None or self._thread is None:
            return
        self._closing = True
        with suppress(OSError):  # wakes the thread, where the system does so; otherwise it looks once a second
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * _IDLE_SECONDS)
        self._listener.close()
        self._listener = self._thread = None

    # In the thread

    def _serve(self, listener: socket.socket) -> None:
        import selectors

        # Signals are for the main thread: its system calls have to be interrupted.
        block_signals()
        with selectors.DefaultSelector() as selector:
            selector.register(listener, _READABLE)
            while not self._closing:
                for key, _events in selector.select(self._until_next_deadline()):
                    if key.fileobj is listener:
                        self._accept(listener, selector)
                    elif key.fd in self._connections:  # else it has just made room
                        connection = self._connections[key.fd]
                        (self._send if connection.unsent else self._read)(connection, selector)
                self._drop_late(selector)
                time.sleep(_PAUSE_SECONDS)  # what a flood of requests may cost the machine stays small
            for connection in list(self._connections.values()):
                self._drop(connection, selector)

    def _until_next_deadline(self) -> float:
        oldest = next(iter(self._connections.values()), None)
        return _IDLE_SECONDS if oldest is None else max(0.0, oldest.deadline - time.monotonic())

    def _drop_late(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for connection in [each for each in self._connections.values() if each.deadline <= now]:
            self._drop(connection, selector)

    def _accept(self, listener: socket.socket, selector: selectors.BaseSelector) -> None:
        for _number in range(_AT_ONCE):
            try:
                connected = listener.accept()[0]
            except (BlockingIOError, ConnectionError):
                return
            except OSError:
                if not self._closing:
                    time.sleep(_IDLE_SECONDS)  # out of descriptors, say: without a pause this would take a processor
                return
            if len(self._connections) >= MOST_CONNECTIONS:
                self._drop(next(iter(self._connections.values())), selector)
            connected.setblocking(False)
            connection = self._connections[connected.fileno()] = _ClientConnection(connected, self.patience_seconds)
            selector.register(connected, _READABLE)
            self._read(connection, selector)  # what has come already is answered before anything makes it give way

    def _read(self, connection: _ClientConnection, selector: selectors.BaseSelector) -> None:
        try:
            part = connection.socket.recv(self.longest_head)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self._drop(connection, selector)
        elif connection.head is not None:  # else it is answered, and what the client still sends is of no interest
            connection.head += part
            ended = b"\r\n\r\n" in connection.head or b"\n\n" in connection.head
            if ended or len(connection.head) >= self.longest_head:
                answer = self._answer(connection.head) if ended else _OVERSIZED
                connection.unsent = memoryview(_bytes_of(answer, connection.head.startswith(b"HEAD ")))
                connection.head = None
                self._send(connection, selector)

    def _answer(self, head: bytes) -> HttpAnswer:
        match = _REQUEST_LINE.match(head)
        if match is None:
            return _MALFORMED
        route = self._routes.get(match.group(2).partition(b"?")[0])
        if route is None:
            return _UNKNOWN
        if match.group(1) not in (b"GET", b"HEAD"):
            return _UNSUPPORTED
        try:
            return route()
        except Exception as error:  # a defect: the client learns of it, and the thread goes on
            return self.failed(error)

    def failed(self, _error: Exception) -> HttpAnswer:
        """Return the answer to a request whose function raised an exception."""
        return HttpAnswer(500, b"error\n")

    def _send(self, connection: _ClientConnection, selector: selectors.BaseSelector) -> None:
        """Send what the system has room for. At the end, take what else comes until the client closes: closing first
        could take the answer back.
        """
        try:
            with suppress(BlockingIOError):
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
            if not connection.unsent:
                connection.socket.shutdown(socket.SHUT_WR)
            selector.modify(connection.socket, _WRITABLE if connection.unsent else _READABLE)
        except OSError:
            self._drop(connection, selector)

    def _drop(self, connection: _ClientConnection, selector: selectors.BaseSelector) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        with suppress(KeyError, ValueError):
            selector.unregister(connection.socket)
        connection.socket.close()


def _bytes_of(answer: HttpAnswer, without_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.media_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "Connection: close",
        *(["Allow: GET, HEAD"] if answer.status == 405 else []),
    ]
    head = "\r\n".join([*lines, "", ""]).encode("ascii")
    return head if without_body else head + answer.body


def parse_place(address: str, hint: str) -> ListenAddress:
    """Parse HOST:PORT, the host an address, in brackets for IPv6, or localhost. Raises InputError, with ``hint``."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match.group(2)) > 65535:
        raise InputError(f"{address!r} is not ADDRESS:PORT.", hint)
    host = "127.0.0.1" if match.group(1) == "localhost" else match.group(1)
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    host = host.strip("[]")
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        raise InputError(f"{address!r} is not ADDRESS:PORT.", hint) from None
    return ListenAddress(family, host, int(match.group(2)))
