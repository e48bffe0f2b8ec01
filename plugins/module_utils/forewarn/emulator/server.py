# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator's sockets: HTTP/1.1 with keep-alive, a thread for each connection."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

from ..errors import InputError, ServiceError
from .allowed_hosts import AllowedHosts
from .clock import Clock
from .control import PREFIX, Control
from .emulation import Emulation, Scenario
from .lifecycle import Transition
from .request_body import BodyError, read_body
from .requestlog import LoggedRequest
from .service import HttpRequest, HttpResponse, Service, json_response
from .spec import Settings, VmSpec

_IDLE = 120.0  # seconds after which a silent connection is closed
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing a connection resets it


class EmulatorServer:
    """Serves a scenario on a loopback port: ``with EmulatorServer(scenario) as server: … server.url``.

    ``vms`` (names, or VmSpec) and ``settings`` replace those of the scenario. ``port`` 0 takes any free one.
    ``listeners``: VM name -> (host, port) of a further socket; each request to it counts as that VM's. ``clock``
    replaces the one that ``time_scale`` makes. ``allowed_hosts``: names and addresses by which the control API may
    be addressed, besides those of loopback and those it listens on. ``on_transition`` and ``on_answer`` are called
    under the emulation's lock, by several threads. Raises ServiceError if a socket cannot be opened, InputError for
    bad names.
    """

    def __init__(
        self,
        scenario: Scenario | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        vms: Sequence[str | VmSpec] | None = None,
        settings: Settings | None = None,
        time_scale: float = 1.0,
        clock: Clock | None = None,
        listeners: Mapping[str, tuple[str, int]] | None = None,
        allowed_hosts: Sequence[str] = (),
        on_transition: Callable[[Transition], None] | None = None,
        on_answer: Callable[[LoggedRequest], None] | None = None,
    ) -> None:
        scenario = scenario or Scenario()
        if vms is not None:
            scenario = replace(scenario, vms=tuple(VmSpec(vm) if isinstance(vm, str) else vm for vm in vms))
        if settings is not None:
            scenario = replace(scenario, settings=settings)
        self.emulation = Emulation(scenario, clock or Clock(time_scale), on_transition, on_answer)
        listened_on = [host, *(vm_host for vm_host, _port in (listeners or {}).values())]
        service = Service(self.emulation)
        control = Control(self.emulation, AllowedHosts([*listened_on, *allowed_hosts]))
        self._sockets: list[_Socket] = []
        self._threads: list[threading.Thread] = []
        self._own: dict[str, _Socket] = {}
        try:
            self._sockets.append(_Socket(host, port, service, control, None))
            for name, (vm_host, vm_port) in (listeners or {}).items():
                own = _Socket(vm_host, vm_port, service, control, self.emulation.model.vm(name).name)
                self._sockets.append(own)
                self._own[name.lower()] = own
        except BaseException:  # also Ctrl-C: no port stays taken
            for opened in self._sockets:
                opened.server_close()
            raise

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end; the default VM's endpoint."""
        return self._sockets[0].url

    @property
    def port(self) -> int:
        """The port of the shared socket."""
        return int(self._sockets[0].server_address[1])

    def vm_endpoint(self, name: str) -> str:
        """Return the base URL at which a VM finds its service: its own port, or its path. Raises InputError."""
        with self.emulation.lock:
            name = self.emulation.model.vm(name).name
        own = self._own.get(name.lower())
        return own.url if own else f"{self.url}/vm/{quote(name, safe='')}"

    def start(self) -> None:
        """Begin to serve, in other threads."""
        for opened in self._sockets:
            thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Stop serving, and close every connection."""
        self.emulation.close()
        for opened in self._sockets:
            if self._threads:
                opened.shutdown()
            opened.server_close()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def __enter__(self) -> EmulatorServer:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class _Socket(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, service: Service, control: Control, vm: str | None) -> None:
        self.service = service
        self.control = control
        self.vm = vm
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServiceError(
                f"cannot listen on {host}:{port}: {reason}.", "Choose another port, or 0 for any that is free."
            ) from error

    @property
    def url(self) -> str:
        """The socket's base URL."""
        host, port = self.server_address[:2]
        text = str(host)
        return f"http://[{text}]:{port}" if ":" in text else f"http://{text}:{port}"

    def server_bind(self) -> None:
        """Bind without the reverse look-up of the standard library, which can take seconds without DNS."""
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._connections_lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._connections_lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._connections_lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away; anything else is a defect, which the standard library reports."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise an answer may wait for the client's delayed acknowledgement
    wbufsize = -1  # head and body leave in one piece
    timeout = _IDLE
    server: _Socket

    def version_string(self) -> str:
        """Return the value of the header Server."""
        return "forewarn-emulator"

    def _dispatch(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = read_body(self.rfile, headers)
        except BodyError as error:
            self.close_connection = True  # the rest of the request cannot be distinguished from the next one
            self._send(json_response(error.status, {"error": str(error)}))
            return
        request = HttpRequest(self.command, self.path, headers, body, self.server.vm)
        is_control = self.path.startswith(PREFIX)
        self._send((self.server.control if is_control else self.server.service).handle(request))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _dispatch  # noqa: N815 - http.server's names

    def _send(self, response: HttpResponse) -> None:
        if response.fault or response.status < 200:  # an interim answer precedes another one
            self.close_connection = True
        if response.lost:
            if response.fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self.connection.close()  # before anybody ends it in an orderly way
            return
        if response.fault == "cut_head":
            self.wfile.write(f"HTTP/1.1 {response.status} OK\r\nContent-Le".encode())
            return
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("Content-Length", str(len(response.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        body = b"" if self.command == "HEAD" else response.body
        self.wfile.write(body[: len(body) // 2] if response.fault == "cut_off" else body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the service logs requests, with their meaning."""


def check_loopback(host: str, allow_remote: bool) -> None:
    """Raise InputError for an address that other machines can reach, unless that is allowed."""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not allow_remote and not loopback:
        raise InputError(
            f"{host} can be reached from other machines, and the emulator lets anybody in.",
            "Listen on 127.0.0.1, or add --allow-remote.",
        )
