# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group …``, with a store in memory that loses answers, delays writes and is changed by others meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.group import common, status
from forewarn.runner.groups import barrier, documents, semaphore
from forewarn.runner.groups.barrier import Barrier, Closure, Statement
from forewarn.runner.groups.semaphore import HELD, RECOVERING, Release, Semaphore, Slot, Waiter
from forewarn.runner.hooks import recovery_requests
from tools.sites.commands import in_process
from tools.worlds.memory_store import LATE, LOST_ANSWER, LOST_REQUEST, OUTAGE, MemoryServer, MemoryStore

STORE = {"etcd": ["https://etcd-1.example.com:2379"]}
KEY = documents.semaphore_key("web")
SINCE = "2026-11-25T08:00:00Z"
BUSY = Semaphore(
    {
        "a1": Slot({"web_0": HELD}, True, "Reboot A1", SINCE),
        "b2": Slot({"web_10": RECOVERING}, False, "Redeploy B2", SINCE),
        "c3": Slot({"web_0": HELD, "web_1": HELD}, True, "Freeze C3", SINCE),
    },
    {
        "d4": Waiter(("web_3",), 200.0, "Reboot D4", SINCE),
        "e5": Waiter(("web_0",), 100.0, "Reboot E5", SINCE),
    },
    (Release("web_9", "f6", "alice", "its VM is deleted", SINCE),),
)

Result = tuple[int, str, str]  # the exit code, and what was written to stdout and stderr
Group = Callable[..., Result]


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def store(server: MemoryServer, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Return the store that commands open."""
    opened = MemoryStore(server)
    monkeypatch.setattr(common, "open_store", lambda *_: opened)
    monkeypatch.setattr(common, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(recovery_requests, "requesting_user", lambda _environ: "bob")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    return opened


@pytest.fixture
def config(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "group.json"


@pytest.fixture
def group(store: MemoryStore, config: Path) -> Group:
    """Run a command, with a configuration that has nothing but the group."""
    assert store is not None
    members = ["web_0", "WEB_1"]
    config.write_text(json.dumps({"group": "web", "group_store": STORE, "group_members": members}))
    return lambda *arguments: run(config, *arguments)


def run(config: Path, *arguments: str) -> Result:
    done = in_process("group", arguments[0], "--config", config, *arguments[1:])
    return done.returncode, done.stdout, done.stderr


def put(server: MemoryServer, key: str, value: bytes | None) -> None:
    server.swap(key, value, server.read(key).version)


def shared(server: MemoryServer) -> Semaphore:
    return semaphore.decode(server.content()[KEY])


def once(store: MemoryStore, what: str, trouble: str, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Let the next request of a kind meet a trouble; ``meanwhile`` happens before the one after it."""
    met: list[str] = []

    def decide(kind: str, _key: str) -> str | None:
        if met == [what]:
            met.append("meanwhile")
            meanwhile()
        if kind == what and not met:
            met.append(kind)
            return trouble
        return None

    store.trouble = decide


# create


def test_it_creates_the_semaphore_once(group: Group, server: MemoryServer) -> None:
    assert group("create") == (0, "Group web has its semaphore now: the memory of the tests.\n", "")
    assert (list(server.content()), shared(server)) == ([KEY], Semaphore())
    put(server, KEY, semaphore.encode(BUSY))
    code, out, _err = group("create")
    assert (code, out) == (
        0,
        "Group web had its semaphore already; nothing was changed: the memory of the tests.\n",
    )
    assert shared(server) == BUSY
    assert json.loads(group("create", "--json")[1])["created"] is False


@pytest.mark.parametrize("trouble", [LOST_ANSWER, LOST_REQUEST, LATE])
def test_it_reads_again_where_the_answer_was_lost(
    trouble: str, group: Group, server: MemoryServer, store: MemoryStore
) -> None:
    once(store, "swap", trouble, server.deliver)
    code, out, err = group("create")
    assert (code, "has its semaphore now" in out) == (0, True), err
    server.deliver()
    assert (list(server.content()), shared(server)) == ([KEY], Semaphore())


def test_it_never_replaces_what_others_wrote_meanwhile(group: Group, server: MemoryServer, store: MemoryStore) -> None:
    once(store, "swap", LOST_REQUEST, lambda: put(server, KEY, semaphore.encode(BUSY)))
    assert group("create")[0] == 0
    assert shared(server) == BUSY
    put(server, KEY, b"somebody else's")
    code, _out, err = group("create")
    assert (code, "is not a semaphore of Forewarn" in err) == (3, True), err
    assert server.content()[KEY] == b"somebody else's"


def test_a_group_of_cel_is_named(group: Group, server: MemoryServer) -> None:
    assert group("create", "--group", "zone-1")[0] == 0
    assert list(server.content()) == [documents.semaphore_key("zone-1")]


@pytest.mark.parametrize("command", [("create",), ("status",), ("release", "web_0", "--why", "x")])
@pytest.mark.parametrize("name", ["a/b", "..", "a b", "-"])
def test_what_cannot_be_a_group_is_refused(
    command: tuple[str, ...], name: str, group: Group, server: MemoryServer
) -> None:
    code, _out, err = group(*command, f"--group={name}")
    assert (code, f"--group is {name!r}" in err, server.content()) == (2, True, {}), err


# release


def test_release_frees_all_slots_of_a_vm(group: Group, server: MemoryServer) -> None:
    """It ends the VM's waiting, too."""
    put(server, KEY, semaphore.encode(BUSY))
    code, out, err = group("release", "WEB_0", "--why", "its VM\n is  deleted")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "WEB_0 no longer holds a slot of web for Reboot A1.",
        "WEB_0 no longer holds a slot of web for Freeze C3.",
        "note: Another VM of web may be disturbed from now on, even if WEB_0 still is.",
    ]
    after = shared(server)
    assert after.disturbed() == {"web_1", "web_10"}
    assert list(after.waiting) == ["d4"]
    assert [(freed.name, freed.key, freed.by, freed.why) for freed in after.releases[1:]] == [
        ("web_0", "a1", "bob", "its VM is deleted"),
        ("web_0", "c3", "bob", "its VM is deleted"),
    ]


