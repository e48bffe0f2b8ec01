# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` asks the service, and finds out by which name the service knows this VM."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial

import pytest
from forewarn.cli.doctor.check import NOT_CHECKED, OK, TROUBLE, WARNING
from forewarn.cli.doctor.service import name, pause, service
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.events import Document, Event
from forewarn.imds.client import Client
from tools.fixtures.clocks import ManualClocks


@pytest.fixture
def clocks() -> ManualClocks:
    return ManualClocks()


@pytest.fixture
def client(server: EmulatorServer, clocks: ManualClocks) -> Iterator[Client]:
    paced = partial(pause, sleep=clocks.sleep)
    with Client(server.vm_endpoint("web_0"), clock=clocks.monotonic, sleep=paced) as asking:
        yield asking


def test_the_service_answers(client: Client, clocks: ManualClocks, emulator: EmulatorClient) -> None:
    check, document = service(client, clocks.monotonic)
    assert (check.state, check.hint) == (OK, "")
    assert check.text.endswith("answers, api-version 2020-07-01: nothing is scheduled")
    assert document is not None
    assert [request["method"] for request in emulator.requests()] == ["GET"], "once"
    emulator.schedule("Reboot", ["web_0"])
    check, document = service(client, clocks.monotonic)
    assert check.text.endswith(": 1 event is listed")


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (403, "answered 403", "host firewall"),
        (400, "answered 400", "malformed"),
        (404, "answered 404", "Usual for some minutes"),
        (429, "answered 429", "All agents of a VM share"),
        (500, "answered 500", "Ask again later"),
    ],
)
def test_a_service_in_trouble(
    client: Client, clocks: ManualClocks, emulator: EmulatorClient, status: int, said: str, hint: str
) -> None:
    emulator.inject_fault(status, times=1000)
    check, document = service(client, clocks.monotonic)
    assert (check.name, check.state, document) == ("service", TROUBLE, None)
    assert said in check.text
    assert hint in check.hint
    assert min(clocks.pauses, default=1.0) >= 1.0, "never twice a second"
    assert name(client, document, None, None, "host").state == NOT_CHECKED


def test_a_fault_that_passes(client: Client, clocks: ManualClocks, emulator: EmulatorClient) -> None:
    emulator.inject_fault(410, times=2)
    check, _document = service(client, clocks.monotonic)
    assert check.state == OK


def test_nobody_listens(clocks: ManualClocks) -> None:
    with Client("http://127.0.0.1:9", clock=clocks.monotonic, sleep=clocks.sleep) as client:
        check, document = service(client, clocks.monotonic)
    assert (check.state, document) == (TROUBLE, None)
    assert "refused" in check.text
    assert "running? Let this VM reach the address" in check.hint


def test_an_address_that_does_not_answer(clocks: ManualClocks) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(
            url, clock=clocks.monotonic, sleep=clocks.sleep, read_timeout=0.1, first_read_timeout=0.1
        ) as client:
            check, _document = service(client, clocks.monotonic)
    assert (check.state, "took longer than" in check.text) == (TROUBLE, True)
    assert "AzurePlatformIMDS" in check.hint


class Slow(Client):
    """Takes its time for an answer, as at the first request of a day (SE-05)."""

    took = 40.0

    def read(self, patience_seconds: float = 0.0) -> Document:
        self.sleep(self.took)  # by the clock of the test
        return super().read(patience_seconds)


def test_slow_first_answer_may_have_enabled_the_service(
    server: EmulatorServer, clocks: ManualClocks, emulator: EmulatorClient
) -> None:
    with Slow(server.vm_endpoint("web_0"), clock=clocks.monotonic, sleep=clocks.sleep) as client:
        check, _document = service(client, clocks.monotonic)
        assert (check.state, "took 40 s" in check.text) == (WARNING, True)
        assert "five minutes" in check.hint
        emulator.schedule("Reboot", ["web_0"])
        check, _document = service(client, clocks.monotonic)
        assert check.state == OK, "events are listed already"


def test_a_document_that_cannot_be_read_in_full(
    client: Client, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = Document(1, (), ("Events has 1001 entries",), "2020-07-01")
    monkeypatch.setattr(client, "read", lambda _patience: unread)
    check, _document = service(client, clocks.monotonic)
    assert check.state == WARNING
    assert "1001" in check.text


# The name


def document(*resources: tuple[str, ...]) -> Document:
    events = tuple(Event(f"E-{number}", resources=names) for number, names in enumerate(resources))
    return Document(1, events, (), "2020-07-01")


@pytest.mark.parametrize(
    ("listed", "given", "known", "state", "text", "asked"),
    [
        ((), None, None, OK, "web_0", True),
        ((), None, "web_0", OK, "web_0", False),
        ((), "WEB_0", None, OK, "WEB_0", True),
        (
            (("web_0",), ("WEB_0", "web_1"), ("web_1",)),
            None,
            "web_0",
            OK,
            "web_0, affected by 2 of 3 listed events",
            False,
        ),
        ((("db_0", "db_1"),), None, "web_0", OK, "affected by 0 of 1 listed events, which are about db_0, db_1", False),
        ((), "web_7", None, WARNING, "the configuration says web_7, and the instance metadata web_0", True),
        ((("HOST",),), None, "web_0", WARNING, "web_0 is in no listed event, but host is", False),
        ((("host",), ("web_0",)), None, "web_0", OK, "affected by 1 of 2", False),
    ],
)
def test_the_name(
    client: Client,
    clocks: ManualClocks,
    emulator: EmulatorClient,
    listed: tuple[tuple[str, ...], ...],
    given: str | None,
    known: str | None,
    state: str,
    text: str,
    asked: bool,
) -> None:
    check = name(client, document(*listed), given, known, "host")
    assert (check.name, check.state, bool(check.hint)) == ("name", state, state != OK)
    assert text in check.text
    assert len(emulator.requests()) == asked
    assert clocks.pauses == [1.0] * asked, "a second after the request for the document"


def test_a_name_that_nobody_knows(client: Client, emulator: EmulatorClient) -> None:
    emulator.inject_fault(403, times=1000)
    check = name(client, document(), None, None, "host")
    assert check.state == TROUBLE
    assert "no event affects it: " in check.text
    assert "vm_name" in check.hint
    assert name(client, document(), "web_0", None, "host").state == OK, "the configuration has it"
