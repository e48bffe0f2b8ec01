# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is outside a runner, in virtual time: the service (the emulator's model), hooks, clocks, boots.

A world outlives runners. What they do to it goes into its ledger, which ``judges.promises`` judges. The runner in it
is the real one; ``tools.worlds.world_runner`` makes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from forewarn.emulator.clock import ManualClock
from forewarn.emulator.documents import render
from forewarn.emulator.model import Model
from forewarn.emulator.spec import Settings, VmSpec
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.engine import PolicySet
from forewarn.runner.hooks.executor import ENDED, SUCCEEDED, TIMED_OUT
from tools.fixtures.clocks import ScriptedClocks
from tools.fixtures.logs import Lines
from tools.worlds.runner_profiles import policies

VMS = ("web_0", "web_1")
EPOCH = 1_800_000_000.0
NEVER = math.inf
TICK = 1e-6  # time moves, even where a sum of floats falls short of a moment by less than floats can tell
FIRST_PID = 10_000_000  # above all that Linux hands out


class Entry(NamedTuple):
    """Something that happened outside the runner, at a moment of virtual time."""

    at: float
    kind: str
    fields: dict[str, Any]


@dataclass
class Hook:
    """A hook's process. It ends by itself at ``ends_at``; ``patience`` is how long it ignores SIGTERM."""

    uid: int
    boot: int
    event: str
    drill: bool
    phase: str
    name: str
    attempt: int
    started_at: float
    timeout_at: float
    ends_at: float = NEVER
    result: str = SUCCEEDED
    patience: float = 0.0
    asked_at: float = NEVER
    over: str | None = None  # its result
    collected: bool = False  # the ledger has its end
    over_at: float = NEVER

    def end(self) -> tuple[float, str]:
        """Return when it ends and how, if nothing changes."""
        found = [
            (self.ends_at, self.result if self.asked_at > self.ends_at else ENDED),
            (self.asked_at + self.patience, ENDED),
            (self.timeout_at + self.patience, TIMED_OUT),
        ]
        return min(found, key=lambda item: item[0])

    def settle(self, now: float) -> None:
        """Let it end if it is time."""
        at, how = self.end()
        if self.over is None and at <= now + TICK:
            self.over, self.over_at = how, at


