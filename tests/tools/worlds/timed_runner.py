# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner in which everything is real but the time: hooks, journal, HTTP to the emulator; its clocks are the test's.

A *story* is a generator that goes on whenever the runner waits: it schedules events and injects faults, and yields to
let time pass.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from typing import Any

from forewarn.compiler.policies import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.clock import ManualClock
from forewarn.emulator.requestlog import LoggedRequest
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from forewarn.imds.client import Client
from forewarn.policy.engine import PolicySet
from forewarn.runner.assembly import assemble
from forewarn.runner.hooks.executor import Executor
from forewarn.runner.options import PreviousRunner, RunnerOptions
from forewarn.runner.poller import VmIdentity
from forewarn.runner.telemetry.heartbeat import read as read_heartbeat
from tools.fixtures.clocks import ScriptedClocks
from tools.fixtures.logs import Lines
from tools.fixtures.requesters import InlineRequester
from tools.judges.wire_judge import WireJudge
from tools.sites.waiting import wait_until

Story = Iterator[None]
_PATIENCE_SECONDS = 120.0  # real ones
# A hook writes down that it ran. To prepare for an event with the Description "long" it waits for a file "go".
_HOOK = """#!/bin/sh
cd "${0%/*}" || exit 1
echo "$FOREWARN_PHASE $FOREWARN_EVENT_ID $FOREWARN_ATTEMPT" >> hooks
[ "$FOREWARN_PHASE $FOREWARN_DESCRIPTION" = "prepare long" ] || exit 0
while [ ! -e go ]; do sleep 0.01; done
"""
_POLICY = """
name: faults
rule:
  match:
    - {{id: held, condition: event.EventType == "Terminate", output: hold}}
    - id: plain
      condition: event.Description.startsWith("plain")
      output: approve
    - id: long
      condition: event.Description == "long"
      output: approve
      prepare: [{{run: [{hook}, long], timeout: 15m}}]
      recover: [{{run: [{hook}, long]}}]
    - id: drain
      output: approve
      prepare: [{{run: [{hook}], timeout: 15m}}]
      recover: [{{run: [{hook}]}}]
"""


