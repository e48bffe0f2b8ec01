# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: other programs on this VM that may answer scheduled events, beside the runner.

A program that asks only now and then, from a container's files, or under a name unknown here can be missed.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from socket import AF_INET, inet_pton
from typing import NamedTuple

from ..check import AS_ADMIN, NOT_CHECKED, OK, TROUBLE, Check
from ..other_handlers import ADDRESS, KNOWN, NAME, STOP, URL_PATH, asks, handler_check, may
from .machine import Machine

# Azure's agents, which use the metadata for other things. An extension runs from the first of these directories.
_AGENTS = re.compile(r"(?:^|/)(?:waagent|WALinuxAgent|cloud-init)|/var/lib/waagent/|/opt/microsoft/")
_INTERPRETER = re.compile(r"(?:python|perl|ruby|node|pwsh|bash|dash|ksh|zsh|sh)[\d.]*", re.ASCII)
_AGENT_IN_CIB = re.compile(rb'\btype="(azure-events(?:-az)?)"')
_UNIT_DIRECTORIES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_CRON_FILES = ("/etc/crontab",)
_CRON_DIRECTORIES = ("/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs")
_CRON_SCRIPTS = ("/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly")
_MOST_BYTES = 1024 * 1024
_LONGEST_SHOWN = 100  # characters of a program and its script
_PRIVILEGED = "/proc/1/fd"  # only root reads it


class _Process(NamedTuple):
    pid: int
    parent: int
    argv: tuple[str, ...]
    directory: Path  # where it is, as this machine sees it


def handlers(machine: Machine, own_pids: Collection[int], own_unit: str) -> list[Check]:
    """Look for other handlers; ``own_pids`` are this process and the runners'. Return at least one result."""
    processes = _processes(machine)
    others = list(_others(processes, own_pids))
    found = [*_by_process(machine, others), *_by_pacemaker(machine)]
    reported = {pid for pid, _check in found if pid}
    checks = [check for _pid, check in found]
    checks += _by_unit(machine, own_unit, reported)
    checks += _by_cron(machine)
    if checks:
        return checks
    if not processes:
        return [Check(NAME, NOT_CHECKED, "no process can be seen: /proc is not readable", AS_ADMIN)]
    with suppress(FileNotFoundError, NotADirectoryError):
        try:
            list(machine.path(_PRIVILEGED).iterdir())
        except PermissionError:
            return [Check(NAME, NOT_CHECKED, "not in full: other users' processes and crontabs are hidden", AS_ADMIN)]
    return [Check(NAME, OK, "no other program was found that asks for scheduled events")]


# Processes


def _processes(machine: Machine) -> dict[int, _Process]:
    found = {}
    with suppress(OSError):
        for entry in machine.path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(OSError, ValueError, IndexError):  # it has ended
                argv = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                # PID (NAME) STATE PARENT …, and a name can have spaces and brackets
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                words = tuple(word for word in argv if word)
                found[int(entry.name)] = _Process(int(entry.name), parent, words, entry)
    return found


def _others(processes: Mapping[int, _Process], own: Collection[int]) -> Iterator[_Process]:
    """Yield the processes that are neither ours, nor started by ours, nor what this command was started by."""
    above = set(own)
    for pid in own:
        while pid in processes and processes[pid].parent not in above:
            pid = processes[pid].parent
            above.add(pid)
    for process in processes.values():
        if process.argv and process.pid not in above and not _descends(process, processes, own):
            yield process


def _descends(process: _Process, processes: Mapping[int, _Process], own: Collection[int]) -> bool:
    seen = set()
    while process.parent in processes and process.pid not in seen:
        if process.parent in own:
            return True
        seen.add(process.pid)
        process = processes[process.parent]
    return False


def _by_process(machine: Machine, others: Sequence[_Process]) -> Iterator[tuple[int, Check]]:
    sockets = _sockets(machine)
    for process in others:
        line = " ".join(process.argv)
        program, script = _program(process.argv)
        known = KNOWN.get(Path(program).name) or KNOWN.get(Path(script).name)
        # Not its other arguments: there may be a secret among them.
        who = f"process {process.pid} ({_short(' '.join((program, script)).rstrip())})"
        if known:
            yield process.pid, Check(NAME, TROUBLE, f"{who} is {known}", STOP)
        elif URL_PATH in line.lower():
            yield process.pid, may(f"{who} may answer events: its command line names scheduled events")
        elif script and asks(_of_process(machine, process, script)):
            yield process.pid, may(f"{who} may answer events: its script asks for scheduled events")
        elif not _AGENTS.search(line):
            if ADDRESS in line:
                yield process.pid, may(f"{who} may answer events: its command line names {ADDRESS}")
            elif sockets and _connected(process, sockets):
                yield process.pid, may(f"{who} may answer events: it is connected to {ADDRESS}")


