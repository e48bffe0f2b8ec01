# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
r"""A VM that runs Windows, with the runner where the role puts it; its service is an emulator.

``Windows`` is the machine, on which one ``WindowsVm`` after the other begins without a past. Its hooks are in
``C:\hooks``, and what they write down is in ``C:\hooks\said``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from forewarn.compiler.policies import compile_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.errors import InputError
from forewarn.runner.event_record import EventRecord
from forewarn.runner.journal.reader import JournalReader
from tools.sites.runner_process import LoggingProcess, approvals
from tools.sites.waiting import wait_until
from tools.sites.wine import PYTHON, PYTHONW, Wine
from tools.sites.wine_modules import program

PROGRAMS = r"C:\Program Files\Forewarn"
PYZ = rf"{PROGRAMS}\forewarn.pyz"
DATA = r"C:\ProgramData\Forewarn"
ARTIFACT = rf"{DATA}\policies\policy.json"
CONFIG = rf"{DATA}\config.json"
STATE = rf"{DATA}\state"
HOOKS = r"C:\hooks"
SERVICE = "forewarn"
SC, NET = r"C:\windows\system32\sc.exe", r"C:\windows\system32\net.exe"
# Compiled before, while a bundle is compiled at each start.
_BARE = "from forewarn.cli.main import main; sys.exit(main())"
_QUICK = f"from tools.sites.quick_vm import hurry; hurry(); {_BARE}"

_CONTROL = """
import ctypes, sys
services = ctypes.WinDLL("advapi32", use_last_error=True)
services.OpenSCManagerW.restype = services.OpenServiceW.restype = ctypes.c_void_p
manager = ctypes.c_void_p(services.OpenSCManagerW(None, None, 1))
service = ctypes.c_void_p(services.OpenServiceW(manager, sys.argv[1], 0x1FF))
if not services.ControlService(service, int(sys.argv[2]), ctypes.create_string_buffer(64)):
    sys.exit(str(ctypes.WinError(ctypes.get_last_error())))
