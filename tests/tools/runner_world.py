# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is outside of a runner, in virtual time: the service (the emulator's model), hooks, clocks, boots.

A world outlives runners. What they do to it goes into its ledger, which ``tools.promises`` judges. The runner in it is
the real one; its client and its executor are made here.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from forewarn.emulator.clock import ManualClock
from forewarn.emulator.documents import render
from forewarn.emulator.lifecycle import UnknownNameError
from forewarn.emulator.model import Model
from forewarn.emulator.spec import Settings, VmSpec
from forewarn.events import LATEST_API_VERSION, Document, Event, Vm, parse_document
from forewarn.imds.client import READ_TIMEOUT_SECONDS
from forewarn.imds.errors import HTTP, TIMEOUT, Fault, LastingFault, PassingFault
from forewarn.imds.limiter import READ_RESERVE, Limiter
from forewarn.policy.engine import PolicySet
from forewarn.runner import assembly
from forewarn.runner.assembly import Equipment, assemble
from forewarn.runner.clocks import Stamp
from forewarn.runner.hooks import scheduler
from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import ENDED, FAILED, SUCCEEDED, TIMED_OUT, Outcome, Started
from forewarn.runner.impact import downtime
from forewarn.runner.journal.writer import Journal
from forewarn.runner.loop import Parts, Reloaded, Runner
from forewarn.runner.poller import IDENTITY_TIMEOUT_SECONDS, Identity
from forewarn.runner.reconciler import Reconciler
from forewarn.runner.requester import APPROVAL, INSTANCE, Answer
from forewarn.runner.telemetry.heartbeat import read as read_heartbeat
from forewarn.runner.telemetry.heartbeat import vm_name as earlier_vm_name
from forewarn.runner.telemetry.log import Log
from tools.clocks import ScriptedClocks
from tools.runner_profiles import policies
from tools.waiting import wait_until

VMS = ("web_0", "web_1")
EPOCH = 1_800_000_000.0
NEVER = math.inf
_TICK = 1e-6  # time moves, even where a sum of floats falls short of a moment by less than floats can tell
FIRST_PID = 10_000_000  # above all that Linux hands out


class Entry(NamedTuple):
    """Something that happened outside of the runner, at a moment of virtual time."""

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
        """Return when it ends and how, as things are now."""
        found = [
            (self.ends_at, self.result if self.asked_at > self.ends_at else ENDED),
            (self.asked_at + self.patience, ENDED),
            (self.timeout_at + self.patience, TIMED_OUT),
        ]
        return min(found, key=lambda item: item[0])

    def settle(self, now: float) -> None:
        """Let it end if it is time."""
        at, how = self.end()
        if self.over is None and at <= now + _TICK:
            self.over, self.over_at = how, at


