# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notify hooks that fail are tried again for a while, in order, and once per occasion."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import pytest
from forewarn.events import Event
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks import notifications
from forewarn.runner.hooks.commands import Command, HookSettings
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED, HookProcess, HookResult
from forewarn.runner.hooks.notifications import LONGEST_SECONDS, MOST_NOTIFYING
from forewarn.runner.hooks.scheduler import HookScheduler
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.logs import Lines
from tools.worlds.runner_world import World
from tools.worlds.watched_journals import JournalDisk, MemoryJournal

OCCASIONS = ("decided", "started", "ended")


class Delivery(NamedTuple):
    """A request that a receiver got: of which hook and event, on which occasion, at which attempt, and when."""

    url: str
    event_id: str
    occasion: str
    attempt: int
    at: float
    ok: bool


class Receivers:
    """Stands for the executor. ``script``: whether each request succeeds, in order; all that follow do."""

    def __init__(self, clocks: ManualClocks, script: Sequence[bool]) -> None:
        self.deliveries: list[Delivery] = []
        self.running: dict[Hashable, bool] = {}
        self.contents: list[dict[str, Any]] = []
        self._clocks = clocks
        self._script = list(script)

    def start(self, token: Hashable, command: Command) -> HookProcess | None:
        request, content = (json.loads(line) for line in command.stdin.splitlines())
        ok = self._script.pop(0) if self._script else True
        self.contents.append(content)
        if "event" in content:  # it is no body of the policies
            names = (request["url"], content["event"]["EventId"], content["occasion"], content["attempt"])
            self.deliveries.append(Delivery(*names, self._clocks.now, ok))
        self.running[token] = ok
        return None

    def take_results(self) -> list[tuple[Hashable, HookResult]]:
        ended = [
            (token, HookResult(SUCCEEDED if ok else FAILED, 0 if ok else 1, 0.1, "", "" if ok else "answered 503"))
            for token, ok in self.running.items()
        ]
        self.running.clear()
        return ended


class Scene:
    """A scheduler whose http hooks reach scripted receivers at once."""

    def __init__(self, script: Sequence[bool] = ()) -> None:
        self.clocks = ManualClocks()
        self.receivers = Receivers(self.clocks, script)
        self.log = Lines()
        journal: Any = MemoryJournal(World(), JournalDisk())
        recorder = Recorder(journal, self.log, Metrics())
        executor: Any = self.receivers
        self.scheduler = HookScheduler(executor, recorder, self.clocks, HookSettings())

    def record(self, event_id: str, *hooks: dict[str, Any]) -> EventRecord:
        record = self.scheduler.records.open(Event(event_id), False)
        record.notify = list(hooks)
        return record

    def work(self) -> None:
        self.scheduler.collect_results()
        self.scheduler.advance()

    def pass_time(self, seconds: float = 3 * LONGEST_SECONDS) -> None:
        """Work whenever the scheduler says that something is due, until nothing is any more."""
        until = self.clocks.now + seconds
        self.work()
        while True:
            due = 0.0 if self.receivers.running else self.scheduler.next_in()
            if due is None or self.clocks.now + due > until:
                return
            self.clocks.sleep(due)
            self.work()


def http(name: str, **keys: Any) -> dict[str, Any]:
    return {"http": f"http://127.0.0.1:9/{name}", "timeout_seconds": 5.0, **keys}


def test_failed_notification_is_retried_until_it_succeeds() -> None:
    scene = Scene([False, False, True])
    scene.scheduler.notify(scene.record("A", http("x")), "decided")
    scene.pass_time()
    assert [(delivery.attempt, delivery.at - 1000, delivery.ok) for delivery in scene.receivers.deliveries] == [
        (1, 0, False),
        (2, 5, False),
        (3, 15, True),
    ]
    lines = scene.log.named("notified")
    assert [line.get("retry_seconds") for line in lines] == [5, 10, None]
    assert scene.scheduler.idle()


def test_it_is_given_up_after_ten_minutes() -> None:
    scene = Scene([False] * 100)
    scene.scheduler.notify(scene.record("A", http("x")), "decided")
    scene.pass_time()
    times = [delivery.at - 1000 for delivery in scene.receivers.deliveries]
    assert times[:5] == [0, 5, 15, 35, 75]
    assert LONGEST_SECONDS - 120 < times[-1] <= LONGEST_SECONDS
    assert scene.scheduler.idle()


@pytest.mark.parametrize(
    ("retry", "times"),
    [
        ({"attempts": 1}, [0]),
        ({"attempts": 3, "delay_seconds": 1.0}, [0, 1, 3]),
        ({"attempts": 4, "delay_seconds": 1.0, "max_delay_seconds": 1.5}, [0, 1, 2.5, 4]),
        ({"delay_seconds": 300.0}, [0, 300, 600]),
    ],
)
def test_retry_says_how_often(retry: dict[str, Any], times: list[float]) -> None:
    scene = Scene([False] * 100)
    scene.scheduler.notify(scene.record("A", http("x", retry=retry)), "decided")
    scene.pass_time()
    assert [delivery.at - 1000 for delivery in scene.receivers.deliveries] == times


def test_a_later_attempt_tells_what_was_so_then() -> None:
    scene = Scene([False])
    record = scene.record("A", http("x"))
    record.decision = {"output": "hold", "reason": "before"}
    scene.scheduler.notify(record, "decided")
    scene.work()
    record.decision = {"output": "approve", "reason": "after"}
    scene.scheduler.notify(record, "decided")
    scene.pass_time()
    assert [content["decision"]["reason"] for content in scene.receivers.contents] == ["before", "before", "after"]
    assert {content["other_events"] for content in scene.receivers.contents} == {0}


