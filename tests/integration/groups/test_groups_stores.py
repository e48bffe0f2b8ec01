# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract of stores, kept by all of them: the one in memory, real etcd, and Azurite with both ways to log in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from forewarn.runner.groups import lineage
from forewarn.runner.groups.azure_login import IdentityLogin
from forewarn.runner.groups.lineage import LineageMemory
from forewarn.runner.groups.store import LOST_DATA, MAX_VALUE_BYTES, TOO_LARGE, Store, StoredValue, StoreFault
from forewarn.runner.groups.transaction import change
from tools.servers.azurite import Azurite, azurite, token_answer
from tools.servers.etcd_server import EtcdCluster, etcd_cluster
from tools.servers.store_counting import Counting
from tools.servers.webhooks import Webhook
from tools.suite.sizes import SIZE
from tools.worlds.memory_store import MemoryServer, MemoryStore

Open = Callable[[], Store]
KEY = "forewarn/web/events/0f3c.A_b-1"
NOTHING = StoredValue(None, "")
# What a store does is judged here, not how soon.
PATIENCE: dict[str, Any] = {"timeout_seconds": 30.0, "whole_seconds": 60.0}


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="module")
def identity() -> Iterator[str]:
    """Return the endpoint of a managed identity."""
    with Webhook(token_answer()) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module", params=["memory", "etcd", "blob with a SAS", "blob with an identity"])
def opened(request: pytest.FixtureRequest) -> Open:
    """Return a function that opens one of the stores."""
    if request.param == "memory":
        server = MemoryServer()
        return lambda: MemoryStore(server)
    if request.param == "etcd":
        cluster: EtcdCluster = request.getfixturevalue("etcd")
        return partial(cluster.store, **PATIENCE)
    blobs: Azurite = request.getfixturevalue("blobs")
    if request.param == "blob with a SAS":
        return partial(blobs.store, **PATIENCE)
    endpoint = request.getfixturevalue("identity")
    return partial(blobs.store, IdentityLogin(endpoint), **PATIENCE)


@pytest.fixture
def store(opened: Open) -> Iterator[Store]:
    """Return a store without any keys."""
    with closing(opened()) as store:
        for key in store.list("forewarn/"):
            assert store.swap(key, None, store.read(key).version) == ""
        yield store


def test_what_was_written_is_read(store: Store, opened: Open) -> None:
    assert store.read(KEY) == NOTHING
    first = store.swap(KEY, b"one", "")
    assert first
    assert store.read(KEY) == StoredValue(b"one", first)
    second = store.swap(KEY, b"two", first)
    assert second
    assert second != first
    with closing(opened()) as other:
        assert other.read(KEY) == StoredValue(b"two", second)


def test_a_key_is_created_once(store: Store) -> None:
    version = store.swap(KEY, b"one", "")
    assert version
    assert store.swap(KEY, b"two", "") is None
    assert store.read(KEY) == StoredValue(b"one", version)


def test_an_old_version_changes_nothing(store: Store) -> None:
    old = store.swap(KEY, b"one", "")
    assert old
    new = store.swap(KEY, b"two", old)
    assert new
    assert store.swap(KEY, b"three", old) is None
    assert store.swap(KEY, None, old) is None
    assert store.read(KEY) == StoredValue(b"two", new)


def test_removed_key_can_be_created_but_not_changed(store: Store) -> None:
    old = store.swap(KEY, b"one", "")
    assert old
    assert store.swap(KEY, None, old) == ""
    assert store.read(KEY) == NOTHING
    assert store.swap(KEY, b"two", old) is None
    assert store.swap(KEY, None, old) is None
    new = store.swap(KEY, b"three", "")
    assert new not in (None, "", old)


def test_nothing_cannot_be_removed(store: Store) -> None:
    with pytest.raises(ValueError, match="nothing"):
        store.swap(KEY, None, "")


@pytest.mark.parametrize("value", [b"", b"\x00\xff\n", b'{"a": "\xc3\xa4"}', bytes(MAX_VALUE_BYTES)])
def test_every_value_comes_back(store: Store, value: bytes) -> None:
    version = store.swap(KEY, value, "")
    assert version
    assert store.read(KEY) == StoredValue(value, version)


def test_the_same_value_again_is_another_version(store: Store) -> None:
    old = store.swap(KEY, b"one", "")
    assert old
    new = store.swap(KEY, b"one", old)
    assert new not in (None, old)
    assert store.swap(KEY, b"one", old) is None