class World:
    """``plan`` says of a new hook when it ends, and how. ``keep`` is told of every entry as it is made."""

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
        self.post_fault: str | None = None  # "failed", "lost"
        self.policies: Callable[[int], PolicySet] = policies  # by their generation
        self.bodyless = False  # answers have no body
        self.unreadable: frozenset[str] = frozenset()  # ids, in lower case, whose entries nobody can read
        self.nameless = False  # the instance metadata do not answer, so the VM does not know its name
        self.latency = 0.0  # seconds that each request takes
        self.stuck: frozenset[str] = frozenset()  # requests, as in runner.requester, that get no answer
        self.driven_since: float | None = None  # the time passes in the runner's own loop
        self.not_startable = False  # the next hook cannot be started
        self.failed_starts = 0
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
        """Around what lets time pass in the runner's own loop alone: then it has to be in time."""
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
        """Return the hooks that run, whoever started them."""
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

    def end_leftover(self, pid: int, started: int | None, _grace: float = 2.0) -> bool:
        """Do what ``executor.end_leftover`` does."""
        for hook in self.running():
            if (hook.uid + FIRST_PID, hook.boot) == (pid, started):
                hook.over, hook.over_at, hook.collected = ENDED, self.now, True
                self.note("leftover", uid=hook.uid)
                return True
        return False

    def kill(self) -> None:
        """Note that the runner was killed. Its hooks go on, and nobody ends them when their time is over."""
        for hook in self.running():
            hook.timeout_at = NEVER
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
        """Boot the machine anew, after ``kill``: nothing that ran runs any longer."""
        for hook in self.running():
            hook.over, hook.over_at, hook.collected = ENDED, self.now, True
        self.note("reboot")
        self.clock.advance(down)
        self.boot += 1
        self.booted_at = self.now - 3.0

    def change(self, event_id: str, **fields: Any) -> None:
        """Let the service list a scheduled event with other content under the same id."""
        life = self.model.find(event_id)
        life.spec = replace(life.spec, **fields)
        self.model._refresh()

    def postpone(self, event_id: str, seconds: float) -> None:
        """Let the service move NotBefore of a scheduled event: forward in time, or, if negative, towards now."""
        life = self.model.find(event_id)
        life.deadline += seconds
        life.not_before, life.start_at = self.model._not_before(life.deadline)
        self.model._refresh()

    def move_to(self, event_id: str, moment: float) -> None:
        """Let the service move NotBefore of a scheduled event to a moment of this world's time."""
        self.postpone(event_id, moment - self.model.find(event_id).deadline)

    def document(self, vm: str) -> Document:
        """Return what the service answers a VM."""
        self.model.request(vm)
        if self.bodyless:
            return Document()
        incarnation, events = self.model.document(vm)
        body = json.loads(render(incarnation, events, LATEST_API_VERSION, "rfc1123"))
        body["Events"] = [7 if item["EventId"].lower() in self.unreadable else item for item in body["Events"]]
        return parse_document(json.dumps(body))


class WorldClient:
    """A client of the world's service, for the runner of one VM. Requests take no time, but keep to the budget."""

    asked = ""  # what the latest request was for
    paid = False  # for the request that is made next

    def __init__(self, world: World, vm: str) -> None:
        self.limiter = Limiter(clock=lambda: world.now)
        self.world = world
        self.vm = vm
        self._shown: object = None
        self._read_at = -NEVER

    def _take(self, reserve: float) -> None:
        if self.paid:
            self.paid = False
            return
        wait = self.limiter.delay(reserve=reserve)
        self.world.clock.advance(wait)
        assert self.limiter.take(reserve=reserve)

    def read_once(self) -> Document:
        self._take(READ_RESERVE)
        world = self.world
        world.model.settle()
        if world.read_fault is not None:
            kind = LastingFault if world.read_fault in (400, 403) else PassingFault
            raise kind(f"answered {world.read_fault}", "", kind=HTTP, status=world.read_fault)
        document = world.document(self.vm)
        self._read_at = world.now
        show(world, document, "service", self)
        return document

    def approve(self, ids: Sequence[str], incarnation: int | str | None = None, patience_seconds: float = 0.0) -> None:
        self._take(0.0)
        world = self.world
        world.at_point("before a POST")
        result, fault = self._approve(ids)
        world.note(
            "post", ids=list(ids), result=result, age=world.now - self._read_at, wall=world.wall, after=self.asked
        )
        world.at_point("after a POST")
        if fault is not None:
            raise fault

    def _approve(self, ids: Sequence[str]) -> tuple[str, Fault | None]:
        trouble = "lost" if APPROVAL in self.world.stuck else self.world.post_fault
        if trouble == "failed":
            return "failed", PassingFault("answered 503", "", kind=HTTP, status=503)
        try:
            self.world.model.approve(ids, self.vm)
        except UnknownNameError as error:
            return "refused", LastingFault(str(error), "", kind=HTTP, status=400)
        return ("lost", PassingFault("no answer", "", kind=TIMEOUT)) if trouble == "lost" else ("taken", None)

    def instance(self, patience_seconds: float = 0.0) -> Vm:
        self.paid = False
        if self.world.nameless:
            raise PassingFault("no answer", "", kind=TIMEOUT)
        self.world.note("known")
        return Vm(name=self.vm)

    def close(self) -> None:
        """There is nothing to close."""


