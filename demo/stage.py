# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the demo, and what they write. All of them end with the stage, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from forewarn.emulator.client import EmulatorClient

ROOT = Path(__file__).resolve().parents[1]
EMULATOR = "emulator"
_GRACE_SECONDS = 5.0
_COMMAND_SECONDS = 60.0
# Not the user's settings: the demo is the same everywhere.
_FOREIGN = ("ANSIBLE_", "FOREWARN_")


class StageError(Exception):
    """The demo waited for something that did not happen."""


@dataclass(frozen=True)
class Line:
    """A line of JSON that a process wrote; ``at`` is when it was read, by ``time.monotonic()``."""

    source: str
    at: float
    data: dict[str, Any] = field(repr=False)


class Stage:
    """Starts processes, collects what they write, and ends them. ``on_line`` is called with every line, in order."""

    def __init__(self, on_line: Callable[[Line], None]) -> None:
        self.lines: list[Line] = []
        self.client: EmulatorClient | None = None
        self._on_line = on_line
        self._news = threading.Condition()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []
        # Whatever the user's umask is: the runner trusts no file that the user's group can write to.
        os.umask(0o022)
        self._temporary = tempfile.TemporaryDirectory(prefix="forewarn-demo-")
        self.directory = Path(self._temporary.name)

    def __enter__(self) -> Stage:
        # However the demo is ended, it first ends what it has started. In the background of a shell SIGINT is
        # ignored from the start; somebody who sends it to this very process still means it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup, which outlives the terminal
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # impatience must not leave processes behind
        if self.client is not None:
            self.client.close()
        for name in reversed(list(self._processes)):
            self._end(self._processes[name])
        for reader in self._readers:
            reader.join(_GRACE_SECONDS)
        self._temporary.cleanup()

    @property
    def emulator(self) -> EmulatorClient:
        """The emulator's controls."""
        if self.client is None:
            raise StageError("there is no emulator yet")
        return self.client

    def emulate(self, scenario: Path, time_scale: float) -> None:
        """Start the emulator on a free port."""
        options = ["--scenario", str(scenario), "--time-scale", f"{time_scale:g}", "--port", "0", "--json"]
        self.start(EMULATOR, forewarn("emulate", *options))
        listening = self.wait("the emulator to listen", lambda line: line.data.get("event") == "listening")
        self.client = EmulatorClient(listening.data["url"])

    def run(self, vm: str) -> None:
        """Start the runner of a VM, and wait until it polls and knows who it is."""
        with self._news:
            begin = len(self.lines)
        options = ["--artifact", str(self.artifact), "--endpoint", self.emulator.vm_endpoint(vm)]
        self.start(vm, forewarn("run", *options, "--state", str(self.state(vm)), "--log-format", "json"))
        self.wait(
            f"the runner of {vm}", lambda line: line.source == vm and line.data["line"] == "identity", begin=begin
        )

    def pid(self, vm: str) -> int:
        """Return the process of a VM's runner."""
        return self._processes[vm].pid

    def kill(self, vm: str) -> None:
        """Kill the runner of a VM. What it has started goes on."""
        process = self._processes.pop(vm)
        process.kill()
        process.wait(_GRACE_SECONDS)

    @property
    def artifact(self) -> Path:
        """The artifact that the runners load."""
        return self.directory / "policy.json"

    def state(self, vm: str) -> Path:
        """Return where the runner of a VM keeps its journal."""
        return self.directory / f"state-{vm}"

    def history(self, vm: str) -> dict[str, Any]:
        """Return everything in the journal of a VM, as ``forewarn history --json`` has it."""
        code, output, errors = self.command(forewarn("history", "--json", "--state", str(self.state(vm))))
        if code:
            raise StageError(errors)
        history: dict[str, Any] = json.loads(output)
        return history

    def show(self, argv: Sequence[str]) -> None:
        """Run a command that writes where we do, so that it finds the terminal to which it fits its lines."""
        sys.stdout.flush()
        self._popen("command", argv, None, {}, output=None).wait(_COMMAND_SECONDS)

    def command(
        self, argv: Sequence[str], environ: dict[str, str] | None = None, seconds: float = _COMMAND_SECONDS
    ) -> tuple[int, str, str]:
        """Run a command to its end; return its exit code, output and errors."""
        process = self._popen("command", argv, subprocess.PIPE, environ or {})
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise StageError(f"{Path(argv[0]).name} took longer than {seconds:g} s") from None
        return process.returncode, output, errors

    def wait(self, what: str, test: Callable[[Line], bool], seconds: float = 20.0, begin: int = 0) -> Line:
        """Return the first line, from that number on, that passes the test, once there is one. Raises StageError."""
        deadline = time.monotonic() + seconds
        seen = begin
        with self._news:
            while True:
                for line in self.lines[seen:]:
                    if test(line):
                        return line
                seen = len(self.lines)
                for name, process in self._processes.items():
                    if process.poll() is not None and name != "command":
                        raise StageError(f"waiting for {what}: {name} ended. {self._errors_of(name)}")
                if time.monotonic() >= deadline:
                    raise StageError(f"waited {seconds:g} s for {what}")
                self._news.wait(0.2)

    def said(self, source: str, kind: str, event_id: str | None = None) -> list[dict[str, Any]]:
        """Return the lines that a runner logged under that name, about that event."""
        with self._news:
            lines = [line.data for line in self.lines if line.source == source and line.data.get("line") == kind]
        return [data for data in lines if event_id is None or data.get("event_id") == event_id]

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start a process. What it writes to its standard output, if anything, is lines of JSON."""
        with (self.directory / f"{name}.err").open("w") as errors:
            process = self._popen(name, argv, errors, {})
        reader = threading.Thread(target=self._read, args=(name, process), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _popen(
        self, name: str, argv: Sequence[str], errors: Any, environ: dict[str, str], output: Any = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        # In a session of its own: Ctrl-C reaches only us, and we end the processes.
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            env={**own, **environ},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        self._processes[name] = process
        return process

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for text in process.stdout:
            if not text.endswith("\n"):  # it was killed while it wrote
                break
            line = Line(name, time.monotonic(), json.loads(text))
            with self._news:
                self.lines.append(line)
                self._on_line(line)
                self._news.notify_all()

    def _errors_of(self, name: str) -> str:
        path = self.directory / f"{name}.err"
        return path.read_text()[-2000:] if path.exists() else ""

    def _end(self, process: subprocess.Popen[str]) -> None:
        """End a process and everything it has started: all of it is in the process group that we made."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                break
            os.killpg(process.pid, number)
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        if process.stdout is not None and process.stderr is not None:  # of a command that was not read to its end
            process.stdout.close()
            process.stderr.close()


def forewarn(*arguments: str) -> list[str]:
    """Return the command line of a forewarn command."""
    return [sys.executable, "-m", "forewarn.cli.main", *arguments]
