# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` tries the store of the VM's group, and leaves nothing behind there."""

from __future__ import annotations

import pytest
from forewarn.cli.doctor import group
from forewarn.cli.doctor.check import AS_ADMIN, NOT_CHECKED, OK, TROUBLE, WARNING, Check
from forewarn.cli.group import common
from forewarn.runner.groups import documents, semaphore
from forewarn.runner.groups.semaphore import Semaphore
from forewarn.runner.groups.settings import GroupSettings, SecretSource, StoreSettings
from forewarn.runner.groups.store import LOGIN, StoredValue, StoreFault
from tools.worlds.memory_store import LATE, LOST_ANSWER, OUTAGE, MemoryServer, MemoryStore

KEY = documents.semaphore_key("web")
MEMORY = "the memory of the tests"


@pytest.fixture
def server() -> MemoryServer:
    found = MemoryServer()
    found.swap(KEY, semaphore.encode(Semaphore()), "")
    return found


@pytest.fixture
def store(server: MemoryServer, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Return the store that the check opens, as root."""
    opened = MemoryStore(server)
    monkeypatch.setattr(group, "open_store", lambda *_: opened)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(common, "CREDENTIALS", ())
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    return opened


def check(
    limited: bool = True, vm: str | None = "WEB_0", members: tuple[str, ...] = (), store: StoreSettings | None = None
) -> Check:
    found = group.group(GroupSettings("web", members, store or StoreSettings()), limited, vm, "")
    assert found.name == "group"
    return found


@pytest.mark.parametrize("members", [(), ("web_0", "web_1")])
def test_a_store_that_does_all_is_ok(members: tuple[str, ...], server: MemoryServer, store: MemoryStore) -> None:
    asked: list[tuple[str, str]] = []

    def watch(what: str, key: str) -> None:
        asked.append((what, key))

    store.trouble = watch
    found = check(members=members)
    assert (found.state, found.hint) == (OK, "")
    assert found.text.startswith(f"web: {MEMORY} answers in ")
    assert found.text.endswith(" ms, and lets this VM read and write")
    assert [what for what, _key in asked] == ["swap", "read", "swap", "read"]
    assert list(server.content()) == [KEY]
    assert asked[0][1] != KEY


@pytest.mark.parametrize(("limited", "state"), [(True, TROUBLE), (False, OK)])
def test_a_limit_needs_the_semaphore(limited: bool, state: str, server: MemoryServer, store: MemoryStore) -> None:
    assert store is not None
    server.wipe()
    found = check(limited)
    assert (found.state, "has no semaphore" in found.text) == (state, limited)
    assert ("forewarn group create" in found.hint) == limited
    assert server.content() == {}


def test_a_damaged_semaphore_is_trouble(server: MemoryServer, store: MemoryStore) -> None:
    assert store is not None
    server.swap(KEY, b"[]", server.read(KEY).version)
    found = check(limited=False)
    assert (found.state, found.text) == (
        TROUBLE,
        "the semaphore of web cannot be used: it is not a semaphore of Forewarn",
    )


@pytest.mark.parametrize(
    ("vm", "members", "state"),
    [("web_7", ("web_0", "web_1"), WARNING), (None, ("web_0",), OK), ("web_7", (), OK)],
)
def test_a_vm_is_among_the_members(vm: str | None, members: tuple[str, ...], state: str, store: MemoryStore) -> None:
    assert store is not None
    found = check(vm=vm, members=members)
    assert found.state == state, found
    assert ("web_7 is not among group_members" in found.text) == (state == WARNING)


@pytest.mark.parametrize("trouble", [LOST_ANSWER, LATE])
@pytest.mark.parametrize("number", [0, 1])
def test_it_cleans_up_where_an_answer_was_lost(
    number: int, trouble: str, server: MemoryServer, store: MemoryStore
) -> None:
    swaps: list[str] = []

    def decide(what: str, key: str) -> str | None:
        server.deliver()
        if what != "swap":
            return None
        swaps.append(key)
        return trouble if len(swaps) == number + 1 else None

    store.trouble = decide
    found = check()
    server.deliver()
    assert (found.state, found.text) == (TROUBLE, f"{MEMORY} took longer than 2 s answering.")
    assert list(server.content()) == [KEY]


def test_store_that_loses_writes_is_trouble(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "read", lambda _key: StoredValue(None, ""))
    found = check()
    assert (found.state, found.text) == (TROUBLE, f"{MEMORY} does not have what was just written to it.")


def test_store_fault_is_reported_with_its_hint(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.trouble = lambda _what, _key: OUTAGE
    found = check()
    assert (found.state, found.text) == (TROUBLE, f"{MEMORY} refused the connection.")

    def refuse(_key: str, _value: bytes | None, _version: str) -> str:
        raise StoreFault("it does not let the user write.", "Grant its role readwrite.", kind=LOGIN, lasting=True)

    store.trouble = lambda _what, _key: None
    monkeypatch.setattr(store, "swap", refuse)
    assert check() == Check("group", TROUBLE, "it does not let the user write.", "Grant its role readwrite.")


def test_what_root_alone_can_read_is_not_trouble(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store is not None
    needs = StoreSettings(user="vm", password=SecretSource("store", None))
    found = check(store=needs)
    assert (found.state, "needs the credential store" in found.text) == (TROUBLE, True), found
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = check(store=needs)
    assert (found.state, found.hint) == (NOT_CHECKED, AS_ADMIN)

    def refuse(_key: str, _value: bytes | None, _version: str) -> str:
        raise StoreFault("the secret /etc/x cannot be read: Permission denied", kind=LOGIN, lasting=True)

    monkeypatch.setattr(store, "swap", refuse)
    assert (check().state, check().hint) == (NOT_CHECKED, AS_ADMIN)
