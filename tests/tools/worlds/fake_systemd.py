# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemd for tests of the kind: units with jobs, triggers and dependencies, in time that the test lets pass.

tests/lab/hooks/test_hook_systemd.py has the same cases with systemd itself.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from forewarn.hook_kinds.common.work import HookFailedError, ProgramResult

_JOB_SECONDS = 0.3


class ProcessKilled(BaseException):
    """The process of the hook was killed, between two things that it does."""


@dataclass
class FakeUnit:
    """``requires``: what has to be active, or this is stopped. ``lives``: seconds after which it ends by itself.

    ``needs_socket``: without a descriptor of it, it fails at once. ``type`` is that of a service.
    """

    name: str
    triggers: str = ""
    requires: tuple[str, ...] = ()
    enabled: bool = False
    needs_socket: str = ""
    type: str = "simple"
    lives: float = float("inf")
    stops_within: float = _JOB_SECONDS
    breaks: bool = False  # the next starts end after half a second, without success
    state: str = "inactive"
    result: str = "success"
    invocation: str = ""
    active_since: float = 0.0
    is_lonely: bool = False  # it was started before its socket
    job: str = ""
    job_ends: float = 0.0


@dataclass
class FakeSystemd:
    """Answers systemctl. ``asked``: while True, somebody wants what sockets and paths wait for, all the time."""

    drop_ins: Path
    units: dict[str, FakeUnit] = dataclasses.field(default_factory=dict)
    now: float = 1_000.0
    asked: bool = False
    calls: int = 0
    reloads: int = 0
    killed_at: int = -1  # the call at which the hook is killed
    storms: list[str] = dataclasses.field(default_factory=list)  # triggers that asked again and again
    failed: list[str] = dataclasses.field(default_factory=list)  # units that ended without success
    _loaded: frozenset[str] = frozenset()
    _invocations: int = 0

    def add(self, *units: FakeUnit) -> None:
        """Add units; those that are active have been so for long."""
        for unit in units:
            self.units[unit.name] = unit
            if unit.state == "active":
                self._begin(unit, since=1.0)

    def states(self) -> dict[str, str]:
        """Return the state of each unit."""
        return {name: unit.state for name, unit in self.units.items()}

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.1)
            self._tick()

    def reboot(self) -> None:
        """Boot again: what is enabled is active, and /run is empty."""
        self.allow()
        self.now = 50.0
        for unit in self.units.values():
            unit.state, unit.result, unit.invocation, unit.job = "inactive", "success", "", ""
        for unit in sorted(self.units.values(), key=lambda unit: not unit.triggers):
            if unit.enabled:
                self.start(unit.name)
                self._tick(1.0)

    def allow(self) -> None:
        """Let every unit start again, as somebody may who finds out why it does not."""
        shutil.rmtree(self.drop_ins)
        self.drop_ins.mkdir()
        self._loaded = frozenset()

    # What systemctl is asked

    def run(self, *words: str) -> ProgramResult:
        """Answer systemctl. Raises HookFailedError where it fails."""
        self.calls += 1
        if self.calls == self.killed_at:
            raise ProcessKilled
        self._tick()
        names = list(words[words.index("--") + 1 :]) if "--" in words else []
        verb = words[2]
        if verb == "show":
            return ProgramResult(0, "\n\n".join(map(self._shown, names)) + "\n", "")
        if verb == "list-unit-files":
            files = [name for name, unit in self.units.items() if unit.triggers and "@" not in name]  # not instances
            return ProgramResult(0, "".join(f"{name} enabled enabled\n" for name in files), "")
        if verb == "daemon-reload":
            self.reloads += 1
            self._loaded = frozenset(path.parent.name[: -len(".d")] for path in self.drop_ins.glob("*.d/*.conf"))
        for name in names:
            if name not in self.units:
                raise HookFailedError(f"systemctl failed: Unit {name} not found.")
            if verb == "start":
                self.start(name)
            elif verb == "stop":
                self._stop(name)
            elif verb == "reset-failed" and self.units[name].state == "failed":
                self.units[name].state, self.units[name].result = "inactive", "success"
        return ProgramResult(0, "", "")

    def start(self, name: str) -> bool:
        """Start a unit, and what it requires, as anybody may; return whether that is not refused."""
        unit = self.units[name]
        if unit.job == "start" or (unit.state == "active" and not unit.job):
            return True
        if self._is_blocked(name) or not all(self.start(other) for other in unit.requires):
            return False
        socket = self.units.get(unit.needs_socket)
        unit.is_lonely = socket is not None and socket.job != "start" and (socket.state != "active" or socket.job != "")
        unit.job, unit.job_ends = "start", self.now + _JOB_SECONDS
        return True

    # Inside

    def _is_blocked(self, name: str) -> bool:
        return name in self._loaded and any((self.drop_ins / f"{name}.d").glob("*.conf"))

    def _remembered(self) -> set[str]:
        """Return what systemd knows without being asked for it: what is up, and what that refers to."""
        known: set[str] = set()
        new = {name for name, unit in self.units.items() if unit.state != "inactive" or unit.job}
        while new:
            known |= new
            new = {other for name in new for other in (self.units[name].triggers, *self.units[name].requires)}
            new = new - known - {""}
        return known

    def _stop(self, name: str) -> None:
        unit = self.units[name]
        if unit.state == "active":
            if unit.job != "stop":
                unit.job, unit.job_ends = "stop", self.now + unit.stops_within
        else:
            unit.job = ""
        for other in self.units.values():
            if name in other.requires:
                self._stop(other.name)

    def _begin(self, unit: FakeUnit, since: float) -> None:
        self._invocations += 1
        unit.state, unit.result, unit.job = "active", "success", ""
        unit.invocation, unit.active_since = f"{self._invocations:032x}", since

    def _tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        for unit in self.units.values():
            if unit.job and self.now >= unit.job_ends:
                if unit.job == "stop":
                    unit.state, unit.job = "inactive", ""
                elif any(self.units[name].job for name in self._before(unit)):
                    continue  # systemd starts first what triggers it, and what it requires
                else:
                    self._begin(unit, self.now)
            if unit.state == "active" and unit.job != "stop" and not unit.triggers:
                self._live(unit)
            if self.asked and unit.triggers and unit.state == "active" and unit.job != "stop":
                self._ask(unit)

    def _before(self, unit: FakeUnit) -> Iterable[str]:
        return (*unit.requires, *(one.name for one in self.units.values() if one.triggers == unit.name))

    def _live(self, unit: FakeUnit) -> None:
        lived = self.now - unit.active_since
        if unit.is_lonely or (unit.breaks and lived > 0.5):
            unit.state, unit.result = "failed", "exit-code"
            self.failed.append(unit.name)
        elif lived > unit.lives:
            unit.state = "inactive"

    def _ask(self, trigger: FakeUnit) -> None:
        if trigger.name.endswith((".socket", ".path")) and not self.start(trigger.triggers):
            self.storms.append(trigger.name)
            trigger.state, trigger.result, trigger.job = "failed", "trigger-limit-hit", ""

    def _shown(self, name: str) -> str:
        unit = self.units.get(name)
        if unit is None:
            return "\n".join([f"Id={name}", "LoadState=not-found", "ActiveState=inactive", "SubState=dead"])
        state = {"stop": "deactivating"}.get(unit.job, unit.state)
        if unit.type == "oneshot" and state == "active":
            state = "activating"
        known = [one for one in self.units.values() if one.name in self._remembered()]
        values = {
            "Id": name,
            "LoadState": "loaded",
            "ActiveState": state,
            "SubState": "running" if state == "active" else "dead",
            "Result": unit.result,
            "Job": "7" if unit.job else "",
            "InvocationID": unit.invocation,
            "DropInPaths": " ".join(map(str, (self.drop_ins / f"{name}.d").glob("*.conf")))
            if name in self._loaded
            else "",
            "Transient": "no",
            "Type": unit.type if name.endswith(".service") else "",
            "RemainAfterExit": "no",
            "ActiveEnterTimestampMonotonic": str(int(unit.active_since * 1e6)),
            "Triggers": unit.triggers,
            "TriggeredBy": " ".join(one.name for one in known if one.triggers == name),
            "RequiredBy": " ".join(one.name for one in known if name in one.requires),
        }
        return "\n".join(f"{key}={value}" for key, value in values.items())
