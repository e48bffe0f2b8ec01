# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics listener at the wire: what it answers, also where that is much, and that it listens on loopback only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from forewarn.errors import InputError
from forewarn.runner.telemetry.metrics import CONTENT_TYPE, Metrics
from forewarn.runner.telemetry.metrics_server import MetricsServer
from tools.judges.exposition import parse
from tools.servers.listener_client import TIMEOUT, ListenerClient
from tools.sites.waiting import wait_until


class MetricsListener(ListenerClient):
    """A metrics listener on a free port, and what it is to say."""

    def __init__(self) -> None:
        self.render: Callable[[], str] = lambda: "a 1\n"
        self.healthy: Callable[[], tuple[bool, str]] = lambda: (True, "the service answers")
        super().__init__(MetricsServer("127.0.0.1:0", lambda: self.render(), lambda: self.healthy()))


@pytest.fixture
def served() -> Iterator[MetricsListener]:
    it = MetricsListener()
    yield it
    it.server.close()


def test_metrics_are_served_as_prometheus_asks_for_them(served: MetricsListener) -> None:
    served.render = Metrics().render
    status, text, headers = served.ask("/metrics?name[]=forewarn_polls_total")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert headers["Content-Type"] == CONTENT_TYPE
    assert headers["Connection"] == "close"
    assert parse(text)


def test_health_is_told_by_status_and_sentence(served: MetricsListener) -> None:
    assert served.ask("/healthz")[:2] == (200, "ok: the service answers\n")
    served.healthy = lambda: (False, "no answer for 300 s")
    assert served.ask("/healthz")[:2] == (503, "no answer for 300 s\n")


def test_client_that_does_not_read_is_cut_off(served: MetricsListener) -> None:
    served.server.patience_seconds = 2.0
    served.render = lambda: "x" * 20_000_000  # more than the system buffers
    with served.connect() as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert served.ask("/healthz")[0] == 200
        wait_until(lambda: not served.server._connections, TIMEOUT, what="the slow one is still connected")


def test_large_answer_is_sent_in_parts(served: MetricsListener) -> None:
    served.render = lambda: "x" * 20_000_000
    assert len(served.ask("/metrics")[1]) == 20_000_000


def test_defect_is_answered_with_500(served: MetricsListener) -> None:
    def fail() -> str:
        raise KeyError("a defect")

    served.render = fail
    assert served.ask("/metrics")[:2] == (500, "KeyError: 'a defect'\n")
    served.render = lambda: "größer \ud800\n"
    assert served.ask("/metrics")[:2] == (200, "größer ?\n")


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0:9750", "10.0.0.4:9750", "169.254.169.254:80", "[::]:9750", "[fe80::1]:9750", "[::ffff:127.0.0.1]:1"),
        *("example.com:9750", "127.1:9750", "", ":9750", "9750", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536"),
        *("127.0.0.1:http", "127.0.0.1:-1", "::1:9750", "[127.0.0.1]:9750", "127.0.0.1\0:9750", "127.0.0.1:９７５０"),
        "[7f00::1]:9750",  # its first byte is 127
    ],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InputError) as raised:
        MetricsServer(address, lambda: "", lambda: (True, ""))
    assert repr(address) in raised.value.message
    assert "127.0.0.1:9750" in raised.value.hint
