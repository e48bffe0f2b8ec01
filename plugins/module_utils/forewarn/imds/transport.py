# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to one host over one kept connection: bounded in time and size, and never through a proxy (SE-07)."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .errors import CONNECTION, GARBAGE, REFUSED, TIMEOUT, PassingFault

MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_OVERHEAD_BYTES = 1024 * 1024  # headers, what frames chunks, and what may follow them
_PIECE_BYTES = 65536
BEGIN_SECONDS = 0.1  # to connect for a request that is sent ahead: the service is on the host, or it is not there


class Response(NamedTuple):
    """A whole answer. Header names are in lower case; the values of a repeated header are joined.

    ``repeated``: the request had been sent before, and may have arrived then as well.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    repeated: bool = False


class _ClosedError(Exception):
    """The server closed a kept connection before it answered: it dropped the connection for being idle."""


class _EndlessError(http.client.HTTPException):
    """More has come than any answer may have."""


class _BoundedSocket(socket.socket):
    """A socket whose reads share one deadline and one allowance, so that an answer that trickles in, or never ends,
    cannot hold us for ever.
    """

    deadline = 0.0
    allowance = 0

    def start(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.allowance = MAX_BODY_BYTES + _MAX_OVERHEAD_BYTES
        self.settimeout(seconds)

    def recv_into(self, *args: Any) -> int:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise socket.timeout("timed out")
        self.settimeout(remaining)
        received = super().recv_into(*args)
        self.allowance -= received
        if self.allowance < 0:
            raise _EndlessError
        return received

    def idle(self) -> bool:
        """Whether the connection is open with nothing to read, as one without a request under way has to be."""
        self.setblocking(False)
        try:
            self.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


class Transport:
    """Requests to one host and port. The connection is kept between them; no redirect is followed.

    http.client reads no proxy settings from the environment. Not for several threads at once.
    """

    def __init__(self, host: str, port: int, connect_timeout: float) -> None:
        self._host = host
        self._port = port
        self._connect_timeout = connect_timeout
        self._socket: _BoundedSocket | None = None
        self._begun: str | None = None  # the target of a GET that was sent ahead

    def close(self) -> None:
        """Close the connection, if there is one; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._begun = None

    def begin(self, target: str, headers: Mapping[str, str], timeout: float) -> None:
        """Send a GET whose answer the next ``exchange`` for the same target takes. Raises PassingFault.

        Connecting takes ``BEGIN_SECONDS`` at most, and what is sent fits into the buffer of a new connection.
        """
        timed = self._open(min(self._connect_timeout, BEGIN_SECONDS))
        timed.start(timeout)
        try:
            timed.sendall(self._compose("GET", target, headers, None))
        except OSError as error:
            self.close()
            raise self._fault(error, "asking", timeout) from error
        self._begun = target

    def exchange(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        admit: Callable[[], None],
    ) -> Response:
        """Send a request, return the whole answer, whatever its status. ``timeout`` (seconds) is for both together.

        When the server turns out to have dropped a kept connection, the request goes out once more on a new one; the
        answer is ``repeated`` then, the fault ``unsure``. ``admit`` is called before each sending. Raises PassingFault.
        """
        awaited = method == "GET" and self._begun == target  # its answer may be there already
        if not awaited and self._socket is not None and (self._begun is not None or not self._socket.idle()):
            self.close()
        repeated = False
        if self._socket is not None:
            try:
                return self._send(method, target, headers, body, timeout, admit)
            except _ClosedError:
                self.close()
                repeated = True
        try:
            return self._send(method, target, headers, body, timeout, admit)._replace(repeated=repeated)
        except _ClosedError as error:
            self.close()
            fault = PassingFault(f"{self._where} closed the connection without an answer.", kind=CONNECTION)
            fault.unsure = repeated
            raise fault from error.__cause__
        except PassingFault as fault:
            fault.unsure = repeated
            raise

    @property
    def _where(self) -> str:
        return f"{self._host} port {self._port}"

    def _open(self, connect_timeout: float | None = None) -> _BoundedSocket:
        timeout = self._connect_timeout if connect_timeout is None else connect_timeout
        if self._socket is None:
            try:
                # As bytes: a text would be taken through the IDNA codec, whose import costs the start 2 ms.
                address = (self._host.encode("ascii"), self._port)
                plain = socket.create_connection(address, timeout)  # type: ignore[arg-type]  # may be
            except OSError as error:
                raise self._fault(error, "connecting", timeout) from error
            self._socket = _BoundedSocket(fileno=plain.detach())
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _compose(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        """Return a request. HTTPConnection would make the same one, for a tenth of what a whole poll costs."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        if self._port != http.client.HTTP_PORT:
            host += f":{self._port}"
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join((*lines, "", "")).encode("ascii") + (body or b"")

    def _send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        admit: Callable[[], None],
    ) -> Response:
        begun, self._begun = self._begun is not None, None
        if not begun:
            admit()
        timed = self._open()
        complete = False
        response = None
        try:
            timed.start(timeout)
            try:
                if not begun:
                    timed.sendall(self._compose(method, target, headers, body))
                response = http.client.HTTPResponse(timed, method=method)
                response.begin()
            except ConnectionError as error:
                raise _ClosedError from error
            answer = self._read(response)
            complete = not response.will_close
            return answer
        except _EndlessError as error:
            raise self._garbage("is too long: it has no end") from error
        except (http.client.HTTPException, ValueError) as error:  # ValueError: of a chunk of negative size
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]  # of BadStatusLine, with its line break
            raise PassingFault(
                f"the answer of {self._where} is not HTTP, or is cut short: {said}.", kind=GARBAGE
            ) from error
        except OSError as error:
            raise self._fault(error, "answering", timeout) from error
        finally:
            if not complete:
                if response is not None:
                    response.close()  # it holds the socket, too
                self.close()

    def _read(self, response: http.client.HTTPResponse) -> Response:
        headers: dict[str, str] = {}
        for name, value in response.getheaders():
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        declared = headers.get("content-length")
        coding = headers.get("transfer-encoding", "").lower()
        chunked = coding == "chunked"
        if coding and not chunked:
            raise self._garbage(f"has the Transfer-Encoding {coding[:40]!r}")
        if declared is not None and not chunked:
            if not (declared.isascii() and declared.isdigit()):
                raise self._garbage(f"has the Content-Length {declared[:40]!r}")
            if len(declared) > 18 or int(declared) > MAX_BODY_BYTES:
                raise self._garbage(f"is too long: {declared[:40]} bytes announced, {MAX_BODY_BYTES} are the limit")
        pieces = []
        size = 0
        while True:
            piece = response.read(_PIECE_BYTES)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise self._garbage(f"is too long: more than {MAX_BODY_BYTES} bytes")
        if declared is not None and not chunked and size < int(declared):
            raise self._garbage(f"is cut short: {size} of {declared} bytes")
        if not size and declared is None and not chunked and response.status <= 200:
            # Nothing tells an empty document from one that was lost on the way. Any other status says all there is, but
            # for those below 200: they come before an answer, and the answer has not come.
            raise self._garbage("ended before its body, whose length it did not announce")
        return Response(response.status, response.reason, headers, b"".join(pieces))

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