"""


class Windows:
    """The machine, with the runner installed; ``sites.wine_modules`` has been there before."""

    def __init__(self, wine: Wine, pyz: Path) -> None:
        self.wine = wine
        wine.path(PROGRAMS).mkdir()
        # Wine tells services that this is ProgramData.
        wine.path(r"C:\users\Public\Forewarn").symlink_to(wine.path(DATA))
        shutil.copy(pyz, wine.path(PYZ))

    @contextmanager
    def vm(self, emulator: EmulatorClient, endpoint: str) -> Iterator[WindowsVm]:
        """Yield a VM without a past; its processes and its service end afterwards."""
        for directory in (DATA, HOOKS):
            shutil.rmtree(self.wine.path(directory), ignore_errors=True)
            self.wine.path(directory).mkdir(mode=0o755)
        for directory in (rf"{DATA}\policies", STATE):
            self.wine.path(directory).mkdir(mode=0o755)
        vm = WindowsVm(self.wine, emulator, endpoint)
        try:
            yield vm
        finally:
            vm.close()


class WindowsVm:
    """One VM. ``endpoint`` is its service."""

    def __init__(self, wine: Wine, emulator: EmulatorClient, endpoint: str) -> None:
        self.wine = wine
        self.emulator = emulator
        self.endpoint = endpoint
        self.state = wine.path(STATE)
        self._runners: list[LoggingProcess] = []
        self._has_service = False

    # What is installed

    def policy(self, text: str, artifact: str = ARTIFACT) -> None:
        """Compile a policy and install it, atomically."""
        place = self.wine.path(artifact)
        source, draft = place.with_suffix(".yml"), place.with_suffix(".new")
        source.write_text(text, "utf-8")
        draft.write_text(json.dumps(compile_policies([source]).artifact), "utf-8")
        draft.chmod(0o644)
        draft.replace(place)

    def hook(self, name: str, *lines: str) -> str:
        """Write a hook NAME.cmd; return its path."""
        path = rf"{HOOKS}\{name}.cmd"
        file = self.wine.path(path)
        file.write_bytes("".join(f"{line}\r\n" for line in ("@echo off", *lines)).encode())
        file.chmod(0o755)
        return path

    def configure(self, **options: Any) -> None:
        """Write the configuration of the service."""
        file = self.wine.path(CONFIG)
        file.write_text(json.dumps({"artifact": ARTIFACT, "endpoint": self.endpoint, **options}), "utf-8")
        file.chmod(0o644)

    # The runner in the foreground

    def start(self, *arguments: str, artifact: str = ARTIFACT, **environ: str) -> LoggingProcess:
        """Start a runner that looks twenty times as often as usual."""
        runner = LoggingProcess(
            self.popen("run", "--log-format", "json", "--artifact", artifact, *arguments, **environ)
        )
        self._runners.append(runner)
        return runner

    def popen(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Start a command that looks as often; its pipes carry texts."""
        environ = {"FOREWARN_ENDPOINT": self.endpoint, **environ}
        return self.wine.popen(*program(_QUICK), *arguments, environ=environ, text=True, encoding="utf-8")

    def kill(self, runner: LoggingProcess) -> None:
        """Kill a runner with SIGKILL."""
        runner.stop(signal.SIGKILL)

    # The runner as a service

    def create_service(self, *, quick: bool = True) -> None:
        """Let the service control manager know the service, as the role does; unless ``quick``, it is the bundle."""
        words = program(_QUICK, PYTHONW) if quick else (PYTHONW, PYZ)
        image = f'{subprocess.list2cmdline(words)} run --service --config "{CONFIG}"'
        created = self.wine.run(SC, "create", SERVICE, "start=", "demand", "binPath=", image)
        assert created.returncode == 0, created
        self._has_service = True

    def sc(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask the service control manager something about the service."""
        return self.wine.run(SC, command, SERVICE, *arguments)

    def net(self, command: str) -> str:
        """Start or stop the service; return its state then. Wine's net.exe does not wait, as that of Windows does."""
        done = self.wine.run(NET, command, SERVICE)
        assert done.returncode == 0, done
        wait_until(lambda: not self.service_state().endswith("_PENDING"), pause=0.05)
        return self.service_state()

    def service_state(self) -> str:
        """Return the state of the service: RUNNING, STOPPED, START_PENDING …"""
        return self._query()["STATE"].split()[-1]

    def exit_codes(self) -> tuple[int, int]:
        """Return the exit code of the service as Windows has it, and its own."""
        found = self._query()
        return int(found["WIN32_EXIT_CODE"].split()[0], 0), int(found["SERVICE_EXIT_CODE"].split()[0], 0)

    def _query(self) -> dict[str, str]:
        """Return what sc.exe says of the service. On a busy machine Wine's manager does not always answer it."""

        def answer() -> dict[str, str]:
            lines = [line.partition(":") for line in self.sc("query").stdout.splitlines()]
            found = {name.strip(): value for name, colon, value in lines if colon}
            return found if "STATE" in found else {}

        return wait_until(answer, pause=0.05)

    def control(self, control: int) -> None:
        """Send the service a control that Wine's sc.exe does not know."""
        sent = self.wine.run(PYTHON, "-c", _CONTROL, SERVICE, str(control))
        assert sent.returncode == 0, sent

    def log(self, line: str) -> list[dict[str, Any]]:
        """Return the lines of a name in the log file of the service."""
        file = self.wine.path(rf"{DATA}\log\forewarn.jsonl")
        lines = [json.loads(text) for text in file.read_text("utf-8").splitlines()] if file.exists() else []
        return [found for found in lines if found["line"] == line]

    def service_pid(self) -> int:
        """Return the pid, on this machine, of the service's process."""
        (pid,) = _processes(self.wine, "run --service")
        return pid

    # Beside it

    def forewarn(self, *arguments: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end as an administrator of this VM does."""
        environ = {"FOREWARN_ENDPOINT": self.endpoint, **environ}
        return self.wine.run(*program(_BARE), *arguments, stdin=stdin, environ=environ)

    def bundle(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Do so with the bundle, as it is on a VM."""
        return self.wine.run(PYTHON, "-I", "-S", PYZ, *arguments, environ={"FOREWARN_ENDPOINT": self.endpoint})

    def json(self, *arguments: str) -> Any:
        """Return what a command writes as JSON. ``status`` finds fault with modules that are no bundle."""
        done = self.forewarn(*arguments, "--json")
        assert done.stdout, done
        return json.loads(done.stdout)

    def history(self) -> dict[str, dict[str, Any]]:
        """Return what ``forewarn history`` reports of each event, by its id."""
        return {event["event"]["EventId"]: event for event in self.json("history")["events"]}

    def records(self) -> list[EventRecord]:
        """Return what the journal has on the disk now."""
        try:
            return [EventRecord.of(row) for row in JournalReader(str(self.state)).records()]
        except InputError:  # there is no journal yet
            return []

    def is_over(self) -> bool:
        """Return whether the only event is done with."""
        return [record.state in ("done", "cancelled") for record in self.records()] == [True]

    def wait_until_over(self) -> None:
        """Wait until the only event is done with."""
        wait_until(self.is_over, pause=0.05, what="the event is not done with")

    def said(self) -> list[str]:
        """Return the lines that hooks have written."""
        file = self.wine.path(rf"{HOOKS}\said")
        return [line.strip() for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def approvals(self) -> list[list[str]]:
        """Return the event ids of each approval that has arrived."""
        return approvals(self.emulator)

    def processes(self, words: str) -> list[int]:
        """Return the pids, on this machine, of the programs of this Windows whose command lines have these words."""
        return _processes(self.wine, words)

    def close(self) -> None:
        """End its runners and its service."""
        for runner in self._runners:
            if runner.process.poll() is None:
                runner.process.kill()
            runner.end()
            runner.close()
        if self._has_service:
            self.sc("delete")
            for pid in _processes(self.wine, "run --service"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not _processes(self.wine, "run --service"), pause=0.05)


def _processes(wine: Wine, words: str) -> list[int]:
    found = []
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            command = (place / "cmdline").read_bytes().replace(b"\0", b" ")
            environ = (place / "environ").read_bytes() if words.encode() in command and place.name.isdigit() else b""
            if f"WINEPREFIX={wine.drive.parent}".encode() in environ.split(b"\0"):
                found.append(int(place.name))
    return found
