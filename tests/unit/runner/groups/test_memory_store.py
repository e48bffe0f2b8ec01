# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store in memory has the troubles that it says it has, and the writers that count together notice them."""

from __future__ import annotations

import random

import pytest
from forewarn.runner.groups.store import LOST_DATA, StoredValue, StoreFault
from tools.servers.store_counting import Counting
from tools.worlds.memory_store import (
    DOUBLED,
    LATE,
    LOST_ANSWER,
    LOST_REQUEST,
    OUTAGE,
    STALE,
    MemoryServer,
    MemoryStore,
    Trouble,
)

KEY = "forewarn/web/slots"


def always(what: str) -> Trouble:
    return lambda request, key: what


def sometimes(troubles: list[str], seed: int) -> Trouble:
    """Return troubles of a third of all requests."""
    drawn = random.Random(seed)
    return lambda request, key: drawn.choice(troubles) if drawn.random() < 0.3 else None


@pytest.fixture
def server() -> MemoryServer:
    server = MemoryServer()
    assert server.swap(KEY, b"one", "") == "2"
    return server


@pytest.mark.parametrize(
    ("trouble", "unsure", "now", "later"),
    [
        (OUTAGE, False, b"one", b"one"),
        (LOST_REQUEST, True, b"one", b"one"),
        (LOST_ANSWER, True, b"two", b"two"),
        (LATE, True, b"one", b"two"),
    ],
)
def test_a_swap_without_an_answer(server: MemoryServer, trouble: str, unsure: bool, now: bytes, later: bytes) -> None:
    with pytest.raises(StoreFault) as caught:
        MemoryStore(server, always(trouble)).swap(KEY, b"two", "2")
    assert caught.value.unsure == unsure
    assert server.content() == {KEY: now}
    server.deliver()
    assert server.content() == {KEY: later}
    with pytest.raises(StoreFault) as caught:
        MemoryStore(server, always(trouble)).read(KEY)
    assert not caught.value.unsure


def test_late_write_is_refused_after_another(server: MemoryServer) -> None:
    with pytest.raises(StoreFault):
        MemoryStore(server, always(LATE)).swap(KEY, b"two", "2")
    assert MemoryStore(server).swap(KEY, b"three", "2")
    server.deliver()
    assert server.content() == {KEY: b"three"}


def test_doubled_swap_reports_a_conflict(server: MemoryServer) -> None:
    assert MemoryStore(server, always(DOUBLED)).swap(KEY, b"two", "2") is None
    assert server.content() == {KEY: b"two"}


def test_a_stale_read(server: MemoryServer) -> None:
    store = MemoryStore(server, always(STALE))
    assert store.read(KEY) == StoredValue(None, "")
    server.swap(KEY, b"two", "2")
    assert store.read(KEY) == StoredValue(b"one", "2")


@pytest.mark.parametrize(("wiped", "left"), [(True, None), (False, b"one")])
def test_data_that_is_lost(server: MemoryServer, wiped: bool, left: bytes | None) -> None:
    notices, overlooks = MemoryStore(server), MemoryStore(server, notices=False)
    backup = server.backup()
    for store in (notices, overlooks):
        assert store.swap(KEY, b"two", store.read(KEY).version)
    if wiped:
        server.wipe()
    else:
        server.restore(backup)
    with pytest.raises(StoreFault, match="gone back") as caught:
        notices.read(KEY)
    assert (caught.value.kind, caught.value.lasting) == (LOST_DATA, True)
    assert overlooks.read(KEY).value == MemoryStore(server).read(KEY).value == left


@pytest.mark.parametrize("seed", range(5))
def test_no_trouble_loses_or_doubles_a_write(seed: int) -> None:
    server = MemoryServer()
    troubles = [OUTAGE, LOST_REQUEST, LOST_ANSWER, LATE]
    stores = [MemoryStore(server, sometimes(troubles, 10 * seed + number)) for number in range(4)]
    stores.append(MemoryStore(server))

    def deliver_now_and_then() -> None:
        while counting.swaps < 40:
            server.deliver()

    counting = Counting(stores[::-1], KEY, 10)
    count = counting.run(deliver_now_and_then)
    assert count.swaps == 50
    assert count.unsure


@pytest.mark.parametrize("trouble", [STALE, DOUBLED])
def test_a_store_that_breaks_its_contract_is_noticed(trouble: str) -> None:
    server = MemoryServer()
    stores = [MemoryStore(server, sometimes([trouble], number)) for number in range(4)]
    with pytest.raises(AssertionError, match=r"stale|its answer was"):
        Counting(stores, KEY, 50).run()
