# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sockets with a deadline and a limit for what they receive, with TLS or without, and connections over them."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from typing import Any

from .address import Address
from .dns_lookup import Lookup
from .tls import TlsFiles

MAX_BODY_BYTES = 1024 * 1024
_MAX_HEAD_BYTES = 256 * 1024  # headers, chunk framing and trailers


def remaining(deadline: float) -> float:
    """Return the seconds until a moment of the monotonic clock. Raises socket.timeout if it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout("timed out")
    return left


class TooLongError(http.client.HTTPException):
    """The answer is larger than the limit."""


class _TimedSocket(socket.socket):
    """A socket with one deadline for everything that is sent and received, and one limit for all bytes received."""

    deadline = 0.0
    allowance = 0

    def begin(self, deadline: float) -> None:
        """Set the deadline of the next exchange, of the monotonic clock, and its limit."""
        self.deadline = deadline
        self.allowance = MAX_BODY_BYTES + _MAX_HEAD_BYTES

    def send(self, *args: Any) -> int:
        self.settimeout(remaining(self.deadline))
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        self.settimeout(remaining(self.deadline))
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(remaining(self.deadline))
        received = super().recv_into(*args)
        self.allowance -= received
        if self.allowance < 0:
            raise TooLongError
        return received


class _TimedTlsSocket(_TimedSocket, ssl.SSLSocket):
    """The same, encrypted."""


class AddressConnection(http.client.HTTPConnection):
    """A connection to an address, encrypted where that is. In the runner, http.client has no HTTPSConnection.

    With a ``proxy`` it is a tunnel through that (RFC 9110, 9.3.6): the proxy sees names, and no content.
    """

    sock: _TimedSocket | Any  # None while disconnected

    def __init__(self, address: Address, files: TlsFiles, proxy: Address | None = None) -> None:
        first = proxy or address
        super().__init__(first.host, first.port)
        self.deadline = 0.0
        self._files = files if address.secure else None
        self._lookup = Lookup(first.host, first.port)
        self._server = address.host
        if proxy is not None:
            self.set_tunnel(address.host, address.port)

    def connect(self) -> None:
        found = self._lookup.addresses(remaining(self.deadline) / 2)
        for left in range(len(found), 0, -1):
            family, address = found[len(found) - left]
            try:
                self.sock = self._connected(family, address, remaining(self.deadline) / left)
                return
            except OSError:
                if left == 1:
                    raise

    def _connected(self, family: int, address: Any, seconds: float) -> _TimedSocket:
        plain = _TimedSocket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(seconds)
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tunnel_host:  # type: ignore[attr-defined]  # http.client's own, as the next one
                self.sock = plain
                plain.begin(self.deadline)
                self._tunnel()  # type: ignore[attr-defined]  # likewise
            if self._files is None:
                return plain
            context = self._files.context()
            context.sslsocket_class = _TimedTlsSocket
            plain.settimeout(remaining(self.deadline))
            return context.wrap_socket(plain, server_hostname=self._server)  # type: ignore[return-value]  # of that class
        except BaseException:  # whatever it is, the socket must not stay open
            plain.close()
            raise
