# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner as a process, and what it needs on a VM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.compiler.policies import compile_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.commands import forewarn_on_vm, vm_command
from tools.sites.waiting import PATIENCE_SECONDS, wait_until

# A policy with ``{hook}`` for the one hook script of a ``Host``.
DRAINS = """
name: drains
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare: [{{run: [{hook}], timeout: 1m}}]
      recover: [{{run: [{hook}], timeout: 1m}}]
    - {{id: rest, output: hold}}
"""


def program(path: Path, script: str) -> Path:
    """Write a shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def compiled(directory: Path, policy: str, name: str = "policy") -> Path:
    """Write a policy NAME.yml; return its artifact, NAME.json, which replaces an earlier one atomically."""
    source, draft, artifact = (directory / f"{name}.{suffix}" for suffix in ("yml", "new", "json"))
    source.write_text(policy)
    draft.write_text(json.dumps(compile_policies([source]).artifact))
    return draft.replace(artifact)


def approvals(emulator: EmulatorClient) -> list[list[str]]:
    """Return the event ids of each approval that has arrived."""
    return [entry["event_ids"] for entry in emulator.requests() if entry["method"] == "POST"]


class LoggingProcess:
    """A runner that logs JSON, one way or another a process of this machine, whose pipes carry texts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._over = False
        self._news = threading.Condition()
        self._problems = ""
        # Neither is waited for without end: something of Wine itself may keep a pipe open.
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_problems)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._news:
                self.lines.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def _read_problems(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._problems += line

    def wait_for(self, name: str, timeout: float = PATIENCE_SECONDS, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Wait for the ``count``-th line of that name and with these fields; return it."""

        def found() -> dict[str, Any] | None:
            wanted = {"line": name, **fields}
            lines = [line for line in self.lines if wanted.items() <= line.items()]
            return lines[count - 1] if len(lines) >= count else None

        with self._news:
            self._news.wait_for(lambda: self._over or found(), timeout)
            line = found()
        assert line, f"no {name} {fields} in {self.lines}"
        return line

    def end(self) -> tuple[int, str]:
        """Wait for the process; return its exit code and what it wrote to stderr."""
        code = self.process.wait(PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join(10)
        return code, self._problems

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        for reader, stream in zip(self._readers, (self.process.stdout, self.process.stderr)):
            assert stream
            if not reader.is_alive():  # otherwise it has the lock of the stream
                stream.close()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal, and do as ``end``."""
        self.process.send_signal(number)
        return self.end()


class Process(LoggingProcess):
    """A runner of this machine. ``quick``: it looks, and tries again, more often than one does (``quick_vm``)."""

    def __init__(self, *arguments: str, endpoint: str, state: Path, quick: bool = False) -> None:
        # A VM gets an artifact: --policy compiles, as a control node does.
        command = vm_command(quick=quick, compiles="--policy" in arguments)
        process = subprocess.Popen(
            [*command, "run", "--log-format", "json", *arguments],
            env={**os.environ, "FOREWARN_ENDPOINT": endpoint, "STATE_DIRECTORY": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        super().__init__(process)


Start = Callable[..., Process]


@contextmanager
def runners(server: EmulatorServer, directory: Path) -> Iterator[Start]:
    """Yield a function that starts a quick runner for web_0, or the VM named; its state is in ``directory``/state-VM.

    With ``quick=False`` it is one at the usual pace.
    """
    started: list[Process] = []

    def starter(*arguments: str, vm: str = "web_0", quick: bool = True) -> Process:
        state = directory / f"state-{vm}"
        started.append(Process(*arguments, endpoint=server.vm_endpoint(vm), state=state, quick=quick))
        return started[-1]

    yield starter
    for runner in started:
        if runner.process.poll() is None:
            runner.process.kill()
        runner.end()
        runner.close()


class Host:
    """The VM web_0, on which runners run one after the other. ``{hook}`` in its policy is the one hook script.

    The hook script lies in the directory in which it can write the file "said".
    """

    def __init__(self, directory: Path, emulator: EmulatorClient, start: Start, policy: str, hook: str) -> None:
        directory.chmod(0o700)
        self.directory = directory
        self.emulator = emulator
        self.state = directory / "state-web_0"
        self._start = start
        self._artifact = compiled(directory, policy.format(hook=program(directory / "hook", hook)))

    def run(self) -> Process:
        """Start a runner."""
        return self._start("--artifact", str(self._artifact))

    def said(self) -> list[str]:
        """Return the lines that hooks have written."""
        file = self.directory / "said"
        return file.read_text().splitlines() if file.exists() else []

    def approvals(self) -> list[list[str]]:
        """Return the event ids of each approval that has arrived."""
        return approvals(self.emulator)

    def forewarn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as an operator of this VM does."""
        return forewarn_on_vm(*arguments, STATE_DIRECTORY=str(self.state))

    def history(self) -> dict[str, dict[str, Any]]:
        """Return what ``forewarn history`` reports of each event, by its id."""
        history = self.forewarn("history", "--json")
        events = [] if history.returncode else json.loads(history.stdout)["events"]
        return {event["event"]["EventId"]: event for event in events}

    def wait_for(self, event_id: str, state: str) -> dict[str, Any]:
        """Return what history reports of an event once that is its state."""
        wait_until(lambda: self.history().get(event_id, {}).get("state") == state, pause=0.05)
        return self.history()[event_id]