def test_a_value_that_is_too_large_is_refused(store: Store) -> None:
    with pytest.raises(StoreFault) as caught:
        store.swap(KEY, bytes(MAX_VALUE_BYTES + 1), "")
    assert (caught.value.kind, caught.value.lasting, caught.value.unsure) == (TOO_LARGE, True, False)
    assert store.read(KEY) == NOTHING


def test_keys_are_listed_by_their_prefix(store: Store) -> None:
    keys = ["forewarn/web/events/b", "forewarn/web/events/a", "forewarn/web/slots", "forewarn/web2/slots"]
    for key in keys:
        assert store.swap(key, b"x", "")
    assert store.list("forewarn/web/events/") == ["forewarn/web/events/a", "forewarn/web/events/b"]
    assert store.list("forewarn/web/") == sorted(keys[:3])
    assert store.list("forewarn/") == sorted(keys)
    assert store.list("forewarn/none/") == []


def test_a_closed_store_opens_another_connection(store: Store) -> None:
    version = store.swap(KEY, b"one", "")
    store.close()
    store.close()
    assert store.read(KEY).version == version


def test_one_of_many_wins(store: Store, opened: Open) -> None:
    version = store.swap(KEY, b"start", "")
    assert version
    results: list[str | None] = []

    def swap(number: int) -> None:
        with closing(opened()) as own:
            results.append(own.swap(KEY, b"%d" % number, version))

    threads = [threading.Thread(target=swap, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 8
    assert [result for result in results if result is not None] == [store.read(KEY).version]


def test_nothing_is_lost_or_doubled_among_many_writers(store: Store, opened: Open) -> None:
    stores = [opened() for _ in range(SIZE.store_writers)]
    try:
        count = Counting(stores, KEY, 10).run()
    finally:
        for each in stores:
            each.close()
    assert (count.swaps, count.faults) == (10 * len(stores), 0)


# A backup that is restored


class Vm:
    """A VM that counts in a document, with what it has seen of it."""

    def __init__(self, store: Store, kept: bool = True) -> None:
        self._store = store
        self._memory = LineageMemory(kept)

    def look(self, add: int = 0) -> int:
        """Return the number, after adding to it."""

        def decoded(value: bytes | None) -> int:
            return 0 if value is None else int(json.loads(value)["number"])

        def encoded(number: int) -> bytes:
            return b'{"number":%d}' % number

        changed = change(
            *(self._store, KEY, decoded, encoded, lambda number: number + add, time.monotonic, lambda _attempt: None),
            memory=self._memory,
        )
        return int(changed.document)


def restored(store: Store, backup: bytes | None) -> None:
    """Put an older value in the place of the newest: its version is newer than all that were seen."""
    store.swap(KEY, backup, store.read(KEY).version)


@pytest.mark.parametrize(("before", "lost", "others"), [(1, 1, 0), (2, 3, 3), (1, 1, 9)])
@pytest.mark.parametrize("writes", [True, False], ids=["wrote", "read"])
def test_who_has_seen_more_than_the_backup_notices(
    opened: Open, store: Store, before: int, lost: int, others: int, writes: bool
) -> None:
    """Also where others have written as much again since then, and so no number tells."""
    with closing(opened()) as second, closing(opened()) as third:
        saw, other, late = Vm(store), Vm(second), Vm(third)
        for _ in range(before):
            assert other.look(add=1)
        backup = store.read(KEY).value
        for _ in range(lost):
            (saw if writes else other).look(add=1)
        assert saw.look() == before + lost
        restored(store, backup)
        for _ in range(others):
            late.look(add=1)  # it has never seen the lost writes
        for _ in range(2):
            with pytest.raises(StoreFault, match="gone back to an older state") as caught:
                saw.look(add=1)
            assert (caught.value.kind, caught.value.lasting) == (LOST_DATA, True)
            late.look(add=1)
        assert late.look() == before + others + 2


def test_client_continues_from_writes_of_others(opened: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "KEPT", 4)
    with closing(opened()) as second:
        one, other = Vm(store), Vm(second)
        assert one.look(add=1) == 1
        for _ in range(9):  # more than the document remembers
            other.look(add=1)
        assert one.look(add=1) == 11
        assert other.look() == 11


@pytest.mark.parametrize("kept", [True, False])
def test_a_document_that_was_removed_and_written_anew(opened: Open, store: Store, kept: bool) -> None:
    """Nobody removes a semaphore; of a barrier it is usual."""
    with closing(opened()) as second:
        one, other = Vm(store, kept), Vm(second, kept=False)
        for _ in range(3):
            one.look(add=1)
        restored(store, None)
        assert other.look(add=1) == 1
        if kept:
            with pytest.raises(StoreFault, match="gone back"):
                one.look()
        else:
            assert one.look() == 1