class World:
    """``plan`` sets when and how a new hook ends. ``keep`` is called with every entry as it is made."""

    def __init__(
        self,
        plan: Callable[[Hook], None] = lambda hook: None,
        keep: Callable[[Entry], None] = lambda entry: None,
        settings: Settings | None = None,
    ) -> None:
        self.clock = ManualClock(EPOCH)
        self.model = Model(self.clock, [VmSpec(name) for name in VMS], settings or Settings(switch_off=None))
        self.ledger: list[Entry] = []
        self.hooks: list[Hook] = []
        self.wall_error = 0.0
        self.boot = 1
        self.booted_at = -5.0
        self.generation = 0  # of the policies that a runner finds
        self.new_log: Callable[[], Lines] = Lines
        # How the service behaves
        self.read_fault: int | None = None
        # Approvals are not taken ("failed", "closed"), or their answers are lost ("lost", "closed-after"); when the
        # connection is closed, that is noticed at once.
        self.post_fault: str | None = None
        self.freeze_seconds = 0.0  # for which the VM stands still before its next approval is sent
        self.policies: Callable[[int], PolicySet] = policies  # by their generation
        self.bodyless = False  # answers have no body
        self.bodyless_since: float | None = None  # when the first of such answers came, if the latest is one
        self.unreadable: frozenset[str] = frozenset()  # ids, in lower case, whose entries nobody can read
        self.nameless = False  # the instance metadata do not answer, so the VM does not know its name
        self.latency = 0.0  # seconds that each request takes
        self.stuck: frozenset[str] = frozenset()  # requests, as in runner.requester, that get no answer
        self.driven_since: float | None = None  # the time passes in the runner's own loop
        self.dry_run = False  # a runner that starts only says what it would do
        self.not_startable = False  # the next hook cannot be started
        self.failed_starts = 0
        self.job = False  # hooks end with their runner, as on Windows
        self.at_point: Callable[[str], None] = lambda what: None
        self._plan = plan
        self._keep = keep

    @property
    def now(self) -> float:
        return self.clock.now()

    @property
    def wall(self) -> float:
        return self.clock.wall(self.now) + self.wall_error

    def clocks(self) -> ScriptedClocks:
        """Return the clocks of this boot."""
        booted_at = self.booted_at
        return ScriptedClocks(lambda: self.now - booted_at, lambda: self.wall, f"boot-{self.boot}")

    @contextmanager
    def driven(self) -> Iterator[None]:
        """Mark that time passes only in the runner's own loop: it must then act in time."""
        self.driven_since = self.now
        self.note("driven", on=True)
        try:
            yield
        finally:
            self.driven_since = None
            self.note("driven", on=False)

    def late(self, hook: Hook) -> float:
        """Return for how long the runner could have known of a hook's end."""
        return 0.0 if self.driven_since is None else self.now - max(hook.over_at, self.driven_since)

    def note(self, kind: str, **fields: Any) -> None:
        """Write an entry into the ledger."""
        entry = Entry(self.now, kind, fields)
        self.ledger.append(entry)
        self._keep(entry)

    def running(self) -> list[Hook]:
        """Return the hooks that run, of this runner and earlier ones."""
        for hook in self.hooks:
            hook.settle(self.now)
        return [hook for hook in self.hooks if hook.over is None]

    def start(self, fields: dict[str, Any], timeout: float) -> Hook:
        """Start a hook."""
        hook = Hook(len(self.hooks) + 1, self.boot, started_at=self.now, timeout_at=self.now + timeout, **fields)
        self._plan(hook)
        self.hooks.append(hook)
        ends_at = None if hook.ends_at == NEVER else hook.ends_at
        self.note("start", uid=hook.uid, timeout=timeout, wall=self.wall, ends_at=ends_at, **fields)
        return hook

    def end_leftovers(self, processes: Iterable[tuple[int, int | None]], _grace: float = 2.0) -> set[int]:
        """Do what ``executor.end_leftovers`` does."""
        of_before = set(processes)
        found = set()
        for hook in self.running():
            if (hook.uid + FIRST_PID, hook.boot) in of_before:
                hook.over, hook.over_at, hook.collected = ENDED, self.now, True
                self.note("leftover", uid=hook.uid)
                found.add(hook.uid + FIRST_PID)
        return found

    def kill(self) -> None:
        """Note that the runner was killed. Its hooks go on, and nobody ends them when their time is over, or it is a
        ``job`` that ends them.
        """
        for hook in self.running():
            hook.timeout_at = NEVER
            if self.job:
                hook.over, hook.over_at = ENDED, self.now
        self.note_exits()
        self.note("kill")

    def note_exits(self) -> None:
        """Note which hooks have ended that no runner watches."""
        self.running()
        for hook in self.hooks:
            if hook.over is not None and not hook.collected:
                hook.collected = True
                self.note("exit", uid=hook.uid)

    def reboot(self, down: float) -> None:
        """Boot the machine, after ``kill``: nothing survives."""
        for hook in self.running():
            hook.over, hook.over_at, hook.collected = ENDED, self.now, True
        self.note("reboot")
        self.clock.advance(down)
        self.boot += 1
        self.booted_at = self.now - 3.0

    def change(self, event_id: str, **fields: Any) -> None:
        """Let the service list a scheduled event with other content under the same id."""
        event = self.model.find(event_id)
        event.spec = replace(event.spec, **fields)
        self.model._refresh()

    def postpone(self, event_id: str, seconds: float) -> None:
        """Let the service move NotBefore of a scheduled event: forward in time, or, if negative, towards now."""
        event = self.model.find(event_id)
        event.deadline += seconds
        event.not_before, event.start_at = self.model._not_before(event.deadline)
        self.model._refresh()

    def move_to(self, event_id: str, moment: float) -> None:
        """Let the service move NotBefore of a scheduled event to a moment of this world's time."""
        self.postpone(event_id, moment - self.model.find(event_id).deadline)

    def body(self, vm: str) -> bytes:
        """Return what the service answers a VM."""
        self.model.request(vm)
        if self.bodyless:
            return b""
        incarnation, events = self.model.document(vm)
        body = json.loads(render(incarnation, events, LATEST_API_VERSION, "rfc1123"))
        body["Events"] = [7 if item["EventId"].lower() in self.unreadable else item for item in body["Events"]]
        return json.dumps(body).encode()

    def freeze(self) -> None:
        """Let the VM stand still, if it has to before its next approval and no hook runs, whose time would pass."""
        seconds, self.freeze_seconds = self.freeze_seconds, 0.0
        if seconds and not self.running():
            driven = self.driven_since is not None
            if driven:
                self.note("driven", on=False)
            self.clock.advance(seconds)
            if driven:
                self.driven_since = self.now
                self.note("driven", on=True)
        self.model.settle()
