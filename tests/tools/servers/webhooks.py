# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks of kind http talk to in tests: a scripted server, with TLS or without, and a forward proxy."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

HOST = "hooks.example.test"  # what the certificate is for, beside 127.0.0.1; no name server knows it
CLOSE, HANG = "close", "hang"  # instead of an answer


class Request(NamedTuple):
    """What a server got. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    body: bytes = b""


class Webhook:
    """A server on loopback. ``script``: an answer, CLOSE or HANG for each request; the last one for all that follow."""

    def __init__(self, *script: Answer | str, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.released = threading.Event()  # ends what hangs
        self._script: Sequence[Answer | str] = script or (Answer(200),)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}/x"

    def __enter__(self) -> Webhook:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def answer_to(self, request: Request) -> Answer | str:
        """Note a request, and return the answer to it."""
        with self._lock:
            self.requests.append(request)
            return self._script[min(len(self.requests), len(self._script)) - 1]


class Proxy(Webhook):
    """A forward proxy. CONNECT leads to a port of this machine, whatever the name; it answers the rest itself."""

    def __init__(self, target: int = 0, *script: Answer | str) -> None:
        super().__init__(*script)
        self.target = target
        self.url = f"http://127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: Webhook

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 20

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._answer(body)

    do_GET = do_POST  # noqa: N815 - so that a redirect that is followed is seen

    def do_CONNECT(self) -> None:
        owner = self._owner()
        assert isinstance(owner, Proxy)
        if not self._answer(b"", connected=True):
            return
        with socket.create_connection(("127.0.0.1", owner.target), 20) as upstream:
            pairs = ((self.connection, upstream), (upstream, self.connection))
            threads = [threading.Thread(target=_relay, args=pair, daemon=True) for pair in pairs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(20)
        self.close_connection = True

    def _answer(self, body: bytes, connected: bool = False) -> bool:
        owner = self._owner()
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = owner.answer_to(Request(self.command, self.path, headers, body))
        self.close_connection = True
        if answer == HANG:
            owner.released.wait(20)
        if isinstance(answer, str):
            return False
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if not connected:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        return answer.status == 200

    def _owner(self) -> Webhook:
        assert isinstance(self.server, _Server)
        return self.server.owner

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def make_certificate(directory: Path) -> Path:
    """Make a certificate that is its own authority; return the file that holds it, beside its key ``key.pem``."""
    path = directory / "ca.pem"
    command = shutil.which("openssl")
    assert command is not None, "openssl is needed to make a certificate"
    subprocess.run(
        [
            *(command, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={HOST}", "-keyout", str(directory / "key.pem"), "-out", str(path)),
            *("-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"),
            *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
        ],
        capture_output=True,
        check=True,
    )
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    """Return what a server with that certificate needs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context