def show(world: World, document: Document, source: str, watcher: Any) -> None:
    """Write a document that the runner was shown into the ledger, unless it is the same as before."""
    events = [
        {
            "id": event.event_id,
            "type": event.event_type,
            "status": event.event_status,
            "description": event.description,
            "resources": list(event.resources),
            "source": event.event_source,
            "duration": event.duration_in_seconds,
            "problems": bool(event.problems),
            "not_before": None if event.not_before is None else event.not_before.timestamp(),
        }
        for event in document.events
    ]
    unreadable = bool(document.problems) or document.incarnation is None
    shown = (events, unreadable)
    if shown != watcher._shown:
        watcher._shown = shown
        world.note("document", source=source, events=events, unreadable=unreadable)


class WorldRequester:
    """Makes requests that take the world's time, for one runner. An approval has its effect where it begins."""

    def __init__(self, world: World, client: WorldClient, clock: Callable[[], float]) -> None:
        self.due = NEVER  # when the request that is under way is answered
        self._world = world
        self._client = client
        self._clock = clock
        self._request: Callable[[], object] | None = None
        self._made: tuple[object, Fault | None] | None = None

    @property
    def busy(self) -> bool:
        return self._request is not None

    @property
    def answered(self) -> bool:
        return self.busy and self._world.now >= self.due - _TICK

    def begin(self, what: str, request: Callable[[], object]) -> None:
        assert not self.busy, "one request at a time"
        world = self._world
        world.model.settle()  # what happens to the service by now may be that it answers again
        seconds = world.latency
        self._made = None
        if what in world.stuck:
            seconds = IDENTITY_TIMEOUT_SECONDS if what == INSTANCE else READ_TIMEOUT_SECONDS
            self._made = (None, PassingFault("no answer", "", kind=TIMEOUT))
        if what == APPROVAL:
            self._made = self._make(request)
        elif self._client.limiter.take(reserve=READ_RESERVE):
            self._client.paid = self._made is None
        else:
            seconds += self._client.limiter.delay(reserve=READ_RESERVE)
        self._client.asked = what
        self.due, self._request = world.now + seconds, request

    def take(self) -> Answer:
        assert self.answered
        assert self._request is not None
        value, fault = self._made or self._make(self._request)
        at = self._clock() - (self._world.now - self.due)
        self.due, self._request = NEVER, None
        return Answer(value, fault, at)

    def wait(self, seconds: float) -> bool:
        self._world.clock.advance(max(0.0, min(self.due, self._world.now + seconds) - self._world.now))
        return self.answered

    @staticmethod
    def _make(request: Callable[[], object]) -> tuple[object, Fault | None]:
        try:
            return request(), None
        except Fault as fault:
            return None, fault


