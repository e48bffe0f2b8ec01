# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests over a connection to a store's server, for the tests of both."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.https import PersistentConnection, StoreReply
from forewarn.runner.groups.store import StoreFault
from forewarn.runner.groups.tls import TlsFiles


def ask(connection: PersistentConnection, seconds: float = 5.0, body: bytes | None = b"{}") -> StoreReply:
    """Send a request."""
    return connection.exchange("POST", "/x", {"X-One": "1"}, body, time.monotonic() + seconds)


def fault_of(connection: PersistentConnection, seconds: float = 5.0) -> StoreFault:
    """Return the fault of a request, and close the connection."""
    with closing(connection), pytest.raises(StoreFault) as caught:
        ask(connection, seconds)
    return caught.value


def to(port: int, files: TlsFiles | None = None, host: str = "127.0.0.1") -> PersistentConnection:
    """Return a connection to a port of this machine, encrypted where there are files."""
    return PersistentConnection(Address(host, port, files is not None, ""), files or TlsFiles())
