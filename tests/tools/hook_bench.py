# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks as real processes, and checks that nothing of them is left."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import Executor, HookResult, Started
from forewarn.runner.hooks.process import identity
from tools.waiting import wait_until

PATIENCE_SECONDS = 20.0
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Hooks:
    """An executor, and a wait for it as in the runner's loop."""

    def __init__(self, grace_seconds: float = 0.3) -> None:
        self.woken = threading.Event()
        self.executor = Executor(self.woken.set, grace_seconds=grace_seconds)
        self.outcomes: dict[Any, HookResult] = {}

    def start(self, token: object, *argv: str, stdin: bytes = b"", timeout: float = PATIENCE_SECONDS) -> Started | None:
        return self.executor.start(token, Command(argv, ENVIRONMENT, stdin, timeout))

    def shell(self, token: object, script: str, stdin: bytes = b"", timeout: float = PATIENCE_SECONDS) -> Started:
        started = self.start(token, "/bin/sh", "-c", script, stdin=stdin, timeout=timeout)
        assert started is not None
        return started

    def wait(self, token: object) -> HookResult:
        """Return an outcome; every wake-up must mean that there is one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while token not in self.outcomes:
            assert self.woken.wait(deadline - time.monotonic()), f"hook {token} never ended"
            self.woken.clear()
            self.outcomes.update(self.executor.finished())
        return self.outcomes.pop(token)

    def run(self, script: str, stdin: bytes = b"", timeout: float = PATIENCE_SECONDS) -> HookResult:
        self.shell("only", script, stdin, timeout)
        return self.wait("only")


def open_files() -> dict[str, str]:
    links = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor of this very listing
            links[path.name] = str(path.readlink())
    return links


def is_running(pid: int) -> bool:
    """Return whether a process runs. One that has ended and waits to be reaped does not."""
    found = identity(pid)
    return found is not None and found.state not in "ZX"


def assert_gone(pid: int) -> None:
    wait_until(lambda: not is_running(pid), PATIENCE_SECONDS, what=f"process {pid} still runs")


def wait_for(path: Path) -> str:
    """Return what a hook writes to a file, once it has."""
    wait_until(
        lambda: path.exists() and path.read_text().endswith("\n"), PATIENCE_SECONDS, what=f"{path} was not written"
    )
    return path.read_text().strip()
