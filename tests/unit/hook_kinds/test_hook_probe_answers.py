# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind probe, where the runner's probe is missing, does not answer, or does not say what it should."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError

EVENT = {"EventId": "1", "EventType": "Reboot"}


class Probe(HTTPServer):
    """Answers with the next of some statuses, and with the last one for ever."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"0.0.0.0:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Probe

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def probe() -> Iterator[Probe]:
    with Probe() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def prepare(address: str | None, seconds: float = 10.0, wait: float = 0.0) -> None:
    perform("probe", PREPARE, {"wait": wait}, EVENT, seconds, None, address)


def test_runner_without_a_probe_is_a_failure() -> None:
    with pytest.raises(HookFailedError, match=r"the runner has no probe.*--probe-listen"):
        prepare(None)


def test_it_waits_until_the_probe_turns(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    probe.statuses = [200, 503]
    prepare(probe.address)
    assert set(probe.asked) == {"/readyz"}
    assert capsys.readouterr().out.splitlines()[-1] == "/readyz has answered 503 for 0 s"


def test_probe_that_stays_ready_is_a_failure(probe: Probe) -> None:
    probe.statuses = [200]
    with pytest.raises(HookFailedError, match=r"/readyz answers 200, not 503: it does so for events that name this VM"):
        prepare(probe.address, seconds=1.2)


def test_probe_that_becomes_ready_is_a_failure(probe: Probe) -> None:
    probe.statuses = [503, 200]
    with pytest.raises(HookFailedError, match="answers 200, not 503"):
        prepare(probe.address, seconds=1.2)


def test_wait_longer_than_the_notice_fails_at_once(probe: Probe) -> None:
    probe.statuses = [503]
    with pytest.raises(HookFailedError, match=r"it takes 1 min, and \d+ s are left"):
        prepare(probe.address, wait=60.0)


def test_a_listener_that_is_gone_is_named(probe: Probe) -> None:
    with HTTPServer(("127.0.0.1", 0), Handler) as closed:
        address = f"127.0.0.1:{closed.server_port}"
    with pytest.raises(HookFailedError, match="the runner's own probe does not answer"):
        prepare(address, seconds=1.2)


def test_the_recovery_has_nothing_to_do() -> None:
    perform("probe", RECOVER, {"wait": 20.0}, EVENT, 10.0, None, None)
