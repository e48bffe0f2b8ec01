# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hook was lent is taken back, however it ends: on Windows that is a copy of a secret."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import pytest
from forewarn.runner.hooks import executor
from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import FAILED, NOT_STARTED, SUCCEEDED, TIMED_OUT, Executor


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    places: list[str] = []
    monkeypatch.setattr(executor, "take_back", places.append)
    return places


def result(script: str, seconds: float = 60.0, lent: str | None = "/run/lent", program: str = "/bin/sh") -> str:
    ended = threading.Event()
    one = Executor(ended.set, grace_seconds=0.1)
    one.start("hook", Command((program, "-c", script), {}, b"", seconds, (), lent))
    assert ended.wait(30)
    return one.take_results()[0][1].result


@pytest.mark.parametrize(
    ("script", "seconds", "expected"),
    [("exit 0", 60.0, SUCCEEDED), ("exit 3", 60.0, FAILED), ("kill -9 $$", 60.0, FAILED), ("sleep 60", 0.2, TIMED_OUT)],
)
def test_lent_credentials_are_taken_back_once(taken: list[str], script: str, seconds: float, expected: str) -> None:
    assert result(script, seconds) == expected
    assert taken == ["/run/lent"]


def test_hook_that_cannot_start_gives_them_back(taken: list[str]) -> None:
    assert result("exit 0", program="/no/such/program") == NOT_STARTED
    assert taken == ["/run/lent"]


def test_hook_without_a_thread_gives_them_back(taken: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    assert result("exit 0") == NOT_STARTED
    assert taken == ["/run/lent"]


def test_hook_without_credentials_gives_nothing_back(taken: list[str]) -> None:
    assert result("exit 0", lent=None) == SUCCEEDED
    assert taken == []
