# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports, and a listener of the runner with what it answers over a socket."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing

from forewarn.runner.telemetry.http_listener import HttpListener

TIMEOUT = 20.0  # only a defect takes so long


def free_port() -> int:
    """Return a port of loopback at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class ListenerClient:
    """Starts a listener and asks it. It ends with ``server.close()``."""

    def __init__(self, server: HttpListener) -> None:
        self.server = server
        server.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=TIMEOUT)

    def raw(self, request: bytes) -> bytes:
        """Return all of the answer, until the listener has ended it."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer

    def ask(self, path: str, method: str = "GET", host: str = "127.0.0.1") -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection(host, self.server.port, timeout=TIMEOUT)
        with closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers
