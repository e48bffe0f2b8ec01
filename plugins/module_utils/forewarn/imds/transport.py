# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to one host over one persistent connection, limited in time and size, never through a proxy (SE-07)."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..system.clock import boot_seconds
from .errors import CONNECTION, GARBAGE, REFUSED, TIMEOUT, PassingFault

MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_OVERHEAD_BYTES = 1024 * 1024  # headers, chunk framing and trailers
POLL_SECONDS = 0.1  # between two tests whether more of an answer has arrived
# An approval is sent this soon after its document was read, or not at all: the document may be outdated by then.
FRESH_SECONDS = 1.0
AHEAD_SECONDS = 0.1  # to connect for a request that is sent ahead: the service is on the host, or absent


class ImdsRequest(NamedTuple):
    """A request: ``target`` is the path with its query, ``body`` is None for a GET."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Response(NamedTuple):
    """A complete answer. Header names are in lower case; the values of a repeated header are joined.

    ``since`` is the latest time, in seconds of the transport's clock, at which the answer was known to be incomplete.
    An answer that arrived while this process was stopped may be as old as that.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    since: float = 0.0


class _ClosedError(PassingFault):
    """The server closed the connection before it answered, for example because the connection was idle for too long."""


class _EndlessError(http.client.HTTPException):
    """The answer is larger than the limit."""


class _BoundedSocket(socket.socket):
    """A socket whose reads share one deadline and one size limit.

    So an answer that trickles in, or never ends, cannot block for ever. ``since`` is the latest time of ``clock`` at
    which the answer was known to be incomplete.
    """

    deadline = 0.0
    allowance = 0
    since = 0.0
    drained_at: float | None = None  # when all data had been read; data that is read later arrived after that
    clock: Callable[[], float] = staticmethod(boot_seconds)

    def start_answer(self, seconds: float) -> None:
        """Set the deadline and the size limit of the answer to the request that was sent."""
        self.deadline = time.monotonic() + seconds
        self.allowance = MAX_BODY_BYTES + _MAX_OVERHEAD_BYTES
        self.settimeout(seconds)

    def send_request(self, request: bytes, seconds: float, admit: Callable[[], None]) -> None:
        """Call ``admit``, and send a request, which has to be answered within ``seconds``."""
        self.settimeout(seconds)
        admit()
        self.since, self.drained_at = self.clock(), None
        self.sendall(request)
        self.start_answer(seconds)

    def recv_into(self, buffer: Any, *args: Any) -> int:
        if self.drained_at is not None:
            self.since = self.drained_at
        while True:
            remaining, before = self.deadline - time.monotonic(), self.clock()
            if remaining <= 0:
                raise socket.timeout("timed out")
            self.settimeout(min(remaining, POLL_SECONDS))
            try:
                received = super().recv_into(buffer, *args)
            except socket.timeout:
                self.since = before  # not the time now: this process may have been stopped since
                continue
            self.drained_at = before if received < len(buffer) else None
            self.allowance -= received
            if self.allowance < 0:
                raise _EndlessError
            return received

    def is_idle(self) -> bool:
        """Return whether the connection is open and has nothing to read, as it must be between two requests."""
        self.setblocking(False)
        try:
            self.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


