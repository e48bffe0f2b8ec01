# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A receiver of what a sink sends, as a process that can be down, slow or broken, or die in the middle."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.sites.waiting import wait_until

# How the process answers; every other word is a status.
SLOW, DIE_BEFORE, DIE_AFTER = "slow", "die-before", "die-after"  # it has kept what it received
SLOW_SECONDS = 30.0


class Receiver:
    """A receiver at one port, which may be started several times. What it received is in ``directory``."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/logs"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Receiver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def start(self, mode: str = "200") -> None:
        """Start the process, and wait until it listens."""
        self.answer(mode)
        command = [sys.executable, __file__, str(self.port), str(self._directory)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(command, env=environ)
        wait_until(self._listens)

    def answer(self, mode: str) -> None:
        """Answer so from now on."""
        draft = self._directory / "mode.new"
        draft.write_text(mode)
        draft.replace(self._directory / "mode")

    def died(self) -> bool:
        """Return whether the process has ended."""
        return self._process is not None and self._process.poll() is not None

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests that arrived: ``mode``, ``headers`` and ``body``. One may be half written."""
        file = self._directory / "requests"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def kept(self) -> list[dict[str, Any]]:
        """Return the lines that it keeps, in the order of arrival."""
        kept = (request for request in self.requests() if request["mode"] in ("200", DIE_AFTER))
        return [json.loads(line) for request in kept for line in request["body"].splitlines()]

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class _Handler(BaseHTTPRequestHandler):
    directory: Path

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode = (self.directory / "mode").read_text()
        if mode == DIE_BEFORE:
            os._exit(1)
        content = {"mode": mode, "headers": dict(self.headers), "body": body.decode("utf-8")}
        with (self.directory / "requests").open("a") as file:
            file.write(json.dumps(content) + "\n")
        if mode == DIE_AFTER:
            os._exit(1)
        if mode == SLOW:
            time.sleep(SLOW_SECONDS)  # a service that takes this long is what the test is about
        self.send_response(200 if mode == SLOW else int(mode))
        if mode == "429":
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


if __name__ == "__main__":
    _Handler.directory = Path(sys.argv[2])
    HTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
