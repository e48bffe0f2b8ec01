# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import pytest
from forewarn.imds.errors import PassingFault
from forewarn.imds.limiter import Limiter
from forewarn.runner.requester import APPROVAL, DOCUMENT, Requester, ThreadRequester
from tools.fixtures.requesters import InlineRequester


@pytest.fixture(params=["inline", "thread"])
def requester(request: pytest.FixtureRequest) -> Requester:
    return InlineRequester() if request.param == "inline" else ThreadRequester(lambda: None)


def fail() -> None:
    raise PassingFault("no answer", kind="timeout")


def test_answer_is_taken_once_with_its_time(requester: Requester) -> None:
    assert not requester.busy
    before = time.monotonic()
    requester.begin(DOCUMENT, lambda: 42)
    assert requester.busy
    assert requester.wait(10)
    answer = requester.take_response()
    assert (answer.value, answer.fault) == (42, None)
    assert before <= answer.at <= time.monotonic()
    assert not requester.busy
    assert not requester.has_response
    with pytest.raises(ValueError, match="no result"):
        requester.take_response()


def test_fault_is_returned_and_defect_raised() -> None:
    requester = ThreadRequester(lambda: None)
    requester.begin(DOCUMENT, fail)
    assert requester.wait(10)
    fault = requester.take_response().fault
    assert fault is not None
    assert fault.kind == "timeout"
    requester.begin(DOCUMENT, lambda: [][1])
    assert requester.wait(10)
    with pytest.raises(IndexError):
        requester.take_response()
    requester.begin(DOCUMENT, lambda: 1)
    assert requester.wait(10), "the thread lives on"


def test_there_is_one_request_at_a_time(requester: Requester) -> None:
    requester.begin(DOCUMENT, lambda: 1)
    with pytest.raises(ValueError, match="approval"):
        requester.begin(APPROVAL, lambda: 2)


def test_waiter_is_woken_by_the_answer() -> None:
    woken = threading.Event()
    go = threading.Event()
    requester = ThreadRequester(woken.set)
    begin = time.monotonic()
    requester.begin(DOCUMENT, lambda: go.wait(20))
    assert time.monotonic() - begin < 5, "the main thread goes on"
    assert not requester.wait(0.05)
    assert not woken.is_set()
    go.set()
    assert woken.wait(10)
    assert requester.has_response


def test_missing_thread_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    requester = ThreadRequester(lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr("forewarn.runner.requester.start_new_thread", refuse)
        requester.begin(DOCUMENT, lambda: 1)
        fault = requester.take_response().fault
        assert fault is not None
        assert "can't start new thread" in fault.message
    requester.begin(DOCUMENT, lambda: 2)
    assert requester.wait(10)
    assert requester.take_response().value == 2


def test_process_exit_does_not_wait_for_a_request() -> None:
    program = (  # its request sleeps for longer than the test may take
        "import time\n"
        "from forewarn.runner.requester import ThreadRequester\n"
        "requester = ThreadRequester(lambda: None)\n"
        "requester.begin('document', lambda: time.sleep(60))\n"
    )
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    assert time.monotonic() - begin < 20


def test_the_budget_is_kept_by_several_threads_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limiter, "capacity", 1000.0)
    monkeypatch.setattr(Limiter, "refill_per_second", 1e-9)
    limiter = Limiter()
    taken: list[int] = []
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def work() -> None:
            taken.append(sum(limiter.take() for _ in range(2000)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert sum(taken) == 1000
