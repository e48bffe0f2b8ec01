# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP and HTTPS to one server over one kept connection, with every request bounded in time and size.

No request goes through a proxy unless the caller names one, no redirect is followed, and none is sent twice.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple

from ...imds.errors import CONNECTION, GARBAGE, REFUSED, TIMEOUT
from .address import Address
from .connection import MAX_BODY_BYTES, AddressConnection, TooLongError
from .store import TOO_LARGE, StoreFault
from .tls import TlsFiles, tls_fault

_MAX_IDLE_SECONDS = 60.0  # after that, a firewall on the way may have forgotten the connection


class StoreReply(NamedTuple):
    """A complete answer of any status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PersistentConnection:
    """Requests to the server of one address, through ``proxy`` if there is one. Not thread-safe."""

    def __init__(self, address: Address, files: TlsFiles, proxy: Address | None = None) -> None:
        self.where = address.where
        self._connection = AddressConnection(address, files, proxy)
        self._closed_hint = ""
        if address.secure and files.certificate_file is None:
            self._closed_hint = "It may want a client certificate; the settings of the store name none."
        self._used = 0.0
        self._fresh = True  # the connection was opened for the current request

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> StoreReply:
        """Send a request and return the complete answer. ``deadline`` is of the monotonic clock.

        Raises StoreFault, which is ``unsure`` if the request may have arrived.
        """
        started = time.monotonic()
        sent = complete = False
        try:
            self._open(deadline)
            sent = True
            self._connection.request(method, target, body, dict(headers))
            with self._connection.getresponse() as response:
                reply = _read(response)
            complete = True
            return reply
        except StoreFault:
            raise
        except TooLongError as error:
            text = f"the answer of {self.where} is longer than {MAX_BODY_BYTES} bytes."
            raise StoreFault(text, kind=TOO_LARGE, unsure=sent) from error
        except OSError as error:  # some of ssl are ValueErrors, too
            fault = self._fault(error, max(0.0, deadline - started), "answering" if sent else "connecting")
            fault.unsure = sent
            raise fault from error
        except (http.client.HTTPException, ValueError) as error:  # ValueError: a chunk has a negative size
            text = f"the answer of {self.where} is not HTTP, or is cut short ({type(error).__name__})."
            raise StoreFault(text, kind=GARBAGE, unsure=sent) from error
        finally:
            self._used = time.monotonic()
            if not complete:
                self.close()

    def _open(self, deadline: float) -> None:
        """Connect, unless the kept connection can still be used. Raises OSError or StoreFault."""
        sock = self._connection.sock
        if sock is not None and not (time.monotonic() - self._used < _MAX_IDLE_SECONDS and _is_silent(sock)):
            self.close()
        self._connection.deadline = deadline
        self._fresh = self._connection.sock is None
        if self._fresh:
            self._connection.connect()
        self._connection.sock.begin(deadline)

    def _fault(self, error: OSError, seconds: float, doing: str) -> StoreFault:
        if isinstance(error, (socket.timeout, TimeoutError)):
            return StoreFault(f"{self.where} took longer than {seconds:.1f} s {doing}.", kind=TIMEOUT)
        if isinstance(error, ConnectionRefusedError):
            return StoreFault(f"{self.where} refused the connection.", kind=REFUSED)
        if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)):
            text = f"{self.where} closed the connection while {doing}."
            return StoreFault(text, self._closed_hint if self._fresh else "", kind=CONNECTION)
        if isinstance(error, ssl.SSLError):
            return tls_fault(error, self.where)
        if isinstance(error, socket.gaierror):
            text = f"the address of {self.where} could not be looked up: {error.strerror}."
            return StoreFault(text, kind=CONNECTION)
        return StoreFault(f"{self.where}, while {doing}: {error.strerror or error}.", kind=CONNECTION)


def _is_silent(sock: socket.socket) -> bool:
    """Return whether a connection is open with nothing to read, as it must be while no request is in flight."""
    sock.setblocking(False)
    try:
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # below TLS, which knows no peeking
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _read(response: http.client.HTTPResponse) -> StoreReply:
    """Return an answer, whose length is known: otherwise, the rest of a value could be missing unnoticed."""
    announced = response.length
    if response.status < 200:  # it precedes the answer, which would pass for that to the next request
        raise http.client.HTTPException("interim")
    if announced is None and not response.chunked:
        raise http.client.HTTPException("no length")
    if announced is not None and announced > MAX_BODY_BYTES:
        raise TooLongError
    # Never without a size: http.client would allocate whatever size a chunk announces.
    body = response.read(MAX_BODY_BYTES + 1 if announced is None else announced)
    if len(body) > MAX_BODY_BYTES:
        raise TooLongError
    if announced is not None and len(body) < announced:
        raise http.client.IncompleteRead(body)
    return StoreReply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
