# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small web server with the files of a directory, which answers If-None-Match. It also runs by itself, on a VM:
``python3 etag_files.py DIRECTORY PORT [CERTIFICATE KEY]``.
"""

from __future__ import annotations

import hashlib
import ssl
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class EtagHandler(BaseHTTPRequestHandler):
    """Keeps connections, and sends an answer in one write."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def __init__(self, directory: str, *args: Any) -> None:
        self._directory = directory
        super().__init__(*args)

    def do_GET(self) -> None:
        path = Path(self._directory, self.path.partition("?")[0].lstrip("/"))
        if ".." in path.parts or not path.is_file():
            self._answer(404, b"", "")
            return
        content = path.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        same = self.headers.get("If-None-Match") == etag
        self._answer(304 if same else 200, b"" if same else content, etag)

    def _answer(self, status: int, content: bytes, etag: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if etag:
            self.send_header("ETag", etag)
        self._headers_buffer: list[bytes]
        self.server.bytes_sent += sum(map(len, self._headers_buffer)) + 2 + len(content)  # type: ignore[attr-defined]  # ours
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class EtagServer(ThreadingHTTPServer):
    """Serves a directory on an address and a port; ``tls`` is a certificate and its key.

    ``bytes_sent`` counts heads and bodies; two threads may forget some of each other.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, directory: str, address: str = "127.0.0.1", port: int = 0, tls: tuple[str, ...] = ()) -> None:
        super().__init__((address, port), partial(EtagHandler, directory))
        self.bytes_sent = 0
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)


if __name__ == "__main__":
    EtagServer(sys.argv[1], "0.0.0.0", int(sys.argv[2]), tuple(sys.argv[3:])).serve_forever()
