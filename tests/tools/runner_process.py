# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.emulator.server import EmulatorServer


class Process:
    """A runner that logs JSON."""

    def __init__(self, *arguments: str, endpoint: str, state: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forewarn.cli.main", "run", "--log-format", "json", *arguments],
            env={**os.environ, "FOREWARN_ENDPOINT": endpoint, "STATE_DIRECTORY": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._news:
                self.lines.append(json.loads(line))
                self._news.notify_all()

    def wait_for(self, name: str, timeout: float = 20, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Return the first line of that name and with these fields, or the ``count``-th, waiting for it."""

        def found() -> dict[str, Any] | None:
            wanted = {"line": name, **fields}
            lines = [line for line in self.lines if wanted.items() <= line.items()]
            return lines[count - 1] if len(lines) >= count else None

        with self._news:
            line = self._news.wait_for(found, timeout)
        assert line, f"no {name} {fields} in {self.lines}"
        return line

    def end(self) -> tuple[int, str]:
        """Wait for the process; return its exit code and what it wrote to stderr."""
        assert self.process.stderr
        code = self.process.wait(30)
        self._reader.join(10)
        return code, self.process.stderr.read()


Start = Callable[..., Process]


@contextmanager
def runners(server: EmulatorServer, directory: Path) -> Iterator[Start]:
    """Yield a function that starts a runner for web_0, or the VM named; its state is in ``directory``/state-VM."""
    started: list[Process] = []

    def starter(*arguments: str, vm: str = "web_0") -> Process:
        started.append(Process(*arguments, endpoint=server.vm_endpoint(vm), state=directory / f"state-{vm}"))
        return started[-1]

    yield starter
    for runner in started:
        if runner.process.poll() is None:
            runner.process.kill()
        runner.end()
        for stream in (runner.process.stdout, runner.process.stderr):
            assert stream
            stream.close()