def _program(argv: Sequence[str]) -> tuple[str, str]:
    """Return a command's program and, if that is an interpreter, the script that it runs, else ""."""
    program = argv[0].split(" ")[0]  # a process can write a title there
    if _INTERPRETER.fullmatch(Path(program).name):
        for word in argv[1:]:
            if not word.startswith("-"):
                return program, word
            if word in ("-c", "-m", "-e"):
                break
    return program, ""


def _of_process(machine: Machine, process: _Process, script: str) -> Path:
    """Return where a script of a process is: its root and directory may be others than ours, in a container."""
    if not script.startswith("/"):
        return process.directory / "cwd" / script
    inside = process.directory / "root" / script.lstrip("/")
    with suppress(PermissionError):  # only root may look into another user's process
        if inside.exists():
            return inside
    return machine.path(script)


def _sockets(machine: Machine) -> set[str]:
    """Return the inodes of sockets that are connected to the address."""
    number = struct.unpack("=I", inet_pton(AF_INET, ADDRESS))[0]
    wanted = (f"{number:08X}", f"0000000000000000{struct.unpack('=I', bytes((0, 0, 255, 255)))[0]:08X}{number:08X}")
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in machine.read(table).decode("ascii", "replace").splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[2].partition(":")[0] in wanted and fields[9] != "0":
                    found.add(f"socket:[{fields[9]}]")
    return found


def _connected(process: _Process, sockets: Collection[str]) -> bool:
    with suppress(OSError):
        for entry in (process.directory / "fd").iterdir():
            with suppress(OSError):
                if os.readlink(entry) in sockets:
                    return True
    return False


# What is set up


def _by_pacemaker(machine: Machine) -> Iterator[tuple[int, Check]]:
    """Look into the cluster's configuration: the agent's process exists for moments only."""
    with suppress(OSError):
        found = _AGENT_IN_CIB.search(machine.read("/var/lib/pacemaker/cib/cib.xml"))
        if found:
            name = found.group(1).decode()
            yield 0, Check(NAME, TROUBLE, f"the cluster has a resource {name}: {KNOWN[name]}", STOP)


def _by_unit(machine: Machine, own_unit: str, reported: Collection[int]) -> Iterator[Check]:
    """Look for units that run, will run at boot, or are run by a timer. ``reported``: processes that are known."""
    seen = {own_unit}
    for directory in _UNIT_DIRECTORIES:
        for path in _files(machine, directory):
            if path.suffix != ".service" or path.name in seen:
                continue
            seen.add(path.name)
            why = _why_unit(machine, path)
            if not why:
                continue
            state = machine.properties(path.name, "ActiveState", "UnitFileState", "TriggeredBy", "MainPID") or {}
            timers = [name for name in state.get("TriggeredBy", "").split() if name.endswith(".timer")]
            runs = state.get("ActiveState") in ("active", "activating", "reloading")
            if state.get("MainPID") in {str(pid) for pid in reported}:
                continue
            if runs or state.get("UnitFileState") == "enabled" or timers or not state:
                how = "runs" if runs else f"is started by {timers[0]}" if timers else "is started at boot"
                maybe = f"{path.name} {how if state else 'is here'}, and may answer events"
                yield handler_check(why, f"{path.name} {how}: ", f"{maybe}: ")


def _why_unit(machine: Machine, path: Path) -> tuple[bool, str] | None:
    """Return whether a unit runs a known handler, and why it is one; None if it is none."""
    for line in _lines(path):
        key, equals, command = line.partition("=")
        if equals and key.strip().startswith("ExecStart"):
            why = _why_command(machine, command.strip().lstrip("@-:+!|"))
            if why:
                return why
    return None


def _why_command(machine: Machine, command: str) -> tuple[bool, str] | None:
    words = command.replace('"', " ").replace("'", " ").split()
    for word in words:
        known = KNOWN.get(Path(word).name)
        if known:
            return True, known
    if URL_PATH in command.lower():
        return False, "its command names scheduled events"
    for word in words:
        if word.startswith("/") and asks(machine.path(word)):
            return False, f"{word} asks for scheduled events"
    return (False, f"its command names {ADDRESS}") if ADDRESS in command else None


def _by_cron(machine: Machine) -> Iterator[Check]:
    tables = [machine.path(path) for path in _CRON_FILES]
    for directory in _CRON_DIRECTORIES:
        tables += _files(machine, directory)
    for table in tables:
        for line in _lines(table):
            why = _why_command(machine, line)
            if why:
                shown = f"/{table.relative_to(machine.root)}"
                yield handler_check(why, f"{shown} runs ", f"{shown} has a line that may answer events: ")
                break
    for directory in _CRON_SCRIPTS:
        for script in _files(machine, directory):
            if asks(script):
                shown = f"/{script.relative_to(machine.root)}"
                yield may(f"{shown} may answer events: it asks for scheduled events")


def _files(machine: Machine, directory: str) -> list[Path]:
    try:
        return sorted(path for path in machine.path(directory).iterdir() if path.is_file())
    except OSError:
        return []


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments, those with a backslash at the end joined."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace").replace("\\\n", " ")
    except OSError:
        return []
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", ";"))]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
