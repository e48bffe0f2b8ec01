# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes to measure: the emulator and the runner, as a user starts them. All of them end with the context."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from forewarn.emulator.client import EmulatorClient
from tools.sites.waiting import wait_until

PYTHON = (sys.executable,)
RUNNER = (str(Path(sysconfig.get_path("scripts"), "forewarn")), "run", "--artifact")


@contextlib.contextmanager
def emulator(vms: Sequence[str]) -> Iterator[EmulatorClient]:
    """Run an emulator whose VMs are of one group; the first one is the default."""
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory:
        ready = Path(directory) / "url"
        options = ["--port", "0", "--ready-file", str(ready), *(part for vm in vms for part in ("--vm", vm))]
        with started([*PYTHON, "-m", "forewarn.cli.main", "emulate", *options]) as process:
            wait_until(lambda: ready.exists() or process.poll() is not None, what="the emulator did not start")
            with EmulatorClient(ready.read_text(encoding="utf-8").strip()) as client:
                yield client


@contextlib.contextmanager
def bare_socket() -> Iterator[tuple[socket.socket, str]]:
    """Yield a socket that listens and answers nothing, and its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def started(command: Sequence[str], state: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that shows only its errors. A runner keeps its state in ``state``, or in a new directory."""
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory:
        environ = {**os.environ, "STATE_DIRECTORY": str(state or directory)}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()


@contextlib.contextmanager
def artifact_of(policy: Path) -> Iterator[Path]:
    """Compile a policy to a file."""
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory:
        artifact = Path(directory) / "policy.json"
        command = [sys.executable, "-m", "forewarn.cli.main", "policy", "compile", "-o", str(artifact), str(policy)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield artifact
