# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signed policies that are in use: never half of them, and never older ones without a permit."""

from __future__ import annotations

import errno
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.state import accepted_policy
from forewarn.runner.state.accepted_policy import OlderPolicyError, Permit, SignedPolicy
from forewarn.system.posix import files
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.killed_writes import BEFORE, HALFWAY, DyingSystem, killed_at_each_call
from tools.suite.sizes import examples

OLD, NEW = (SignedPolicy(letter * 5000, b"signature of " + letter) for letter in (b"o", b"n"))


@pytest.fixture
def state(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


def permit(state: str, serial: int) -> None:
    accepted = accepted_policy.read_accepted(state)
    assert accepted is not None
    accepted_policy.write_permit(state, Permit(serial, accepted.serial, accepted.since, "somebody", 0.0))


def test_first_policies_may_have_any_serial(state: str) -> None:
    assert accepted_policy.read_accepted(None) is None
    assert accepted_policy.read_accepted(state) is None
    assert accepted_policy.oldest_serial(state) == accepted_policy.oldest_serial(None) == 0
    assert list(Path(state).iterdir()) == []
    accepted_policy.accept(state, 7, OLD)
    assert accepted_policy.oldest_serial(state) == 7


def test_same_serial_keeps_its_time(state: str) -> None:
    first = accepted_policy.accept(state, 7, OLD)
    assert accepted_policy.accept(state, 7, NEW).since == first.since
    assert accepted_policy.read_accepted(state) == first._replace(policy=NEW)
    assert accepted_policy.accept(state, 8, NEW).since > first.since


def test_older_policies_are_not_accepted(state: str) -> None:
    """Another process may have put newer ones in use since these were read."""
    accepted_policy.accept(state, 7, NEW)
    with pytest.raises(OlderPolicyError, match="newer than serial 6"):
        accepted_policy.accept(state, 6, OLD)
    assert accepted_policy.oldest_serial(state) == 7


def test_permit_counts_once(state: str) -> None:
    accepted_policy.accept(state, 7, NEW)
    permit(state, 5)
    assert accepted_policy.oldest_serial(state) == 5
    accepted_policy.accept(state, 6, OLD)
    assert accepted_policy.oldest_serial(state) == 6
    accepted_policy.accept(state, 7, NEW)  # as before, but the permit was for then
    assert accepted_policy.oldest_serial(state) == 7


def outcome(action: Callable[[], object]) -> tuple[object, str]:
    """Return what an action returns, or why it refuses."""
    try:
        return action(), ""
    except InputError as error:
        return None, str(error)


@pytest.mark.parametrize("moment", [BEFORE, HALFWAY])
@pytest.mark.parametrize("first", [False, True])
def test_killed_write_leaves_old_or_new(tmp_path: Path, moment: str, first: bool) -> None:
    state = tmp_path / "state"
    state.mkdir(0o700)
    before = None if first else accepted_policy.accept(str(state), 1, OLD)
    seen = set()
    killed = 0
    for _number in killed_at_each_call(lambda: accepted_policy.accept(str(state), 2, NEW), moment):
        killed += 1
        found = accepted_policy.read_accepted(str(state))
        assert found == before or (found is not None and (found.serial, found.policy) == (2, NEW))
        seen.add(found == before)
        if found != before:  # begin again
            Path(state, "policy", "accepted.json").unlink()
            before = None if first else accepted_policy.accept(str(state), 1, OLD)
    assert killed >= 8
    assert seen == {True, False}
    found = accepted_policy.read_accepted(str(state))
    assert found is not None
    assert found.policy == NEW


@pytest.mark.parametrize("write", ["offer", "permit"])
def test_killed_write_of_offer_or_permit(state: str, write: str) -> None:
    accepted_policy.accept(state, 7, NEW)
    actions: dict[str, Callable[[], None]] = {
        "offer": lambda: accepted_policy.write_offer(state, OLD),
        "permit": lambda: permit(state, 5),
    }
    for _number in killed_at_each_call(actions[write], HALFWAY):
        assert accepted_policy.oldest_serial(state) in (5, 7)
        offered, problem = outcome(lambda: accepted_policy.read_offer(state))
        assert offered == OLD or "there is none" in problem
    assert accepted_policy.read_offer(state) == OLD if write == "offer" else accepted_policy.oldest_serial(state) == 5


def test_full_disk_leaves_old_or_new(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full, or broken, at each system call."""

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = accepted_policy.accept(state, 1, OLD)
    for number in itertools.count(1):
        monkeypatch.setattr(files, "os", DyingSystem(number, HALFWAY, fail))
        _accepted, problem = outcome(lambda: accepted_policy.accept(state, 2, NEW))
        monkeypatch.undo()
        if not problem:
            break
        assert "No space left on device" in problem
        assert [path.name for path in Path(state, "policy").iterdir()] == ["accepted.json"]
        found = accepted_policy.read_accepted(state)
        assert found is not None
        if found != before:  # only the last step has failed: whether the disk has it by now
            assert found.policy == NEW
            Path(state, "policy", "accepted.json").unlink()
            before = accepted_policy.accept(state, 1, OLD)
    assert number > 8


def test_files_are_for_the_runner_alone(state: str) -> None:
    accepted_policy.accept(state, 7, NEW)
    accepted_policy.write_offer(state, OLD)
    permit(state, 5)
    directory = Path(state, "policy")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()} == dict.fromkeys(
        ("accepted.json", "offer.json", "older.json"), 0o600
    )


READ = {
    accepted_policy.ACCEPTED: accepted_policy.read_accepted,
    accepted_policy.OFFER: accepted_policy.read_offer,
    accepted_policy.PERMIT: accepted_policy.read_permit,
}


@pytest.mark.parametrize("name", READ)
def test_damaged_file_is_reported(state: str, name: str) -> None:
    accepted_policy.accept(state, 7, NEW)
    accepted_policy.write_offer(state, OLD)
    permit(state, 5)
    path = Path(state, "policy", name)
    whole = path.read_bytes()
    content = json.loads(whole)
    read = READ[name]

    @settings(max_examples=examples(150))
    @given(data=st.data())
    def damage(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(["cut", "garbage", "field"]))
        if kind == "cut":
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        elif kind == "garbage":
            path.write_bytes(data.draw(st.binary(max_size=50)))
        else:
            field = data.draw(st.sampled_from(sorted(content)))
            value: Any = data.draw(
                st.none() | st.booleans() | st.floats() | st.sampled_from([10**400, -1, 0, "", [], {}, "\ud800"])
            )
            path.write_text(json.dumps({**content, field: value}))
        _found, problem = outcome(lambda: read(state))
        assert str(path) in problem or (kind == "field" and not problem)

    damage()
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        read(state)


def test_what_is_not_utf_8_is_refused(state: str) -> None:
    """Nothing but the armor of a signature is signed: a server can add to it."""
    for policy in (
        NEW._replace(signature=b"-----END SSH SIGNATURE-----\n\xff"),
        NEW._replace(artifact=b"\xff\xfe{\0}\0"),
    ):
        with pytest.raises(InputError, match="not UTF-8"):
            accepted_policy.accept(state, 7, policy)
        with pytest.raises(InputError, match="not UTF-8"):
            accepted_policy.write_offer(state, policy)
