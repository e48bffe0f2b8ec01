# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's cycle among a service, a policy and clocks made of Python."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from forewarn.events import LATEST_API_VERSION, Document, Event, Vm
from forewarn.imds.errors import HTTP, Fault, LastingFault, PassingFault
from forewarn.imds.limiter import READ_RESERVE, Limiter
from forewarn.policy.decision import APPROVE, Decision, Facts
from forewarn.runner.assembly import Equipment, assemble
from forewarn.runner.loop import Runner
from forewarn.runner.poller import VmIdentity
from forewarn.runner.reconciler import Mode
from forewarn.runner.requester import Requester
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from tools.clocks import ScriptedClocks
from tools.events import NOW


def http_fault(status: int) -> Fault:
    """Return what the client raises where the service answers with that status."""
    kind = LastingFault if status in (400, 403) else PassingFault
    return kind(f"answered {status}", "Do something.", kind=HTTP, status=status)


class Bench:
    """A runner among fakes; ``run(seconds)`` lets time pass. Requests take no time unless ``latency`` says so."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.clock_error = timedelta()
        self.ends_at = 0.0
        self.latency = 0.0
        # the service
        self.document = Document(1)
        self.fault: Fault | None = None
        self.instance_answer: Vm | Fault = Vm(name="web_0")
        self.approval_fault: Callable[[list[str]], Fault | None] = lambda ids: None
        self.on_approved: Callable[[list[str]], None] = lambda ids: None
        self.polls: list[float] = []
        self.posts: list[tuple[float, list[str]]] = []
        self.identity_requests: list[float] = []
        self.patience: list[float] = []
        # the policy
        self.time_dependent = False
        self.recovers_started = False
        self.digest = "sha256:0"
        self.api_version = LATEST_API_VERSION
        self.rule: Callable[[Event, Facts], str] = lambda listed, facts: APPROVE
        self.facts: list[Facts] = []
        self.approver = "leader"
        # the runner
        self.limiter = Limiter(clock=self.clock)
        self.received: str | None = None
        self.reload = False
        self.stream = io.StringIO()
        self.metrics = Metrics()
        self.form = "json"
        self.interval = 1.0
        self.at: list[tuple[float, Callable[[], None]]] = []

    def clock(self) -> float:
        return 5000.0 + self.elapsed

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.elapsed) + self.clock_error

    # client

    def _take(self, reserve: float) -> None:
        wait = self.limiter.delay(reserve=reserve)
        self.elapsed += wait
        assert self.limiter.take(reserve=reserve)
        self.elapsed += self.latency

    def read_once(self) -> Document:
        self._take(READ_RESERVE)
        self.polls.append(self.elapsed)
        if self.fault:
            raise self.fault
        return self.document

    def read(self, patience_seconds: float = 120.0) -> Document:
        self.patience.append(patience_seconds)
        return self.read_once()

    def instance(self, patience_seconds: float = 0.0) -> Vm:
        self._take(READ_RESERVE)
        self.identity_requests.append(self.elapsed)
        if isinstance(self.instance_answer, Fault):
            raise self.instance_answer
        return self.instance_answer

    def approve(self, ids: Sequence[str], incarnation: int | str | None = None, not_after: float | None = None) -> None:
        assert ids
        assert self.limiter.delay() == 0, "by the time the budget allows it, the document is stale"
        assert incarnation == self.document.incarnation
        self._take(0.0)
        self.posts.append((self.elapsed, list(ids)))
        fault = self.approval_fault(list(ids))
        if fault:
            raise fault
        self.on_approved(list(ids))

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds

    def close(self) -> None:
        pass

    # policy

    def decide(self, document: Document, facts: Facts) -> Sequence[Decision]:
        self.facts.append(facts)
        return tuple(
            Decision(each, self.rule(each, facts), "web-tier", "brief", "a brief freeze", approver=self.approver)
            for each in document.events
        )

    def every_hook(self) -> Sequence[Mapping[str, Any]]:
        return ()

    # signals

    def wait(self, seconds: float) -> None:
        target = self.elapsed + seconds
        while self.at and self.at[0][0] <= target + 1e-9:
            moment, action = self.at.pop(0)
            self.elapsed = max(self.elapsed, moment)
            action()
        self.elapsed = max(self.elapsed, target)
        if self.elapsed >= self.ends_at - 1e-6:
            self.received = "SIGTERM"

    @contextmanager
    def request(self) -> Iterator[None]:
        yield

    # handling

    def make(
        self,
        vm_name: str | None = None,
        dry_run: bool = False,
        once: bool = False,
        requester: Requester | None = None,
    ) -> Runner:
        log = Log(self.stream, self.form, self.now)
        identity = VmIdentity(self, vm_name, log, self.clock)  # type: ignore[arg-type]  # a fake client
        clocks = ScriptedClocks(self.clock, lambda: self.now().timestamp())
        equipment = Equipment(clocks, log, Mode(dry_run, once), metrics=self.metrics, requester=requester)
        return assemble(self, identity, self, self, lambda: None, equipment)  # type: ignore[arg-type]  # as above

    def run(self, seconds: float, **options: Any) -> None:
        self.ends_at = seconds
        self.at.sort(key=lambda item: item[0])
        self.make(**options).run(self.interval)

    def then(self, seconds: float, **values: Any) -> None:
        """Set attributes at a time after the start."""
        self.at.append((seconds, lambda: vars(self).update(values)))

    def lines(self, name: str | None = None) -> list[dict[str, Any]]:
        read = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in read if name in (None, line["line"])]

    def eligibilities(self) -> list[str]:
        return [line["eligibility"] for line in self.lines("decision")]


def listing(*events: Event, incarnation: int = 2) -> Document:
    """Return a document that lists events."""
    return Document(incarnation, events)