class TimedRunner:
    """A VM named web_0, its service, and one runner after the other. To be entered.

    ``directory`` is best in memory: a journal is written to the disk after every step.

    ``wall_error`` is what its wall clock shows beside the service's. ``settings`` are the emulator's. While a hook runs
    no time passes, but for ``long_hooks`` that are known to go on.
    """

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.clock = ManualClock()
        self.wall_error = 0.0
        self.long_hooks = 0
        self.log = Lines()
        self.state = directory / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.directory = directory
        hook = directory / "hook"
        hook.write_text(_HOOK)
        hook.chmod(0o755)
        (directory / "policy.yml").write_text(_POLICY.format(hook=hook))
        self._policies = PolicySet(load_policies([directory / "policy.yml"]))
        chosen = Settings(**{"start_delay": 2.0, "gone_after": 6.0, "switch_off": None, **settings})
        self.server = EmulatorServer(vms=["web_0"], clock=self.clock, settings=chosen)
        self.server.emulation.wait_until = self._jump  # type: ignore[method-assign]  # nobody else moves the clock
        self.emulator = EmulatorClient(self.server.url)
        self.wire = WireJudge(self.server.emulation, "web_0")

    def __enter__(self) -> TimedRunner:
        self.server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        (self.directory / "go").touch()
        self.emulator.close()
        self.server.close()
        assert kind is not None or self.wire.broken() == []

    def _jump(self, moment: float) -> None:
        self.clock.advance(max(0.0, moment - self.clock.now()))

    # For stories

    @property
    def now(self) -> float:
        """The seconds since the world began."""
        return self.clock.now()

    def until(self, what: Callable[[], object], seconds: float = 60.0) -> Story:
        """Let time pass until something is true, for so long at the most."""
        end = self.now + seconds
        while not what():
            assert self.now <= end, f"not within {seconds:g} s; the log: {self.log.lines}"
            yield

    def wait(self, seconds: float) -> Story:
        """Let time pass."""
        end = self.now + seconds
        yield from self.until(lambda: self.now >= end, seconds + 5.0)

    def long_hook(self, event_id: str) -> Story:
        """Let time pass until the long hook of an event has begun, which takes real time; it goes on from then on."""
        yield from self.until(lambda: self.lines("hook-started", event_id=event_id), 200.0)
        wait_until(lambda: self.hooks()[f"prepare {event_id} 1"])
        self.long_hooks = 1

    def let_go(self) -> None:
        """Let the long hook end."""
        self.long_hooks = 0
        (self.directory / "go").touch()

    def lines(self, name: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines of the log with that name and these fields."""
        return self.log.named(name, **fields)

    def hooks(self) -> Counter[str]:
        """Return how often each hook ran, as "PHASE EVENT ATTEMPT"."""
        written = self.directory / "hooks"
        return Counter(written.read_text().splitlines() if written.exists() else [])

    def posts(self) -> int:
        """Return how many approvals arrived."""
        return sum(entry.method == "POST" for entry in self.requests())

    def requests(self) -> list[LoggedRequest]:
        """Return all requests, whatever was answered."""
        with self.server.emulation.lock:
            return self.server.emulation.log.since()

    def started(self, event_id: str) -> bool:
        """Return whether an event has started."""
        with self.server.emulation.lock:
            return self.server.emulation.model.find(event_id).started is not None

    def over(self, event_id: str) -> bool:
        """Return whether the runner is done with an event that has hooks."""
        return any(self.lines("state", event_id=event_id, to=state) for state in ("done", "cancelled"))

    # The runner

    def play(self, story: Story) -> None:
        """Run a runner until the story ends, which is its stop signal."""
        stop = _Stop(self, story)
        clocks = ScriptedClocks(self.clock.now, lambda: self.clock.wall(self.clock.now()) + self.wall_error)
        url = self.server.vm_endpoint("web_0")
        # The real time that a busy machine takes for an answer is no fault of the service.
        asking, identifying = (
            Client(
                url,
                clock=self.clock.now,
                sleep=self.clock.advance,
                wall=clocks.wall,
                age_clock=self.clock.now,
                read_timeout=_PATIENCE_SECONDS,
            )
            for _ in range(2)
        )
        identifying.limiter = asking.limiter
        beat = read_heartbeat(str(self.state))
        with asking, identifying:
            identity = VmIdentity(identifying, None, self.log, clocks.monotonic)
            previous = PreviousRunner(None if beat is None else beat.stamp)
            requester = InlineRequester(clocks.monotonic)
            options = RunnerOptions(clocks, self.log, directory=str(self.state), previous=previous, requester=requester)
            runner = assemble(asking, identity, self._policies, stop, stop.woken.set, options)
            stop.executor = runner.scheduler._executor
            try:
                runner.run(1.0)
            finally:
                runner.close()


class _Stop:
    """Stands for signals and for waiting."""

    def __init__(self, world: TimedRunner, story: Story) -> None:
        self.received: str | None = None
        self.reload = False
        self.woken = Flag()
        self.executor: Executor | None = None
        self._world = world
        self._story = story

    def wait(self, seconds: float) -> None:
        """Wait for hooks in real time, for all else in the world's."""
        if next(self._story, self) is self:
            self.received = "SIGTERM"
        elif self.executor is not None and self.executor.running > self._world.long_hooks:
            assert self.woken.wait(_PATIENCE_SECONDS), "a hook hangs"
        elif not self.woken.is_set():
            self._world.clock.advance(seconds)
        self.woken.clear()


@contextmanager
def memory() -> Iterator[Path]:
    """Yield a directory in memory, where there is such a thing."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="forewarn-", dir=place) as directory:
        yield Path(directory)


def most_requests(entries: Sequence[LoggedRequest], seconds: float) -> int:
    """Return the largest number of requests that arrived within so many seconds of the emulator's time."""
    times = [entry.received.emulated for entry in entries]
    return max((bisect_left(times, start + seconds) - place for place, start in enumerate(times)), default=0)