def test_it_frees_one_slot(group: Group, server: MemoryServer) -> None:
    put(server, KEY, semaphore.encode(BUSY))
    code, out, _err = group("release", "web_0", "--why", "x", "--event", "C3", "--json")
    found = json.loads(out)
    assert (code, found.pop("forewarn")) == (0, {"schema": "group-release", "version": 1})
    assert found == {"group": "web", "vm": "web_0", "by": "bob", "why": "x", "events": ["c3"]}
    assert shared(server).disturbed() == {"web_0", "web_1", "web_10"}
    assert list(shared(server).waiting) == ["d4", "e5"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("web_7", "--why", "x"), "web_7 holds no slot of group web."),
        (("web_3", "--why", "x"), "web_3 holds no slot of group web."),  # it waits for one
        (("web_0", "--why", "x", "--event", "b2"), "web_0 holds no slot of group web for an event b2."),
        (("web_0", "--why", " \n"), "--why is blank."),
        (("web_0", "--why", "x" * 501), "--why has 501 characters, and 500 are the limit."),
    ],
)
def test_what_it_cannot_free_it_refuses(
    arguments: tuple[str, ...], text: str, group: Group, server: MemoryServer
) -> None:
    put(server, KEY, semaphore.encode(BUSY))
    code, out, err = group("release", *arguments)
    assert (code, out, text in err) == (2, "", True), err
    assert shared(server) == BUSY


def test_without_a_semaphore_it_frees_nothing(group: Group, server: MemoryServer) -> None:
    code, _out, err = group("release", "web_0", "--why", "x")
    assert (code, "has no semaphore of group web" in err, server.content()) == (2, True, {}), err


@pytest.mark.parametrize("trouble", [LOST_ANSWER, LOST_REQUEST, LATE])
def test_it_frees_once_where_the_answer_was_lost(
    trouble: str, group: Group, server: MemoryServer, store: MemoryStore
) -> None:
    def meanwhile() -> None:
        """Let the write arrive, and another VM change the document after it."""
        server.deliver()
        document = shared(server)
        slots = {**document.slots, "g7": Slot({"web_5": HELD}, True)}
        put(server, KEY, semaphore.encode(document._replace(slots=slots)))

    put(server, KEY, semaphore.encode(BUSY))
    once(store, "swap", trouble, meanwhile)
    code, out, err = group("release", "web_0", "--why", "x")
    assert (code, out.count("web_0 no longer holds a slot")) == (0, 2), err
    after = shared(server)
    assert after.disturbed() == {"web_1", "web_10", "web_5"}
    assert [freed.key for freed in after.releases] == ["f6", "a1", "c3"]