def test_notification_removed_by_a_reload_is_not_retried() -> None:
    scene = Scene([False])
    record = scene.record("A", http("x"))
    scene.scheduler.notify(record, "decided")
    scene.work()
    scene.work()
    record.notify = []
    scene.pass_time()
    assert len(scene.receivers.deliveries) == 1
    assert scene.scheduler.idle()


def test_hooks_do_not_wait_for_each_other() -> None:
    scene = Scene([False, True, True])
    first, second = scene.record("A", http("x"), http("y")), scene.record("B", http("x"))
    scene.scheduler.notify(first, "decided")
    scene.scheduler.notify(second, "decided")
    scene.work()
    told = [(delivery.url[-1], delivery.event_id) for delivery in scene.receivers.deliveries]
    assert told == [("x", "A"), ("y", "A"), ("x", "B")]


@given(
    st.lists(st.booleans(), max_size=60),
    st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from(OCCASIONS), st.floats(0, 400)), min_size=1, max_size=12),
)
def test_occasions_are_notified_in_order_and_once(script: list[bool], steps: list[tuple[str, str, float]]) -> None:
    scene = Scene(script)
    hooks = [http("x"), http("y")]
    records = {name: scene.record(name, *hooks) for name in "AB"}
    added: dict[tuple[str, str], list[str]] = {(hook["http"], name): [] for hook in hooks for name in "AB"}
    for name, occasion, seconds in steps:
        scene.scheduler.notify(records[name], occasion)
        for hook in hooks:
            added[hook["http"], name].append(occasion)
        scene.pass_time(seconds)
        assert len(scene.receivers.running) <= MOST_NOTIFYING
    scene.pass_time(100 * LONGEST_SECONDS)
    assert scene.scheduler.idle()
    for lane, occasions in added.items():
        told = [one for one in scene.receivers.deliveries if (one.url, one.event_id) == lane]
        attempts = [one for one in told if one.attempt == 1]
        assert [one.occasion for one in attempts] == occasions  # each, in order
        first_at = 0.0
        for before, after in zip(told, told[1:]):
            first_at = before.at if before.attempt == 1 else first_at
            if after.attempt == 1:
                pause = min(120.0, 5.0 * 2 ** (before.attempt - 1))
                assert before.ok or before.at + pause > first_at + LONGEST_SECONDS  # it was given up
            else:
                assert not before.ok
                assert (before.occasion, before.attempt + 1) == (after.occasion, after.attempt)


def test_too_many_that_wait_are_dropped_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "MOST_WAITING", 3)
    scene = Scene([False])
    record = scene.record("A", http("x"))
    for occasion in ("decided", "decided", "started", "ended", "cancelled"):
        scene.scheduler.notify(record, occasion)
    scene.pass_time()
    succeeded = [delivery.occasion for delivery in scene.receivers.deliveries if delivery.ok]
    assert succeeded == ["started", "ended", "cancelled"]
    assert sum(line["dropped"] or 0 for line in scene.log.named("notified")) == 2


def bodied(name: str, content: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a hook with a body as the engine resolves it."""
    return http(name, body='{"text": occasion}', content=content, **keys)


def by_occasion(mark: str) -> dict[str, Any]:
    return {"occasions": {one: {"json": {"occasion": one, "mark": mark}} for one in (*OCCASIONS, "cancelled")}}


def test_body_is_that_of_its_occasion() -> None:
    scene = Scene([False])
    record = scene.record("A", bodied("x", by_occasion("first")))
    scene.scheduler.notify(record, "decided")
    scene.work()
    assert record.add_notify_hooks([bodied("x", by_occasion("second"))])
    scene.scheduler.notify(record, "started")
    scene.pass_time()
    # The retry tells what was so when it was decided, and what comes later waits for it, though the body has changed.
    assert [(one["occasion"], one["mark"]) for one in scene.receivers.contents] == [
        ("decided", "first"),
        ("decided", "first"),
        ("started", "second"),
    ]


def test_body_removed_by_a_reload_is_not_retried() -> None:
    scene = Scene([False])
    record = scene.record("A", bodied("x", by_occasion("first")))
    scene.scheduler.notify(record, "decided")
    scene.work()
    record.notify = [{**bodied("x", by_occasion("first")), "body": "{}"}]
    scene.pass_time()
    assert len(scene.receivers.contents) == 1


def test_body_without_a_value_is_reported_once() -> None:
    scene = Scene()
    content = {"occasions": {**by_occasion("x")["occasions"], "started": {"problem": "the body has no value: x"}}}
    record = scene.record("A", bodied("x", content, retry={"attempts": 3}))
    for occasion in OCCASIONS:
        scene.scheduler.notify(record, occasion)
        scene.pass_time()
    assert [one["occasion"] for one in scene.receivers.contents] == ["decided", "ended"]
    (line,) = [line for line in scene.log.named("notified") if line["occasion"] == "started"]
    assert (line["result"], line["reason"]) == ("not-started", "the body has no value: x")
    assert line.get("retry_seconds") is None


def test_only_the_latest_body_of_a_hook_counts() -> None:
    record = Scene().record("A", http("plain"), bodied("x", {"json": {"n": 1}}))
    plain, _body = record.notify
    assert not record.add_notify_hooks([plain, bodied("x", {"json": {"n": 1}})])
    assert not record.add_notify_hooks([])  # a later decision names none: what ends is told all the same
    assert record.add_notify_hooks([bodied("x", {"json": {"n": 2}})])
    assert record.notify == [plain, bodied("x", {"json": {"n": 2}})]
    # Two policies may write the same body, with parameters of their own.
    both = [bodied("x", {"json": {"n": 2}}), bodied("x", {"json": {"n": 3}})]
    assert record.add_notify_hooks(both)
    assert record.notify == [plain, *both]
    assert not record.add_notify_hooks([plain, *both])
