# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of requests about recoveries: what they may hold, who may write them, and who asked."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.hooks import recovery_requests
from hypothesis import given
from hypothesis import strategies as st
from tools.worlds.recovery_stage import Machine

GOOD: dict[str, Any] = {
    "forewarn": {"schema": "recovery-request", "version": 1},
    "record_id": 1,
    "event_id": "A",
    "action": "dealt-with",
    "note": "put back",
    "by": "alice",
    "asked": [1.0, 2.0, "boot"],
}
NAME = "recover-0123456789ab.json"


def refused(machine: Machine) -> str:
    """Work; return why the one file was refused, and check that it is moved aside, once."""
    machine.work()
    machine.work()
    (answer,) = machine.answers()
    assert answer.kind == "recovery-refused"
    assert all(name.endswith(".refused") for name in machine.files())
    return str(answer.fields["reason"])


def test_base_of_the_bad_examples_is_good() -> None:
    assert recovery_requests._request(json.dumps(GOOD).encode()).note == "put back"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a request"),
        ("[]", "keys"),
        ("[" * 60000, "not a request"),
        ("0" * 70000, "longer than"),
        ({**GOOD, "more": 1}, "keys"),
        ({**GOOD, "forewarn": {"schema": "recovery-request", "version": 2}}, "another version"),
        ({**GOOD, "record_id": True}, "record_id"),
        ({**GOOD, "record_id": 2**63}, "record_id"),
        ({**GOOD, "event_id": None}, "event_id"),
        ({**GOOD, "event_id": "a\nb"}, "event_id"),
        ({**GOOD, "action": "skip"}, "action"),
        ({**GOOD, "note": None}, "note"),
        ({**GOOD, "note": "  "}, "note"),
        ({**GOOD, "note": "two\nlines"}, "note"),
        ({**GOOD, "note": "x" * 1001}, "note"),
        ({**GOOD, "note": 5}, "note"),
        ({**GOOD, "action": "again"}, "note"),
        ({**GOOD, "by": ""}, "who asked"),
        ({**GOOD, "asked": [1, 2]}, "not a request"),
    ],
)
def test_a_bad_file_is_moved_aside_and_reported(machine: Machine, content: object, reason: str) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    text = content if isinstance(content, str) else json.dumps(content)
    (machine.state / "recoveries" / NAME).write_text(text)
    assert reason in refused(machine)


def test_bad_file_does_not_block_a_good_one(machine: Machine) -> None:
    record = machine.failing()
    machine.ask(record)
    (machine.state / "recoveries" / NAME).write_text("{")
    machine.work()
    assert machine.running() == ["undrain"]


def test_file_writable_by_others_is_refused(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    path = machine.state / "recoveries" / NAME
    path.write_text(json.dumps(GOOD))
    path.chmod(0o602)
    assert "can be changed by others" in refused(machine)


def test_so_is_a_link(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    (machine.state / "elsewhere.json").write_text(json.dumps(GOOD))
    (machine.state / "recoveries" / NAME).symlink_to(machine.state / "elsewhere.json")
    refused(machine)
    assert (machine.state / "elsewhere.json").exists()


def test_wrong_file_name_is_refused(machine: Machine) -> None:
    (machine.state / "recoveries").mkdir(mode=0o700)
    (machine.state / "recoveries" / "please.json").write_text(json.dumps(GOOD))
    assert "please.json is not the name" in refused(machine)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_any_value_is_read_or_refused(data: st.DataObject) -> None:
    record = dict(GOOD)
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(_JSON)
    try:
        found = recovery_requests._request(json.dumps(record).encode())
    except InputError:
        return
    assert recovery_requests.check(found) == found


# Who may ask, and who asked


def test_a_request_is_for_the_runner_alone(machine: Machine) -> None:
    request_id = machine.ask(machine.failing())
    directory = machine.state / "recoveries"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / f"{request_id}.json").stat().st_mode & 0o777 == 0o600


def test_requester_is_the_user_behind_sudo() -> None:
    import pwd

    me = pwd.getpwuid(os.getuid()).pw_name
    assert recovery_requests.requesting_user({}) == me
    assert recovery_requests.requesting_user({"SUDO_USER": "alice"}) == (
        "root (sudo: alice)" if os.getuid() == 0 else me
    )
    assert recovery_requests.requesting_user({"SUDO_USER": "two\nlines"}) == me


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO])
def test_temporarily_unreadable_request_is_read_later(
    machine: Machine, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/operations.md: it is removed when it was carried out; a file that is not a request is moved aside."""
    record = machine.failing()
    request_id = machine.ask(record, "put back by hand")
    whole = os.open

    def fails(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith(f"{request_id}.json"):
            raise OSError(error, os.strerror(error))
        return whole(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fails)
        machine.work()
    machine.work()
    assert record.state == "done"


def test_event_with_a_long_id_is_dealt_with(machine: Machine) -> None:
    """docs/operations.md: an EventId may have 256 characters."""
    record = machine.recovering(name="A" * 256)
    for pause in (10.0, 60.0, 0.0):
        machine.end("undrain", "failed")
        machine.work(pause)
    machine.ask(record, "put back by hand")
    machine.work()
    assert machine.files() == []
    assert record.state == "done"