def test_release_keeps_a_slot_taken_meanwhile(group: Group, server: MemoryServer, store: MemoryStore) -> None:
    def meanwhile() -> None:
        document = shared(server)
        assert "web_0" not in document.disturbed()
        slot = Slot({"web_0": HELD}, True, "Reboot A1", SINCE)
        put(server, KEY, semaphore.encode(document._replace(slots={**document.slots, "a1": slot})))

    put(server, KEY, semaphore.encode(BUSY))
    once(store, "swap", LOST_ANSWER, meanwhile)
    assert group("release", "web_0", "--why", "x")[0] == 0
    assert "web_0" in shared(server).slots["a1"].names


def test_release_gives_up_on_a_store_without_answers(
    group: Group, server: MemoryServer, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "_PATIENCE_SECONDS", 0.1)
    put(server, KEY, semaphore.encode(BUSY))
    store.trouble = lambda what, _key: LOST_REQUEST if what == "swap" else None
    code, out, err = group("release", "web_0", "--why", "x")
    assert (code, out) == (3, "")
    assert err == (
        "error: the memory of the tests took longer than 2 s answering.\n"
        "  hint: It may have been done all the same: see forewarn group status.\n"
    )


# status


def statement(state: str, reason: str = "") -> Statement:
    return Statement("content", state, reason)


def test_status_shows_slots_waiters_events_and_releases(group: Group, server: MemoryServer) -> None:
    put(server, KEY, semaphore.encode(BUSY))
    members = {"web_0": statement("ready"), "web_10": statement("failed", "a prepare hook failed")}
    for event, document in (
        ("A1", Barrier(members)),
        ("C3", Barrier({"web_0": statement("ready")}, Closure("content", "web_0"))),
    ):
        put(server, documents.barrier_key("web", event.lower()), barrier.encode(document, event))
    put(server, documents.barrier_key("web", "damaged"), b"[]")
    put(server, f"{documents.prefix('web')}doctor-0123", b"{}")
    code, out, err = group("status")
    assert (code, err) == (0, "")
    head, slots, *events = out.rstrip("\n").split("\n\n")
    said = r"Group web: the memory of the tests answers in \d+\.\d ms\.\nMembers: web_0, web_1"
    assert re.fullmatch(said, head)
    assert slots.splitlines() == [
        f"web_0   holds a slot for Reboot A1 since {SINCE}",
        f"web_10  recovers for Redeploy B2 since {SINCE}, beyond the limit",
        f"web_0   holds a slot for Freeze C3 since {SINCE}",
        f"web_1   holds a slot for Freeze C3 since {SINCE}",
        f"waits   web_0 for Reboot E5 since {SINCE}",
        f"waits   web_3 for Reboot D4 since {SINCE}",
        f"freed   web_9 by alice at {SINCE}, for f6: its VM is deleted",
    ]
    assert sorted(events) == [
        "Event A1\n  web_0   ready\n  web_10  failed: a prepare hook failed",
        "Event C3: all are prepared, and web_0 approves\n  web_0  ready",
        f"Event {documents.barrier_key('web', 'damaged')}\n  it is not a barrier of Forewarn",
    ]


def test_its_json_has_the_same(group: Group, server: MemoryServer) -> None:
    put(server, KEY, semaphore.encode(BUSY))
    document = Barrier({"web_0": statement("ready")}, Closure("content", "web_0"))
    put(server, documents.barrier_key("web", "c3"), barrier.encode(document, "C3"))
    found: dict[str, Any] = json.loads(group("status", "--json")[1])
    assert found["forewarn"] == {"schema": "group-status", "version": 1}
    assert found["members"] == ["web_0", "web_1"]
    assert found["semaphore"]["slots"][1] == {
        "vm": "web_10",
        "event": "b2",
        "what": "Redeploy B2",
        "since": SINCE,
        "recovering": True,
        "within_limit": False,
    }
    assert [waiter["event"] for waiter in found["semaphore"]["waiting"]] == ["e5", "d4"], "the soonest NotBefore first"
    said = {"vm": "web_0", "state": "ready", "reason": ""}
    assert found["events"] == [{"event": "C3", "problem": None, "members": [said], "closed_by": "web_0"}]