class _Connection(http.client.HTTPConnection):
    """A connection whose answers are bounded, see ``_BoundedSocket``."""

    sock: _BoundedSocket | Any  # None while disconnected

    def __init__(self, host: str, port: int, clock: Callable[[], float]) -> None:
        super().__init__(host, port)
        self._clock = clock
        self._parts: list[bytes] = []  # of the request that ``encode`` assembles

    def encode(self, request: ImdsRequest) -> bytes:
        """Return the bytes of a request. They are sent at once, so that no part of an approval arrives late."""
        self._parts = []
        self.request(request.method, request.target, request.body, request.headers)
        return b"".join(self._parts)

    def send(self, data: Any) -> None:
        """Add a part of the request for ``encode``."""
        self._parts.append(data)

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = _BoundedSocket(fileno=plain.detach())
        self.sock.clock = self._clock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Transport:
    """Requests to one host and port, on one persistent connection. No redirect is followed.

    http.client reads no proxy settings from the environment. ``connect_timeout`` is in seconds. ``clock`` is for the
    age of answers; it goes on while this process is stopped. Not thread-safe.
    """

    fresh_seconds = FRESH_SECONDS  # the greatest age of a document when an approval of its events is sent

    def __init__(self, host: str, port: int, connect_timeout: float, clock: Callable[[], float] = boot_seconds) -> None:
        self.clock = clock
        self._where = f"{host} port {port}"
        self._connection = _Connection(host, port, clock)
        self._connect_timeout = connect_timeout
        self._sent_ahead: str | None = None  # the target of a GET that was sent ahead

    def close(self) -> None:
        """Close any connection; the next request opens another."""
        self._connection.close()
        self._sent_ahead = None

    def send_ahead(self, request: ImdsRequest, timeout: float) -> None:
        """Send a GET now; the next ``exchange`` for the same target returns its answer. Raises PassingFault.

        Connecting takes ``AHEAD_SECONDS`` at most, and the request fits into the buffer of a new connection.
        """
        opened = self._open(min(self._connect_timeout, AHEAD_SECONDS))
        try:
            opened.send_request(self._connection.encode(request), timeout, lambda: None)
        except OSError as error:
            self.close()
            raise self._fault(error, "asking", timeout) from error
        self._sent_ahead = request.target

    def exchange(self, request: ImdsRequest, timeout: float, admit: Callable[[], None]) -> Response:
        """Send a request; return the complete answer, of any status. ``timeout`` (seconds) is for both together.

        If the server has closed the persistent connection, a GET is sent once more. Other requests are sent at most
        once, since the document that they rest on may be outdated by then. ``admit`` is called right before a request
        is sent, and may raise a Fault to prevent that. Raises PassingFault.
        """
        is_sent = request.method == "GET" and self._sent_ahead == request.target  # its answer may be there already
        connection = self._connection.sock
        if not is_sent and connection is not None and (self._sent_ahead is not None or not connection.is_idle()):
            self.close()
        if request.method == "GET" and self._connection.sock is not None:
            with suppress(_ClosedError):
                return self._send(request, timeout, admit)
        return self._send(request, timeout, admit)

    def _open(self, connect_timeout: float) -> _BoundedSocket:
        if self._connection.sock is None:
            self._connection.timeout = connect_timeout
            try:
                self._connection.connect()
            except OSError as error:
                raise self._fault(error, "connecting", connect_timeout) from error
        return self._connection.sock

    def _send(self, request: ImdsRequest, timeout: float, admit: Callable[[], None]) -> Response:
        is_sent, self._sent_ahead = self._sent_ahead is not None, None
        opened = self._open(self._connect_timeout)
        complete = False
        try:
            try:
                if is_sent:
                    opened.start_answer(timeout)
                else:
                    opened.send_request(self._connection.encode(request), timeout, admit)
                response = self._connection.getresponse()
            except ConnectionError as error:
                text = f"{self._where} closed the connection without an answer."
                raise _ClosedError(text, kind=CONNECTION) from error
            with response:  # which has the socket open, too
                answer = self._read(response)._replace(since=opened.since)
            complete = True
            return answer
        except _EndlessError as error:
            raise self._garbage("is too long: it has no end") from error
        except (http.client.HTTPException, ValueError) as error:  # ValueError: a chunk has a negative size
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]  # BadStatusLine contains the line break
            raise self._garbage(f"is not HTTP, or is cut short: {text}") from error
        except OSError as error:
            raise self._fault(error, "answering", timeout) from error
        finally:
            if not complete:
                self.close()

    def _read(self, response: http.client.HTTPResponse) -> Response:
        headers: dict[str, str] = {}
        for name, value in response.getheaders():
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        declared = headers.get("content-length")
        coding = headers.get("transfer-encoding", "").lower()
        chunked = coding == "chunked"
        if response.status < 200:  # the final answer follows, and would be taken for the answer to the next request
            raise self._garbage(f"is an interim one, {response.status}")
        if coding and not chunked:
            raise self._garbage(f"has the Transfer-Encoding {coding[:40]!r}")
        length = None
        if declared is not None and not chunked:
            if not (declared.isascii() and declared.isdigit()):
                raise self._garbage(f"has the Content-Length {declared[:40]!r}")
            if len(declared) > 18 or int(declared) > MAX_BODY_BYTES:
                raise self._garbage(f"is too long: {declared[:40]} bytes announced, {MAX_BODY_BYTES} are the limit")
            length = int(declared)
        # Never without a size: http.client would allocate whatever size a chunk announces.
        body = response.read(MAX_BODY_BYTES + 1 if length is None else length)
        if len(body) > MAX_BODY_BYTES:
            raise self._garbage(f"is too long: more than {MAX_BODY_BYTES} bytes")
        if length is not None and len(body) < length:
            raise self._garbage(f"is cut short: {len(body)} of {length} bytes")
        if not body and length is None and not chunked and response.status == 200:
            # An empty document cannot be told from one that was lost. Other statuses need no body.
            raise self._garbage("ended before its body, whose length it did not announce")
        return Response(response.status, response.reason, headers, body)

    def _garbage(self, what: str) -> PassingFault:
        return PassingFault(f"the answer of {self._where} {what}.", kind=GARBAGE)

    def _fault(self, error: OSError, doing: str, timeout: float) -> PassingFault:
        if isinstance(error, (socket.timeout, TimeoutError)):
            return PassingFault(f"{self._where} took longer than {timeout:g} s {doing}.", kind=TIMEOUT)
        if isinstance(error, ConnectionRefusedError):
            return PassingFault(
                f"{self._where} refused the connection.", "Is the service (or the emulator) running?", kind=REFUSED
            )
        return PassingFault(f"{self._where}, while {doing}: {error.strerror or error}.", kind=CONNECTION)
