# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signed policies that this VM has put in use last, and the oldest serial that it accepts from now on.

One file has both: whenever the process is killed, either the earlier policies are there or the later ones. The files
are below the state directory, in one that only root and the runner's user can change.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ...system.files import create_subdirectory, open_to_read, write_in_directory

DIRECTORY = "policy"
ACCEPTED, PERMIT, OFFER = "accepted.json", "older.json", "offer.json"
_MAX_BYTES = 64 * 1024 * 1024
_SCHEMA = {"schema": "signed-policy", "version": 1}


class SignedPolicy(NamedTuple):
    """The bytes of an artifact, and the signature that ``ssh-keygen -Y sign`` made of them."""

    artifact: bytes
    signature: bytes


class AcceptedPolicy(NamedTuple):
    """Policies in use: their ``serial``, and ``since`` when this VM uses them, in seconds since 1970."""

    serial: int
    since: float
    policy: SignedPolicy


class Permit(NamedTuple):
    """A person's word that policies of ``serial`` may follow those of ``instead_of``, which is newer.

    ``since`` is when this VM put the newer ones in use: should they come back, the permit is still spent.
    """

    serial: int
    instead_of: int
    since: float
    by: str
    at: float


class OlderPolicyError(InputError):
    """Policies that are validly signed, and older than those in use."""


def read_accepted(state: str | None) -> AcceptedPolicy | None:
    """Return the policies in use, or None before the first. Raises InputError for a file that cannot be read."""
    found = None if state is None else _read(state, ACCEPTED)
    if found is None:
        return None
    try:
        return AcceptedPolicy(_serial(found["serial"]), float(found["since"]), _policy(found))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(state, ACCEPTED, error) from error


def accept(state: str, serial: int, policy: SignedPolicy) -> AcceptedPolicy:
    """Remember policies before they are put in use.

    Raises InputError if that is not possible: an OlderPolicyError if newer ones were put in use since they were read.
    """
    before = read_accepted(state)
    if serial < oldest_serial(state):
        raise OlderPolicyError(
            f"policies newer than serial {serial} have been put in use meanwhile.", "Start it again."
        )
    since = before.since if before is not None and before.serial == serial else time.time()
    if before is None or before.policy != policy:
        _write(state, ACCEPTED, {"serial": serial, "since": since, **_texts(policy)})
    return AcceptedPolicy(serial, since, policy)


def oldest_serial(state: str | None) -> int:
    """Return the oldest serial that may be put in use: that in use, or one that a person permitted; 0 before the first.

    Raises InputError for a file that cannot be read.
    """
    accepted = read_accepted(state)
    if accepted is None:
        return 0
    permit = read_permit(state)
    # Once others are in use, the permit is spent.
    spent = permit is None or (permit.instead_of, permit.since) != (accepted.serial, accepted.since)
    return accepted.serial if permit is None or spent else permit.serial


def read_permit(state: str | None) -> Permit | None:
    """Return the latest permit, or None. Raises InputError for a file that cannot be read."""
    found = None if state is None else _read(state, PERMIT)
    if found is None:
        return None
    try:
        serial, instead_of = _serial(found["serial"]), _serial(found["instead_of"])
        return Permit(serial, instead_of, float(found["since"]), str(found["by"]), float(found["at"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(state, PERMIT, error) from error


def write_permit(state: str, permit: Permit) -> None:
    """Replace the permit. Root gives the file to the runner's user. Raises InputError."""
    _write(state, PERMIT, permit._asdict())


def read_offer(state: str) -> SignedPolicy:
    """Return what a process has brought from the policy source. Raises InputError."""
    found = _read(state, OFFER)
    try:
        if found is None:
            raise ValueError("there is none")
        return _policy(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(state, OFFER, error) from error


def write_offer(state: str, policy: SignedPolicy) -> None:
    """Keep what was brought from the policy source. Raises InputError."""
    _write(state, OFFER, _texts(policy))


def private_directory(state: str) -> str:
    """Return the directory of these files, which is made if it is missing. Raises InputError."""
    try:
        create_subdirectory(state, DIRECTORY)
    except OSError as error:
        raise InputError(f"{Path(state, DIRECTORY)} cannot be made: {error.strerror}.") from error
    return str(Path(state, DIRECTORY))


def _texts(policy: SignedPolicy) -> dict[str, str]:
    try:
        return {"artifact": policy.artifact.decode("utf-8"), "signature": policy.signature.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise InputError("the policies or their signature are not UTF-8.", "Compile them again with --sign.") from error


def _policy(found: Mapping[str, Any]) -> SignedPolicy:
    return SignedPolicy(found["artifact"].encode("utf-8"), found["signature"].encode("utf-8"))


def _serial(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a serial is a whole number from 1")
    return value


def _read(state: str, name: str) -> Mapping[str, Any] | None:
    path = Path(state, DIRECTORY, name)
    try:
        with os.fdopen(open_to_read(path, follow=False), "rb") as file:
            content = file.read(_MAX_BYTES)
        found = json.loads(content)
        if not isinstance(found, dict) or found.get("forewarn") != _SCHEMA:
            raise ValueError("it is of another version of Forewarn, or none of its files")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(state, name, error) from error
    return found


def _write(state: str, name: str, content: Mapping[str, Any]) -> None:
    directory = private_directory(state)
    try:
        write_in_directory(Path(directory), name, json.dumps({"forewarn": _SCHEMA, **content}).encode("ascii"))
    except OSError as error:
        raise InputError(f"{Path(directory, name)} cannot be written: {error.strerror}.") from error


def _damaged(state: str | None, name: str, error: Exception) -> InputError:
    path = Path(state or "", DIRECTORY, name)
    hint = (
        "Remove it once you know which policies this VM had: the next that are signed are accepted whatever they are."
    )
    return InputError(f"{path} is damaged: {error}.", hint if name == ACCEPTED else "Remove it.")
