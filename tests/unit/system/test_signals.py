# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from forewarn.system.signals import StopSignals


@pytest.fixture
def stop() -> Iterator[StopSignals]:
    with StopSignals() as entered:
        yield entered


def _later(number: int, seconds: float = 0.05) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_sets_a_flag_and_ends_a_wait(stop: StopSignals, number: signal.Signals) -> None:
    _later(number)
    started = time.monotonic()
    stop.wait(30)
    assert stop.received == number.name
    assert time.monotonic() - started < 5
    stop.wait(30)
    assert time.monotonic() - started < 5, "once stopped, nothing waits"


def test_undisturbed_wait_has_its_length(stop: StopSignals) -> None:
    started = time.monotonic()
    stop.wait(0.05)
    assert time.monotonic() - started >= 0.05
    assert stop.received is None


def test_a_thousand_signals_do_no_harm(stop: StopSignals) -> None:
    for _ in range(1000):
        os.kill(os.getpid(), signal.SIGTERM)
    stop.wait(30)


class Late(StopSignals):
    """Its handler for SIGTERM runs too late, as when the signal comes just before a system call."""

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        pass

    def run_handler(self) -> None:
        super()._on_stop(signal.SIGTERM, None)


def test_unhandled_signal_ends_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Late()
    with stop:
        os.kill(os.getpid(), signal.SIGTERM)
        waits = []

        def selected(*arguments: Any) -> Any:
            waits.append(arguments[3])
            ready = original(*arguments)
            stop.run_handler()
            return ready

        original = select.select
        monkeypatch.setattr(select, "select", selected)
        started = time.monotonic()
        stop.wait(30)
        assert time.monotonic() - started < 5
        assert len(waits) == 1


def test_the_handlers_of_before_are_put_back() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in numbers] == before
