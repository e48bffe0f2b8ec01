# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner that is stopped with SIGSTOP at any moment approves nothing by what it read before.

As a VM that is frozen. What may be left are the microseconds between the last look at the clock and the kernel's taking
the request: nobody inside a process can close that gap.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tools.fixtures.client_bench import EVENT
from tools.servers.scripted_imds import Answer, Request, ScriptedServer, document, instance, status
from tools.sites.runner_process import Process, compiled
from tools.sites.waiting import wait_until
from tools.suite.sizes import SEED, examples

FRESH_SECONDS = 0.2  # instead of a second, so that a stop need not take one
STOPPED_SECONDS = FRESH_SECONDS + 0.1
LONGEST_SECONDS = 0.01  # from an answer to the stop: until then the runner has decided, and perhaps sent its approval
MOST_IN_THE_GAP = 2
POLICY = """name: freezes
rule:
  match:
    - {id: freeze, condition: event.EventType == "Freeze", output: approve}
    - {id: rest, output: hold}
"""
# What the service lists once the runner goes on.
CHANGES: dict[str, dict[str, Any] | None] = {
    "another event": {"EventType": "Redeploy"},
    "started": {"EventStatus": "Started", "NotBefore": ""},
    "gone": None,
    "the same": {},
}


class FreezingService(ScriptedServer):
    """A service that lists one event after another, and stops the runner at a moment around the answer with each."""

    def __init__(self) -> None:
        super().__init__()
        self.pid = 0
        self.events: list[dict[str, Any]] = []
        self.new = False  # the next answer is the first that lists the event
        self.before = False  # the runner is stopped before the answer is sent, not after
        self.after_seconds = 0.0
        self.polls = 0
        self.approved: Counter[str] = Counter()
        self.stopped = threading.Event()

    def choose(self, request: Request) -> Answer:
        if request.method == "POST":
            self.approved[str(self.events[0]["EventId"]) if self.events else "gone"] += 1
            return status(200)
        if "/instance" in request.target:
            return instance("web_0")
        self.polls += 1
        if self.events and self.new:
            self.new = False
            if self.before:
                self.stop_runner()
            else:
                threading.Timer(self.after_seconds, self.stop_runner).start()
        return document(*self.events, incarnation=self.polls)

    def stop_runner(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        self.stopped.set()

    def __enter__(self) -> FreezingService:
        super().__enter__()
        return self

    def story(self, number: int, chance: Random) -> tuple[str, int, int]:
        """Stop the runner once; return what changed meanwhile, and the approvals before and after the change."""
        name, changes = chance.choice(list(CHANGES.items()))
        event_id = f"{number:08X}-0000-4000-8000-000000000000"
        listed = {**EVENT, "EventId": event_id, "EventType": "Freeze", "Resources": ["web_0"], "NotBefore": ""}
        with self._lock:
            self.approved.clear()
            self.before, self.after_seconds = chance.random() < 0.2, LONGEST_SECONDS * chance.random()
            self.events, self.new = [listed], True
        assert self.stopped.wait(30)
        time.sleep(STOPPED_SECONDS)  # a real wait: the kernel's clock goes on while the runner is stopped
        with self._lock:
            before = self.approved.total()
            self.events = [] if changes is None else [{**listed, **changes}]
            polls = self.polls
        self.stopped.clear()
        os.kill(self.pid, signal.SIGCONT)
        wait_until(lambda: self.polls >= polls + 3, pause=0.002)
        with self._lock:
            after = self.approved.total() - before
            self.events = []
            polls = self.polls
        wait_until(lambda: self.polls > polls, pause=0.002)
        return name, before, after


def test_stopped_runner_sends_no_outdated_approval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESH_SECONDS", str(FRESH_SECONDS))
    tmp_path.chmod(0o700)
    chance = Random(SEED)
    artifact = compiled(tmp_path, POLICY)
    outcomes: Counter[tuple[str, int, int]] = Counter()
    with FreezingService() as server:
        runner = Process("--artifact", str(artifact), endpoint=server.url, state=tmp_path / "state", quick=True)
        server.pid = runner.process.pid
        try:
            runner.wait_for("identity")
            for number in range(examples(100)):
                outcomes[server.story(number, chance)] += 1
        finally:
            os.kill(server.pid, signal.SIGCONT)
            runner.stop()
    print(sorted(outcomes.items()))
    assert all(before <= 1 and before + after <= 1 for name, before, after in outcomes if name != "the same"), outcomes
    same = {key: count for key, count in outcomes.items() if key[0] == "the same"}
    assert all(before + after == 1 for _name, before, after in same), "it is approved by another document"
    wrong = sum(count for (name, _before, after), count in outcomes.items() if name != "the same" and after)
    assert wrong <= MOST_IN_THE_GAP, outcomes
