# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks lack is looked for once a minute, beside the polls, and reported once per change."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, Callable

import pytest
from forewarn.runner.hooks.needs_watch import CHECK_SECONDS, NeedsWatch
from forewarn.runner.journal.null import NoJournal
from forewarn.runner.telemetry.health import HealthReporter
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from forewarn.system.service_manager import ServiceNotifier
from tools.fixtures.clocks import ManualClocks
from tools.sites.waiting import wait_until

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


class Later:
    """Work for another thread, done when the test says so."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []

    def __call__(self, work: Callable[[], None]) -> None:
        self.work.append(work)

    def do(self) -> None:
        self.work.pop(0)()


def test_check_runs_each_minute_and_reports_once(clocks: ManualClocks) -> None:
    later = Later()
    watch = NeedsWatch(clocks.monotonic, later)
    assert watch.take_result() is None
    results = iter([["a"], [], ["b"]])
    watch.set_check(lambda: next(results))
    clocks.now += CHECK_SECONDS - 1
    assert (watch.take_result(), later.work) == (None, [])
    for wanted in (["a"], [], ["b"]):
        clocks.now += CHECK_SECONDS
        assert watch.take_result() is None
        later.do()
        assert watch.take_result() == wanted
        assert watch.take_result() is None
        assert not later.work


def test_without_anything_to_see_there_is_no_look(clocks: ManualClocks) -> None:
    later = Later()
    watch = NeedsWatch(clocks.monotonic, later)
    watch.set_check(lambda: ["a"])
    watch.set_check(None)
    clocks.now += CHECK_SECONDS
    assert (watch.take_result(), later.work) == (None, [])


def test_a_look_that_hangs_is_the_only_one(clocks: ManualClocks) -> None:
    later = Later()
    watch = NeedsWatch(clocks.monotonic, later)
    watch.set_check(lambda: ["late"])
    for _minute in range(5):
        clocks.now += CHECK_SECONDS
        assert watch.take_result() is None
    assert len(later.work) == 1
    later.do()
    assert watch.take_result() == ["late"]
    assert len(later.work) == 1


def test_the_result_for_earlier_policies_is_dropped(clocks: ManualClocks) -> None:
    later = Later()
    watch = NeedsWatch(clocks.monotonic, later)
    watch.set_check(lambda: ["old"])
    clocks.now += CHECK_SECONDS
    watch.take_result()
    watch.set_check(lambda: ["new"])
    later.do()
    assert watch.take_result() is None
    clocks.now += CHECK_SECONDS
    watch.take_result()
    later.do()
    assert watch.take_result() == ["new"]


def test_failed_check_is_repeated(clocks: ManualClocks) -> None:
    begun: list[str] = []

    def no_thread(_work: Callable[[], None]) -> None:
        begun.append("x")
        raise RuntimeError("can't start new thread")

    watch = NeedsWatch(clocks.monotonic, no_thread)
    watch.set_check(list)
    for _minute in range(3):
        clocks.now += CHECK_SECONDS
        assert watch.take_result() is None
    assert len(begun) == 3

    def broken() -> Sequence[str]:
        raise ValueError("a defect")

    later = Later()
    watch = NeedsWatch(clocks.monotonic, later)
    watch.set_check(broken)
    for _minute in range(2):
        clocks.now += CHECK_SECONDS
        watch.take_result()
        with pytest.raises(ValueError, match="a defect"):
            later.do()
        assert watch.take_result() is None


def test_the_caller_does_not_wait(clocks: ManualClocks) -> None:
    """A look that blocks, as one at a dead file server, blocks a thread of its own."""
    gate = threading.Event()
    names: list[str] = []

    def look() -> Sequence[str]:
        names.append(threading.current_thread().name)
        assert gate.wait(20)
        return ["found"]

    watch = NeedsWatch(clocks.monotonic)
    watch.set_check(look)
    clocks.now += CHECK_SECONDS
    assert watch.take_result() is None
    wait_until(lambda: bool(names))
    assert names != [threading.current_thread().name]
    assert watch.take_result() is None
    gate.set()
    found: list[Sequence[str] | None] = []

    def taken() -> bool:
        found.append(watch.take_result())
        return found[-1] is not None

    wait_until(taken)
    assert found[-1] == ["found"]


class NoHooks:
    """What a ``HealthReporter`` needs of a scheduler."""

    records: tuple[()] = ()
    vm_name = None


def test_each_change_is_logged_once(clocks: ManualClocks) -> None:
    stream, metrics, later = io.StringIO(), Metrics(), Later()
    recorder = Recorder(NoJournal(clocks), Log(stream, "json", lambda: NOW), metrics)
    watch = NeedsWatch(clocks.monotonic, later)
    scheduler: Any = NoHooks()
    health = HealthReporter(scheduler, recorder, clocks, notifier=ServiceNotifier({}, clocks.monotonic), watch=watch)
    missing = ["a", "b"]
    health.watch_needs(lambda: tuple(missing), ("a",))

    def lines() -> list[tuple[str, str, str]]:
        read = [json.loads(line) for line in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
        return [(line["level"], line["line"], line["reason"]) for line in read]

    def minute() -> None:
        clocks.now += CHECK_SECONDS
        health.report()
        later.do()
        health.report()

    assert lines() == [("error", "hook-missing", "a")]
    assert "\nforewarn_hook_needs_missing 1\n" in metrics.render()
    minute()
    assert lines() == [("error", "hook-missing", "b")]
    minute()
    assert lines() == []
    assert health.facts["missing"] == ["a", "b"]
    assert "hooks lack what they need: a; b" in health.status([])
    assert "\nforewarn_hook_needs_missing 2\n" in metrics.render()
    missing[:] = ["c"]
    minute()
    assert lines() == [
        ("error", "hook-missing", "c"),
        ("info", "hook-available", "no longer: a"),
        ("info", "hook-available", "no longer: b"),
    ]
    missing.clear()
    minute()
    assert lines() == [("info", "hook-available", "no longer: c")]
    assert "hooks lack" not in health.status([])
    assert "\nforewarn_hook_needs_missing 0\n" in metrics.render()
