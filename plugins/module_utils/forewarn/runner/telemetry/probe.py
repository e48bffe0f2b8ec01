# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A listener for load balancers, on any address: ``/healthz`` and ``/readyz``, a status and a word, and nothing else.

Anybody may connect, so nobody may hinder: one thread serves all connections side by side and waits for none of them;
each has ``PATIENCE_SECONDS`` in all, and where there are too many, the oldest makes room. Between two rounds the thread
sleeps, so that not even a flood takes the processor from the runner.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import InputError

if TYPE_CHECKING:
    import selectors
    import threading

PATIENCE_SECONDS = 2.0  # for a request to come, its answer to be taken, and the client to close
MOST_CONNECTIONS = 64
LONGEST_HEAD = 4096  # bytes
_AT_ONCE = 16  # new connections in a round
_PAUSE_SECONDS = 0.005  # between two rounds
_IDLE_SECONDS = 1.0
_READABLE = 1  # selectors.EVENT_READ: the module is imported by who listens only
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (\S{1,2048}) HTTP/1\.[01]\r?\n")
_ADDRESS = re.compile(r"([^\[\]:]+|\[[^\[\]]+\]):([0-9]{1,5})")
_ANSWERS = {
    200: ("OK", b"ok\n"),
    400: ("Bad Request", b"malformed\n"),
    404: ("Not Found", b"unknown\n"),
    405: ("Method Not Allowed", b"unsupported\n"),
    431: ("Request Header Fields Too Large", b"oversized\n"),
    500: ("Internal Server Error", b"error\n"),
    503: ("Service Unavailable", b"unavailable\n"),
}


class _Connection:
    """``head`` is what came of the request, None once it is answered."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.deadline = time.monotonic() + PATIENCE_SECONDS
        self.head: bytes | None = b""


class ProbeServer:
    """Answers GET and HEAD of ``/healthz`` and ``/readyz`` with 200, or with 503 where ``alive`` or ``ready`` says no.

    Both are called in the listener's own thread and must not wait for anything. ``address`` is HOST:PORT, the host an
    address of this machine, 0.0.0.0 or [::] for all, or localhost. Raises InputError for anything else.
    """

    def __init__(self, address: str, alive: Callable[[], bool], ready: Callable[[], bool]) -> None:
        self.address = address
        self._family, self._host, self._port = _parse(address)
        self._questions = {b"/healthz": alive, b"/readyz": ready}
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._connections: dict[int, _Connection] = {}  # by descriptor, the oldest first

    def start(self) -> None:
        """Listen, and answer from now on. Raises InputError where it cannot listen."""
        import threading  # only here: a runner without listener and hooks has no threads

        dual = self._host == "::" and socket.has_dualstack_ipv6()
        try:
            listener = socket.create_server(
                (self._host, self._port), family=self._family, backlog=MOST_CONNECTIONS, dualstack_ipv6=dual
            )
        except OSError as error:
            raise InputError(
                f"Cannot listen on {self.address} for probes: {os.strerror(error.errno or 0)}.",
                f"Give --probe-listen another port, from 1024 on, or see who has it: ss -ltnp 'sport = :{self._port}'.",
            ) from error
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="probe", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port: the one that was given, or for 0, once started, the one that was free."""
        return self._port

    def close(self) -> None:
        """Listen no more, and break off what is under way."""
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
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with selectors.DefaultSelector() as selector:
            selector.register(listener, _READABLE)
            while not self._closing:
                for key, _events in selector.select(self._until_next_deadline()):
                    if key.fileobj is listener:
                        self._accept(listener, selector)
                    elif key.fd in self._connections:  # else it has just made room
                        self._read(self._connections[key.fd], selector)
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
            connection = self._connections[connected.fileno()] = _Connection(connected)
            selector.register(connected, _READABLE)
            self._read(connection, selector)  # what has come already is answered before anything makes it give way

    def _read(self, connection: _Connection, selector: selectors.BaseSelector) -> None:
        try:
            part = connection.socket.recv(LONGEST_HEAD)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self._drop(connection, selector)
        elif connection.head is not None:  # else it is answered, and what the client still sends is of no interest
            connection.head += part
            ended = b"\r\n\r\n" in connection.head or b"\n\n" in connection.head
            if ended or len(connection.head) >= LONGEST_HEAD:
                code = self._code(connection.head) if ended else 431
                self._answer(connection, code, selector)

    def _code(self, head: bytes) -> int:
        match = _REQUEST_LINE.match(head)
        if match is None:
            return 400
        question = self._questions.get(match.group(2).partition(b"?")[0])
        if question is None:
            return 404
        if match.group(1) not in (b"GET", b"HEAD"):
            return 405
        try:
            return 200 if question() else 503
        except Exception:  # a defect: the one who asks learns of it, and the thread lives on
            return 500

    def _answer(self, connection: _Connection, code: int, selector: selectors.BaseSelector) -> None:
        """Answer, and take what else comes until the client closes: closing first could take the answer back."""
        phrase, body = _ANSWERS[code]
        lines = [
            f"HTTP/1.1 {code} {phrase}",
            "Content-Type: text/plain",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
            *(["Allow: GET, HEAD"] if code == 405 else []),
        ]
        head = "\r\n".join([*lines, "", ""]).encode("ascii")
        without_body = connection.head is not None and connection.head.startswith(b"HEAD ")
        connection.head = None
        try:
            connection.socket.send(head if without_body else head + body)  # a new socket's buffer has room for it
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(connection, selector)

    def _drop(self, connection: _Connection, selector: selectors.BaseSelector) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        with suppress(KeyError, ValueError):
            selector.unregister(connection.socket)
        connection.socket.close()


def _parse(address: str) -> tuple[socket.AddressFamily, str, int]:
    """Return family, host and port. Raises InputError unless it is an address and a port."""
    hint = "Write 0.0.0.0:9780 or [::]:9780, say, or the address of one interface."
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match.group(2)) > 65535:
        raise InputError(f"{address!r} is not ADDRESS:PORT.", hint)
    host, port = match.group(1), int(match.group(2))
    if host == "localhost":
        host = "127.0.0.1"
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    host = host.strip("[]")
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        raise InputError(f"{address!r} is not ADDRESS:PORT.", hint) from None
    return family, host, port