class WorldExecutor:
    """Runs hooks in the world, for one runner."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hooks: dict[Hashable, Hook | int] = {}  # a number: of one that could not be started

    @property
    def running(self) -> int:
        return len(self._hooks)

    def start(self, token: Hashable, command: Command) -> Started | None:
        world = self._world
        environment = command.environment
        fields = {
            "event": environment["FOREWARN_EVENT_ID"],
            "drill": environment["FOREWARN_DRILL"] == "1",
            "phase": environment["FOREWARN_PHASE"],
            "name": command.argv[1],
            "attempt": int(environment["FOREWARN_ATTEMPT"]),
        }
        world.at_point(f"before the start of {fields['name']}")
        if world.not_startable:
            world.not_startable = False
            world.failed_starts += 1
            self._hooks[token] = -world.failed_starts
            world.note(
                "start",
                uid=-world.failed_starts,
                timeout=command.timeout_seconds,
                wall=world.wall,
                ends_at=None,
                **fields,
            )
            return None
        hook = self._hooks[token] = world.start(fields, command.timeout_seconds)
        world.at_point(f"after the start of {fields['name']}")
        return Started(hook.uid + FIRST_PID, hook.boot)

    def end(self, token: Hashable, reason: str) -> None:
        hook = self._hooks.get(token)
        if isinstance(hook, Hook) and hook.asked_at == NEVER:
            hook.asked_at = self._world.now
            self._world.note("asked", uid=hook.uid)

    def finished(self) -> Iterator[tuple[Hashable, Outcome]]:
        """One at a time: the ledger must not tell of an end before the runner knows of it."""
        self._world.running()
        for token, hook in list(self._hooks.items()):
            if isinstance(hook, int):
                del self._hooks[token]
                self._world.note("end", uid=hook, result="not-started")
                yield token, Outcome("not-started", None, 0.0, "", "no such file")
            elif hook.over is not None:
                del self._hooks[token]
                hook.collected = True
                self._world.note("end", uid=hook.uid, result=hook.over, late=self._world.late(hook))
                self._world.at_point(f"end of {hook.name}")
                code = {SUCCEEDED: 0, FAILED: 1}.get(hook.over)
                reason = "" if hook.over == SUCCEEDED else f"{hook.over}: it is a test"
                yield token, Outcome(hook.over, code, self._world.now - hook.started_at, "", reason)

    def close(self) -> None:
        for hook in self._hooks.values():
            if isinstance(hook, Hook):
                hook.over, hook.over_at, hook.collected = hook.over or ENDED, self._world.now, True
                self._world.note("stopped", uid=hook.uid)

    def watches(self, hook: Hook) -> bool:
        """Tell whether it will hear of a hook's end."""
        return any(watched is hook for watched in self._hooks.values())

    def next_end(self) -> float:
        """Return the moment at which the next of its hooks ends."""
        return min((hook.end()[0] for hook in self._hooks.values() if isinstance(hook, Hook)), default=NEVER)


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lost = 0
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def named(self, name: str, /, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines with that name and these fields."""
        return [line for _level, found, line in self.lines if found == name and fields.items() <= line.items()]

    def info(self, name: str, /, **fields: Any) -> None:
        self.lines.append(("info", name, fields))

    def warning(self, name: str, /, **fields: Any) -> None:
        self.lines.append(("warning", name, fields))

    def error(self, name: str, /, **fields: Any) -> None:
        self.lines.append(("error", name, fields))


class PipedLines(Lines):
    """A log that also goes the way of the service's: through a pipe, which nobody reads until ``read`` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        self._stream = os.fdopen(writer, "w")
        self._log = Log(self._stream, "json")
        self._log.detach()
        self._received = b""

    def info(self, name: str, /, **fields: Any) -> None:
        super().info(name, **fields)
        self._log.info(name, **fields)

    def warning(self, name: str, /, **fields: Any) -> None:
        super().warning(name, **fields)
        self._log.warning(name, **fields)

    def error(self, name: str, /, **fields: Any) -> None:
        super().error(name, **fields)
        self._log.error(name, **fields)

    def read(self) -> None:
        """Read all; every line is there, or counted in one that says how many are missing where it stands."""
        wait_until(self._read_some, what="the log has lines that nobody can read")
        found = [json.loads(line) for line in self._received.splitlines()]
        lost = sum(line["lines"] for line in found if line["line"] == "log-lines-lost")
        told = [line["line"] for line in found if line["line"] != "log-lines-lost"]
        assert len(told) + lost == len(self.lines)
        if not lost:
            assert told == [name for _level, name, _fields in self.lines]

    def _read_some(self) -> bool:
        self._log.close(0.01)  # lets the writer go on
        try:
            news = os.read(self._reader, 65536)
        except BlockingIOError:
            return self._log._writer is None or (self._log._writer._idle.acquire(False) and self._give_back())
        self._received += news
        return False

    def _give_back(self) -> bool:
        assert self._log._writer
        self._log._writer._idle.release()
        return True

    def close(self) -> None:
        """End it; a writer that waits for a reader ends by that."""
        os.close(self._reader)
        with suppress(OSError):
            self._stream.close()


class VirtualStop:
    """Stands for signals, and for waiting: a wait moves the world's clock, up to the end of the next hook, or an answer
    of the service.
    """

    def __init__(
        self,
        world: World,
        executor: WorldExecutor,
        requester: WorldRequester,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        self.received: str | None = None
        self.reload = False
        self._world = world
        self._executor = executor
        self._requester = requester
        self._until = until
        self._spins = 0  # waits in a row that took no time

    def wait(self, seconds: float) -> None:
        before = self._world.now
        end = min(before + seconds, max(before, min(self._executor.next_end(), self._requester.due)))
        self._world.clock.advance(max(end - before, _TICK if seconds > 0 else 0.0))
        self._spins = self._spins + 1 if self._world.now - before <= _TICK else 0
        assert self._spins < 1000, "the runner spins: it waits for what does not come"
        if self._until():
            self.received = "SIGTERM"

    def wake(self) -> None:
        """Nobody waits: hooks end in virtual time."""

    @contextmanager
    def request(self) -> Iterator[None]:
        yield


class Instance(NamedTuple):
    """One runner, with what it is made of."""

    runner: Runner
    parts: Parts
    stop: VirtualStop
    executor: WorldExecutor
    log: Lines


def new_runner(
    world: World,
    directory: str,
    vm: str,
    journal: Callable[..., Journal] = Journal,
    until: Callable[[], bool] = lambda: False,
) -> Instance:
    """Put a runner together on a state directory, as ``forewarn run`` does."""
    clocks = world.clocks()
    executor = WorldExecutor(world)
    client: Any = WorldClient(world, vm)
    requester = WorldRequester(world, client, clocks.monotonic)
    stop = VirtualStop(world, executor, requester, until)
    log = world.new_log()
    beat = read_heartbeat(directory)
    last_poll = None
    if beat is not None and beat.fields.get("last_good_poll") is not None:
        last_poll = Stamp.of(beat.fields["last_good_poll"])
    world.note_exits()
    generation = world.generation
    world.note("run", boot=world.boot, booted_at=world.booted_at, generation=generation)

    watchers = [client]

    def reload() -> Reloaded:
        for watcher in watchers:  # so that what is decided by the new policies is judged by them
            watcher._shown = None
        world.note("reload", generation=world.generation)
        return Reloaded(world.policies(world.generation), None, 1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "Executor", lambda *args, **options: executor)
        patch.setattr(assembly, "Journal", journal)
        identity = Identity(client, None, log, clocks.monotonic, earlier_vm_name(beat, clocks))
        if identity.vm.name is not None:
            world.note("known")
        equipment = Equipment(clocks, log, directory=directory, requester=requester)
        parts = assemble(client, identity, world.policies(generation), stop, stop.wake, equipment)
        down = downtime(beat, clocks) if beat else None
        runner = Runner(parts, stop, reload=reload, last_poll=last_poll, down_seconds=down)
    watchers.append(_show_drills(world, parts.drill_reconciler))
    return Instance(runner, parts, stop, executor, log)


def _show_drills(world: World, reconciler: Reconciler) -> Any:
    class Watcher:
        _shown: object = None

    watcher, process = Watcher(), reconciler.process

    def shown(document: Document, vm: Vm, age_seconds: float = 0.0) -> list[list[Event]]:
        show(world, document, "drills", watcher)
        return process(document, vm, age_seconds)

    reconciler.process = shown  # type: ignore[method-assign]  # to see what the runner is given
    return watcher


@contextmanager
def leftovers_in(world: World) -> Iterator[None]:
    """Let the scheduler look for the hooks of an earlier runner in the world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "ask_leftover", lambda *_: False)
        patch.setattr(scheduler, "end_leftover", world.end_leftover)
        yield
