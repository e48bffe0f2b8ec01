# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to one host over one kept connection: never through a proxy (SE-07), no redirect followed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from .errors import CONNECTION, GARBAGE, REFUSED, TIMEOUT, PassingFault
from .wire import AnswerError, ClosedError, Response, Wire


class Transport:
    """Requests to one host and port. The connection is kept between them. Not for several threads at once."""

    def __init__(self, host: str, port: int, connect_timeout: float) -> None:
        self._host = host
        self._port = port
        self._connect_timeout = connect_timeout
        self._wire: Wire | None = None

    def close(self) -> None:
        """Close the connection, if there is one; the next request opens another."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

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

        When the server turns out to have dropped a kept connection, the request goes out once more on a new one.
        That is safe for an approval too (SE-31). ``admit`` is called before each sending. Raises PassingFault.
        """
        request = self._request(method, target, headers, body)
        if self._wire is not None and not self._wire.idle():
            self.close()
        kept = self._wire is not None
        admit()
        try:
            return self._send(request, timeout)
        except ClosedError as error:
            if not kept:
                raise self._unanswered() from error
        admit()
        try:
            return self._send(request, timeout)
        except ClosedError as error:
            raise self._unanswered() from error

    @property
    def _where(self) -> str:
        return f"{self._host} port {self._port}"

    def _request(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        lines = {"Host": host if self._port == 80 else f"{host}:{self._port}", **headers}
        if body is not None:
            lines["Content-Length"] = str(len(body))
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return head.encode("ascii") + b"\r\n" + (body or b"")

    def _send(self, request: bytes, timeout: float) -> Response:
        wire = self._wire = self._wire or self._open()
        complete = False
        try:
            response = wire.exchange(request, timeout)
            complete = wire.usable
            return response
        except AnswerError as error:
            raise PassingFault(f"the answer of {self._where} {error}.", kind=GARBAGE) from error
        except OSError as error:
            raise self._fault(error, "answering", timeout) from error
        finally:
            if not complete:
                self.close()

    def _open(self) -> Wire:
        try:
            connection = socket.create_connection((self._host, self._port), self._connect_timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise self._fault(error, "connecting", self._connect_timeout) from error
        return Wire(connection)

    def _unanswered(self) -> PassingFault:
        return PassingFault(f"{self._where} closed the connection without an answer.", kind=CONNECTION)

    def _fault(self, error: OSError, doing: str, timeout: float) -> PassingFault:
        if isinstance(error, (socket.timeout, TimeoutError)):
            return PassingFault(f"{self._where} took longer than {timeout:g} s {doing}.", kind=TIMEOUT)
        if isinstance(error, ConnectionRefusedError):
            return PassingFault(
                f"{self._where} refused the connection.", "Is the service (or the emulator) running?", kind=REFUSED
            )
        return PassingFault(f"{self._where}, while {doing}: {error.strerror or error}.", kind=CONNECTION)
