# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner of one VM in a simulated world: the real one, except its client, executor, log and waiting."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from forewarn.emulator.lifecycle import UnknownNameError
from forewarn.events import Document, Event, Vm
from forewarn.imds.client import READ_TIMEOUT_SECONDS, Client
from forewarn.imds.errors import CONNECTION, GARBAGE, TIMEOUT, Fault, PassingFault
from forewarn.imds.limiter import READ_RESERVE
from forewarn.imds.transport import ImdsRequest, Response, Transport
from forewarn.runner import assembly
from forewarn.runner.assembly import assemble
from forewarn.runner.clocks import Stamp
from forewarn.runner.hooks import scheduler
from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import ENDED, FAILED, SUCCEEDED, HookProcess, HookResult
from forewarn.runner.impact import downtime
from forewarn.runner.journal.writer import Journal
from forewarn.runner.loop import Runner
from forewarn.runner.operator_pause import reported_pause
from forewarn.runner.options import Configuration, GroupOptions, Mode, PreviousRunner, RunnerOptions
from forewarn.runner.poller import IDENTITY_TIMEOUT_SECONDS, VmIdentity
from forewarn.runner.reconciler import Reconciler
from forewarn.runner.requester import APPROVAL, INSTANCE, RequestResult
from forewarn.runner.telemetry.heartbeat import read as read_heartbeat
from forewarn.runner.telemetry.heartbeat import vm_name as earlier_vm_name
from tools.fixtures.clocks import ScriptedClocks
from tools.fixtures.logs import Lines
from tools.fixtures.replaced import replaced
from tools.worlds.runner_world import FIRST_PID, NEVER, TICK, Hook, World


class WorldTransport(Transport):
    """Carries requests to the world's service. They take no time."""

    def __init__(self, world: World, vm: str) -> None:
        super().__init__("127.0.0.1", 9, 1.0, lambda: world.now)
        self.asked = ""  # what the latest request was for
        self.paid = False  # for the request that is made next
        self._world = world
        self._vm = vm
        self._documents = 0
        self._document_at = -NEVER
        self._listed: Any = None  # with the latest document

    def exchange(self, request: ImdsRequest, timeout: float, admit: Callable[[], None]) -> Response:
        world = self._world
        if request.body is not None:
            return self._approve([each["EventId"] for each in json.loads(request.body)["StartRequests"]], admit)
        if not self.paid and "/instance" not in request.target:
            admit()
        self.paid = False
        if "/instance" in request.target:
            if world.nameless:
                raise PassingFault("no answer", "", kind=TIMEOUT)
            world.note("known")
            return Response(200, "", {}, json.dumps({"compute": {"name": self._vm}}).encode(), world.now)
        world.model.settle()
        if world.read_fault is not None:
            if world.read_fault < 200:
                raise PassingFault("an interim answer", "", kind=GARBAGE)
            return Response(world.read_fault, "", {}, b"", world.now)
        answer = Response(200, "", {}, world.body(self._vm), world.now)  # which can switch the service on
        self._documents += 1
        self._document_at, self._listed = world.now, world.model.document(self._vm)
        return answer

    def _approve(self, ids: Sequence[str], admit: Callable[[], None]) -> Response:
        world = self._world
        world.at_point("before a POST")
        world.freeze()
        admit()
        changed = world.model.document(self._vm) != self._listed
        result, status, lost = self._taken(ids)
        document = f"{self._documents} at {self._document_at}"
        fields = {"result": result, "age": world.now - self._document_at, "wall": world.wall, "after": self.asked}
        world.note("post", ids=list(ids), **fields, document=document, changed=changed)
        world.at_point("after a POST")
        if lost is not None:
            raise PassingFault("no answer", "", kind=lost)
        return Response(status, "", {}, b"", world.now)

    def _taken(self, ids: Sequence[str]) -> tuple[str, int, str | None]:
        """Return what becomes of an approval, the status that answers it, and why there is no answer."""
        trouble = "lost" if APPROVAL in self._world.stuck else self._world.post_fault
        if trouble in ("failed", "closed"):
            return "failed", 503, CONNECTION if trouble == "closed" else None
        try:
            self._world.model.approve(ids, self._vm)
        except UnknownNameError:
            return "refused", 400, None
        if trouble is None:
            return "taken", 200, None
        return "lost", 200, TIMEOUT if trouble == "lost" else CONNECTION


