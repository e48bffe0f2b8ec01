# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A listener on loopback for whoever scrapes the metrics or asks whether the runner is well.

One thread serves one request after another, each on a connection of its own and within ``PATIENCE_SECONDS``, so a slow
client makes others wait for that long, and the runner not at all. Not ``http.server``: its imports cost 1.4 MiB, and
its timeouts count from one byte to the next, so that a client that drips would hold the thread for as long as it likes.
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
from .metrics import CONTENT_TYPE

if TYPE_CHECKING:
    import threading

PATIENCE_SECONDS = 5.0  # for a request to come, and its answer to be taken
CLOSE_SECONDS = 0.1  # the runner stops: whoever asks may ask the next one
_LONGEST_HEAD = 8192  # bytes
_BACKLOG = 8  # connections that wait for their turn; further ones are refused, or wait in the client
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (\S{1,2048}) HTTP/1\.[01]\r?\n")
_ADDRESS = re.compile(r"([^\[\]:]+|\[[^\[\]]+\]):([0-9]{1,5})")
_PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class MetricsServer:
    """Answers GET and HEAD of ``/metrics`` with what ``render`` returns, and of ``/healthz`` with what ``healthy``
    does: 200 or 503, and its sentence.

    Both are called in the listener's own thread. ``address`` is HOST:PORT, with a loopback host: 127.0.0.1, [::1] or
    localhost. Raises InputError for any other.
    """

    def __init__(self, address: str, render: Callable[[], str], healthy: Callable[[], tuple[bool, str]]) -> None:
        self.address = address
        self._family, self._host, self._port = _parse(address)
        self._render = render
        self._healthy = healthy
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def start(self) -> None:
        """Listen, and answer from now on. Raises InputError where it cannot listen."""
        import threading  # only here: a runner without listener and hooks has no threads

        try:
            listener = socket.create_server((self._host, self._port), family=self._family, backlog=_BACKLOG)
        except OSError as error:
            raise InputError(
                f"Cannot listen on {self.address} for metrics: {os.strerror(error.errno or 0)}.",
                f"Give --metrics-listen another port, or see who has this one: ss -ltnp 'sport = :{self._port}'.",
            ) from error
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port: the one that was given, or for 0, once started, the one that was free."""
        return self._port

    def close(self) -> None:
        """Listen no more. A request that is under way is not waited for longer than ``CLOSE_SECONDS``."""
        if self._listener is None or self._thread is None:
            return
        self._closing = True
        with suppress(OSError):  # a system that does not know this for a listener ends accept() at the close
            self._listener.shutdown(socket.SHUT_RDWR)  # on Linux, close() would leave the other thread waiting
        self._thread.join(CLOSE_SECONDS)
        self._listener.close()
        self._listener = self._thread = None

    def _serve(self, listener: socket.socket) -> None:
        # Signals are for the main thread: its system calls have to be interrupted.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._closing:
            try:
                connection = listener.accept()[0]
            except OSError:
                if not self._closing:
                    time.sleep(1.0)  # out of descriptors, say: without a pause this would take the whole processor
                continue
            with connection, suppress(OSError):  # a client that is gone, or too slow
                self._handle(connection, time.monotonic() + PATIENCE_SECONDS)

    def _handle(self, connection: socket.socket, deadline: float) -> None:
        head = _read_head(connection, deadline)
        if head is None:
            return
        code, body, media_type, further = self._answer(head)
        content = body.encode("utf-8", "replace")
        lines = [
            f"HTTP/1.1 {code} {_PHRASES[code]}",
            f"Content-Type: {media_type}",
            f"Content-Length: {len(content)}",
            "Connection: close",
            *further,
        ]
        answer = "\r\n".join([*lines, "", ""]).encode("ascii")
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        connection.sendall(answer if head.startswith(b"HEAD ") else answer + content)

    def _answer(self, head: bytes) -> tuple[int, str, str, tuple[str, ...]]:
        """Return status, body, media type and further header lines."""
        plain = "text/plain; charset=utf-8"
        match = _REQUEST_LINE.match(head)
        if match is None:
            return 400, "This is not an HTTP request.\n", plain, ()
        method, target = match.groups()
        path = target.partition(b"?")[0]
        if path not in (b"/metrics", b"/healthz"):
            return 404, "There are /metrics and /healthz.\n", plain, ()
        if method not in (b"GET", b"HEAD"):
            return 405, "Only GET and HEAD.\n", plain, ("Allow: GET, HEAD",)
        try:
            if path == b"/metrics":
                return 200, self._render(), CONTENT_TYPE, ()
            well, reason = self._healthy()
        except Exception as error:  # a defect: the one who asks learns of it, and the thread lives on
            return 500, f"{type(error).__name__}: {error}\n", plain, ()
        return (200, f"ok: {reason}\n", plain, ()) if well else (503, f"{reason}\n", plain, ())


def _read_head(connection: socket.socket, deadline: float) -> bytes | None:
    """Return the request up to the blank line; None if it ends before. Raises OSError when it takes too long."""
    head = b""
    while b"\r\n\r\n" not in head and b"\n\n" not in head:
        left = deadline - time.monotonic()
        if left <= 0 or len(head) > _LONGEST_HEAD:
            return None
        connection.settimeout(left)
        part = connection.recv(4096)
        if not part:
            return None
        head += part
    return head


def _parse(address: str) -> tuple[socket.AddressFamily, str, int]:
    """Return family, host and port. Raises InputError unless it is a loopback address."""
    hint = "Write 127.0.0.1:9750, say. Only this machine may ask; for others run node_exporter or a proxy."
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match.group(2)) > 65535:
        raise InputError(f"{address!r} is not HOST:PORT.", hint)
    host, port = match.group(1), int(match.group(2))
    if host == "localhost":
        host = "127.0.0.1"
    with suppress(OSError, ValueError):  # not an address at all
        if host.startswith("["):
            if socket.inet_pton(socket.AF_INET6, host[1:-1]) == bytes(15) + b"\1":
                return socket.AF_INET6, host[1:-1], port
        elif socket.inet_pton(socket.AF_INET, host)[0] == 127:
            return socket.AF_INET, host, port
    raise InputError(f"{address!r} is not a loopback address.", hint)