def test_status_without_a_semaphore_explains_its_creation(group: Group) -> None:
    code, out, _err = group("status")
    assert code == 0
    assert out.splitlines()[1:] == [
        "Members: web_0, web_1",
        "",
        "It has no semaphore: events with a limit are held.",
        "Create it, once no VM of the group is disturbed: forewarn group create.",
    ]


def test_a_slow_store_ends_it_in_time(group: Group, server: MemoryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        document = Barrier({"web_0": statement("ready")})
        put(server, documents.barrier_key("web", f"e{number}"), barrier.encode(document, f"E{number}"))
    monkeypatch.setattr(status, "MOST_SECONDS", 0.0)
    out = group("status")[1]
    assert (out.count("Event E"), out.splitlines()[-1]) == (0, "Not shown: 9 more events.")
    monkeypatch.setattr(status, "MOST_SECONDS", 10.0)
    monkeypatch.setattr(status, "MOST_EVENTS", 5)
    out = group("status")[1]
    assert (out.count("Event E"), out.splitlines()[-1]) == (5, "Not shown: 4 more events.")


def test_stored_text_cannot_forge_an_output_line(group: Group, server: MemoryServer) -> None:
    evil = "Reboot\n\033[31mNobody holds a slot."
    put(server, KEY, semaphore.encode(Semaphore({"a": Slot({"web_0": HELD}, True, evil, SINCE)})))
    out = group("status")[1]
    assert ("\033" in out, "\nNobody" in out, out.count("Nobody holds a slot")) == (False, False, 1)
    out = group("release", "web_0", "--why", "x")[1]
    assert ("\033" in out, len(out.splitlines())) == (False, 2)


# The store, and the configuration


@pytest.mark.parametrize("command", [("create",), ("status",), ("release", "web_0", "--why", "x")])
def test_a_fault_of_the_store_is_said(command: tuple[str, ...], group: Group, store: MemoryStore) -> None:
    store.trouble = lambda _what, _key: OUTAGE
    assert group(*command) == (3, "", "error: the memory of the tests refused the connection.\n")


def test_a_configuration_that_others_can_change_is_refused(group: Group, config: Path) -> None:
    config.chmod(0o666)
    code, _out, err = group("status")
    assert (code, "can be changed by others" in err, "chmod go-w" in err) == (2, True, True), err


def test_without_a_configuration_it_says_what_to_name(tmp_path: Path) -> None:
    code, _out, err = run(tmp_path / "config.json", "status")
    assert (code, "No such file" in err, "--config FILE" in err) == (2, True, True), err


@pytest.mark.parametrize("kind", ["password", "sas"])
def test_credential_is_found_in_the_services_directories(
    kind: str, config: Path, tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str | None] = []
    opened = [tmp_path / "run", tmp_path / "etc"]
    monkeypatch.setattr(common, "CREDENTIALS", tuple(map(str, opened)))

    def opened_with(_settings: object, where: str | None, _endpoint: str) -> MemoryStore:
        given.append(where)
        return store

    monkeypatch.setattr(common, "open_store", opened_with)
    kinds = {
        "password": {**STORE, "user": "vm", "password": {"credential": "store"}},
        "sas": {"blob": "https://a.blob.core.windows.net/c", "sas": {"credential": "store"}},
    }
    config.write_text(json.dumps({"group": "web", "group_store": kinds[kind]}))
    code, _out, err = run(config, "status")
    assert (code, "the store needs the credential store" in err, "CREDENTIALS_DIRECTORY" in err) == (2, True, True), err
    for directory in opened:
        directory.mkdir()
    (opened[1] / "store").write_text("secret")
    assert run(config, "status")[0] == 0
    (opened[0] / "store").write_text("secret")
    assert run(config, "status")[0] == 0
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert run(config, "status")[0] == 0
    assert given == [str(opened[1]), str(opened[0]), str(tmp_path)]