class WorldClient(Client):
    """The client of the runner of one VM: the real one, whose requests go to the world's service."""

    def __init__(self, world: World, vm: str) -> None:
        self.carrier = WorldTransport(world, vm)
        super().__init__(
            "http://127.0.0.1:9",
            clock=lambda: world.now,
            sleep=world.clock.advance,
            wall=lambda: world.wall,
            transport=self.carrier,
        )
        self._world = world
        self._shown: object = None

    def read_once(self) -> Document:
        document = super().read_once()
        show(self._world, document, "service", self)
        return document


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
    if source == "service":
        world.bodyless_since = world.now if world.bodyless_since is None else world.bodyless_since
        if document.incarnation is not None:
            world.bodyless_since = None
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
    def has_response(self) -> bool:
        return self.busy and self._world.now >= self.due - TICK

    def begin(self, what: str, request: Callable[[], object]) -> None:
        assert not self.busy, "one request at a time"
        world = self._world
        world.model.settle()  # by now the service may answer again
        seconds = world.latency
        self._made = None
        if what in world.stuck:
            seconds = IDENTITY_TIMEOUT_SECONDS if what == INSTANCE else READ_TIMEOUT_SECONDS
            self._made = (None, PassingFault("no answer", "", kind=TIMEOUT))
        if what == APPROVAL:
            self._made = self._make(request)
        elif self._client.limiter.take(reserve=READ_RESERVE):
            self._client.carrier.paid = self._made is None
        else:
            seconds += self._client.limiter.delay(reserve=READ_RESERVE)
        self._client.carrier.asked = what
        self.due, self._request = world.now + seconds, request

    def take_response(self) -> RequestResult:
        assert self.has_response
        assert self._request is not None
        value, fault = self._made or self._make(self._request)
        at = self._clock() - (self._world.now - self.due)
        self.due, self._request = NEVER, None
        return RequestResult(value, fault, at)

    def wait(self, seconds: float) -> bool:
        self._world.clock.advance(max(0.0, min(self.due, self._world.now + seconds) - self._world.now))
        return self.has_response

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

    def start(self, token: Hashable, command: Command) -> HookProcess | None:
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
        return HookProcess(hook.uid + FIRST_PID, hook.boot)

    def end(self, token: Hashable, reason: str) -> None:
        hook = self._hooks.get(token)
        if isinstance(hook, Hook) and hook.asked_at == NEVER:
            hook.asked_at = self._world.now
            self._world.note("asked", uid=hook.uid)

    def take_results(self) -> Iterator[tuple[Hashable, HookResult]]:
        """One at a time: the ledger must not have an end before the runner knows of it."""
        self._world.running()
        for token, hook in list(self._hooks.items()):
            if isinstance(hook, int):
                del self._hooks[token]
                self._world.note("end", uid=hook, result="not-started")
                yield token, HookResult("not-started", None, 0.0, "", "no such file")
            elif hook.over is not None:
                del self._hooks[token]
                hook.collected = True
                self._world.note("end", uid=hook.uid, result=hook.over, late=self._world.late(hook))
                self._world.at_point(f"end of {hook.name}")
                code = {SUCCEEDED: 0, FAILED: 1}.get(hook.over)
                reason = "" if hook.over == SUCCEEDED else f"{hook.over}: it is a test"
                yield token, HookResult(hook.over, code, self._world.now - hook.started_at, "", reason)

    def close(self) -> None:
        for hook in self._hooks.values():
            if isinstance(hook, Hook):
                hook.over, hook.over_at, hook.collected = hook.over or ENDED, self._world.now, True
                self._world.note("stopped", uid=hook.uid)

    def watches(self, hook: Hook) -> bool:
        """Return whether it will notice a hook's end."""
        return any(watched is hook for watched in self._hooks.values())

    def next_end(self) -> float:
        """Return the moment at which the next of its hooks ends."""
        return min((hook.end()[0] for hook in self._hooks.values() if isinstance(hook, Hook)), default=NEVER)


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
        self._world.clock.advance(max(end - before, TICK if seconds > 0 else 0.0))
        self._spins = self._spins + 1 if self._world.now - before <= TICK else 0
        assert self._spins < 1000, "the runner spins: it waits for what does not come"
        if self._until():
            self.received = "SIGTERM"

    def wake(self) -> None:
        """Nobody waits: hooks end in virtual time."""


class Instance(NamedTuple):
    """One runner, with what it is made of."""

    runner: Runner
    client: Any
    identity: VmIdentity
    requester: WorldRequester
    clocks: ScriptedClocks
    stop: VirtualStop
    executor: WorldExecutor
    log: Lines


def new_runner(
    world: World,
    directory: str,
    vm: str,
    journal: Callable[..., Journal] = Journal,
    until: Callable[[], bool] = lambda: False,
    group: Callable[[], GroupOptions] | None = None,
) -> Instance:
    """Assemble a runner on a state directory, as ``forewarn run`` does; ``group`` makes its part in a group."""
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

    def reload(_offer: object) -> Configuration:
        for watcher in watchers:  # so that decisions of the new policies are judged by them
            watcher._shown = None
        world.note("reload", generation=world.generation)
        return Configuration(world.policies(world.generation), None, 1.0)

    with (
        replaced(assembly, "Executor", lambda *args, **options: executor),
        replaced(assembly, "Journal", journal),
    ):
        identity = VmIdentity(client, None, log, clocks.monotonic, earlier_vm_name(beat, clocks))
        if identity.vm.name is not None:
            world.note("known")
        previous = (
            PreviousRunner(last_poll, downtime(beat, clocks), reported_pause(beat))
            if beat
            else PreviousRunner(last_poll)
        )
        options = RunnerOptions(
            clocks,
            log,
            Mode(world.dry_run),
            directory,
            requester=requester,
            reload=reload,
            previous=previous,
            group=None if group is None else group(),
        )
        runner = assemble(client, identity, world.policies(generation), stop, stop.wake, options)
    watchers.append(_show_drills(world, runner.controller._drill_runner.reconciler))
    return Instance(runner, client, identity, requester, clocks, stop, executor, log)


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
    with replaced(scheduler, "end_leftovers", world.end_leftovers):
        yield
