# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe listener at the wire: what it answers, that it says no more, and where it listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forewarn.errors import InputError
from forewarn.runner.telemetry.probe_server import ProbeServer
from tools.servers.listener_client import ListenerClient


class ProbeListener(ListenerClient):
    """A probe listener on a free port, and what it is to say."""

    def __init__(self) -> None:
        self.alive = True
        self.ready = True
        super().__init__(ProbeServer("127.0.0.1:0", lambda: self.alive, lambda: self.ready))


@pytest.fixture
def served() -> Iterator[ProbeListener]:
    it = ProbeListener()
    yield it
    it.server.close()


def test_both_say_a_status_and_a_word(served: ProbeListener) -> None:
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(200, "ok\n"), (200, "ok\n")]
    served.ready = False
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(200, "ok\n"), (503, "unavailable\n")]
    served.alive, served.ready = False, True
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(503, "unavailable\n"), (200, "ok\n")]


def test_the_answer_has_nothing_else(served: ProbeListener) -> None:
    assert served.raw(b"GET /readyz?x=1 HTTP/1.1\r\nHost: lb\r\nConnection: keep-alive\r\n\r\n").split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain",
        b"Content-Length: 3",
        b"Cache-Control: no-store",
        b"Connection: close",
        b"",
        b"ok\n",
    ]


def test_metrics_are_not_served(served: ProbeListener) -> None:
    assert served.ask("/metrics")[:2] == (404, "unknown\n")
    assert served.ask("/readyz", "POST")[:2] == (405, "unsupported\n")


def test_defect_is_answered_with_500() -> None:
    answers = iter([True])
    served = ListenerClient(ProbeServer("127.0.0.1:0", lambda: True, lambda: next(answers)))
    try:
        assert [served.ask("/readyz")[:2] for _ in range(2)] == [(200, "ok\n"), (500, "error\n")]
    finally:
        served.server.close()


@pytest.mark.parametrize(
    "address",
    [
        *("example.com:9780", "127.1:9780", "", ":9780", "9780", "0.0.0.0", "0.0.0.0:", "0.0.0.0:65536", "*:9780"),
        *("0.0.0.0:http", "0.0.0.0:-1", "::1:9780", "[127.0.0.1]:9780", "0.0.0.0\0:9780", "0.0.0.0:９７８０"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError) as raised:
        ProbeServer(address, lambda: True, lambda: True)
    assert repr(address) in raised.value.message
    assert "0.0.0.0:9780" in raised.value.hint
