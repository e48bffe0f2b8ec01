# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the client waits, and when it tries again."""

from __future__ import annotations

import time

import pytest
from forewarn.imds import errors
from forewarn.imds.client import Client
from forewarn.imds.errors import LastingFault, PassingFault
from tools.fixtures.client_bench import EVENT, OK, client_of, fault_of
from tools.fixtures.clocks import ManualClocks
from tools.servers.listener_client import free_port
from tools.servers.scripted_imds import Answer, ScriptedServer, document, raw, status

# Time


def test_a_refused_connection_passes() -> None:
    with Client(f"http://127.0.0.1:{free_port()}") as client, pytest.raises(PassingFault) as info:
        client.read_once()
    assert info.value.kind == errors.REFUSED


def test_missing_answer_is_a_timeout() -> None:
    fault = fault_of(document(delay=30), first_read_timeout=0.1, read_timeout=0.1)
    assert (type(fault), fault.kind) == (PassingFault, errors.TIMEOUT)
    assert "0.1 s" in str(fault)


def test_trickling_answer_is_a_timeout() -> None:
    trickle = Answer((OK, *[b"X: y\r\n"] * 600), pause=0.05)  # half a minute
    began = time.monotonic()
    fault = fault_of(trickle, first_read_timeout=0.3, read_timeout=0.3)
    assert fault.kind == errors.TIMEOUT
    assert time.monotonic() - began < 15


def test_se05_only_the_first_answer_may_be_slow() -> None:
    with ScriptedServer(document(delay=0.5), document(delay=30)) as server:
        client = client_of(server, first_read_timeout=30, read_timeout=0.1)
        assert not client.answered
        client.read_once()
        assert client.answered
        with pytest.raises(PassingFault) as info:
            client.read_once()
        client.close()
    assert info.value.kind == errors.TIMEOUT


def test_se05_slow_first_answer_needs_no_patience() -> None:
    with ScriptedServer(document(delay=0.3)) as server:
        with client_of(server, first_read_timeout=30, read_timeout=0.05) as client:
            client.read(patience_seconds=0)
        assert len(server.requests) == 1


# Patience


def test_passing_faults_are_retried_until_success() -> None:
    faults = [
        status(404),
        status(410),
        status(429),
        status(500),
        status(503),
        status(200, b"<html>"),
        raw(b"", "close"),
    ]
    clocks = ManualClocks()
    log: list[str] = []
    with ScriptedServer(*faults, document(EVENT)) as server, client_of(server, clocks=clocks, log=log.append) as client:
        assert len(client.read(patience_seconds=120).events) == 1
    assert len(server.requests) == 8
    assert len(log) == 7  # the last fault was a kept connection that had to be replaced
    assert "after 6 failures" in log[-1]
    assert all(0.75 <= pause <= 5 for pause in clocks.pauses)


def test_patience_ends() -> None:
    clocks = ManualClocks()
    server = ScriptedServer(status(503))
    with server, client_of(server, clocks=clocks) as client, pytest.raises(PassingFault):
        client.read(patience_seconds=30)
    assert 15 < clocks.now - 1000 <= 30
    assert 6 <= len(server.requests) <= 10


def test_without_patience_there_is_one_attempt() -> None:
    with ScriptedServer(status(503)) as server, client_of(server) as client, pytest.raises(PassingFault):
        client.read(patience_seconds=0)
    assert len(server.requests) == 1


def test_a_lasting_fault_ends_patience_at_once() -> None:
    clocks = ManualClocks()
    with ScriptedServer(status(403)) as server, client_of(server, clocks=clocks) as client, pytest.raises(LastingFault):
        client.read(patience_seconds=120)
    assert (len(server.requests), clocks.pauses) == (1, [])


def test_retry_after_is_honoured_between_attempts() -> None:
    clocks = ManualClocks()
    server = ScriptedServer(status(429, headers={"Retry-After": "4"}), document())
    with server, client_of(server, clocks=clocks) as client:
        client.read(patience_seconds=120)
    assert clocks.pauses == [4]


def test_the_same_fault_is_logged_once() -> None:
    log: list[str] = []
    server = ScriptedServer(*[status(503, b"id %d" % i) for i in range(5)], document())
    with server, client_of(server, log=log.append) as client:
        client.read(patience_seconds=120)
    assert len(log) == 2
