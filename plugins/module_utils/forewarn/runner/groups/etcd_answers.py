# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the JSON gateway of etcd answers, measured with etcd 3.4: keys and values are in base64, int64 are texts.

Each ``..._of`` function raises ValueError for another answer; its text goes on after "the answer of …".
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...imds.errors import HTTP
from .https import StoreReply
from .store import CERTIFICATE, LOGIN, StoreFault

_NUMBER = re.compile(r"[1-9][0-9]{0,19}", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
# After any other error status, a write may have been applied.
_NOTHING_DONE = frozenset({400, 401, 403, 404, 405, 413, 429})
_EXPIRED = (b"invalid auth token", b"revision of auth store is old")


class KeyRow(NamedTuple):
    """A key, its value, and its version."""

    key: str
    value: bytes
    mod_revision: str


class Header(NamedTuple):
    """Which cluster answers, and the number of its last change."""

    cluster: str
    revision: int


class _Refusal(NamedTuple):
    """What a part of an error's text means. The text itself is never shown: it may repeat anything."""

    part: bytes
    text: str
    hint: str = ""
    kind: str = HTTP
    lasting: bool = False


_REFUSALS = (
    _Refusal(
        b"permission denied",
        "does not let the user read or write this key",
        "Grant its role readwrite on the whole prefix: etcdctl role grant-permission --prefix ROLE readwrite forewarn/",
        *(LOGIN, True),
    ),
    _Refusal(b"authentication failed", "knows no such user, or has another password for it", "", LOGIN, True),
    _Refusal(
        b"authentication is not enabled",
        "has no users",
        "Switch them on with etcdctl auth enable, or leave out user and password.",
        *(LOGIN, True),
    ),
    _Refusal(b"user name is empty", "wants a user and a password", "", LOGIN, True),
    _Refusal(
        b"CommonName of client",
        "takes no client certificate with a common name (CN)",
        "Issue one without: etcd's gateway knows users by their password alone.",
        *(CERTIFICATE, True),
    ),
    _Refusal(b"database space exceeded", "has no space left in its database", "Compact and defragment it."),
    _Refusal(b"too many requests", "has too many requests at once"),
    _Refusal(b"request timed out", "found no majority of the members in time"),
    _Refusal(b"no leader", "knows no leader"),
    _Refusal(b"leader changed", "has a new leader"),
)


def encode(data: str | bytes) -> str:
    """Return a key or a value as requests have it."""
    return base64.b64encode(data.encode("ascii") if isinstance(data, str) else data).decode("ascii")


def object_of(body: bytes) -> Mapping[str, Any]:
    """Return the object of a body."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON") from error
    if not isinstance(answer, dict):
        raise ValueError("is not an object")
    return answer


def header_of(answer: Mapping[str, Any]) -> Header:
    """Return what an answer says about the cluster."""
    header = _object(answer, "header")
    return Header(_number(header, "cluster_id"), int(_number(header, "revision")))


def rows_of(answer: Mapping[str, Any]) -> list[KeyRow]:
    """Return all keys of an answer to a range."""
    listed = answer.get("kvs", [])
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise ValueError("has no list of keys")
    if answer.get("more") or str(len(listed)) != answer.get("count", "0"):
        raise ValueError("lacks some of the keys")
    return [KeyRow(_key(row), _decoded(row, "value"), _number(row, "mod_revision")) for row in listed]


def swapped_of(answer: Mapping[str, Any]) -> bool:
    """Return whether a transaction was carried out. One that was not lacks the key ``succeeded``."""
    succeeded = answer.get("succeeded", False)
    if not isinstance(succeeded, bool):
        raise ValueError("does not say whether the transaction succeeded")
    return succeeded


def token_of(answer: Mapping[str, Any]) -> str:
    """Return the token of an answer to a login."""
    token = answer.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise ValueError("has no token")
    return token


def is_expired(reply: StoreReply) -> bool:
    """Return whether an answer asks for another token. Nothing was done."""
    return reply.status == 401 or (reply.status == 400 and any(part in reply.body for part in _EXPIRED))


def refusal(reply: StoreReply, where: str) -> StoreFault:
    """Return the fault for an answer that is not 200."""
    status = reply.status
    unsure = status not in _NOTHING_DONE
    for known in _REFUSALS:
        if known.part in reply.body:
            text = f"{where} {known.text} (it answered {status})."
            return StoreFault(text, known.hint, kind=known.kind, status=status, unsure=unsure, lasting=known.lasting)
    if is_expired(reply):
        text = f"{where} does not take the token that it has just given (it answered {status})."
        return StoreFault(text, kind=LOGIN, status=status)
    lasting = status < 500 and status not in (408, 409, 413, 429)
    hint = "Is this the client port of etcd 3.4 or later?" if lasting else ""
    return StoreFault(f"{where} answered {status}.", hint, kind=HTTP, status=status, unsure=unsure, lasting=lasting)


def _object(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = answer.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"has no {name}")
    return value


def _number(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise ValueError(f"has no {name}")
    return value


def _decoded(row: Mapping[str, Any], name: str) -> bytes:
    value = row.get(name, "")  # what is empty is left out
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"has a {name} that is not base64") from error


def _key(row: Mapping[str, Any]) -> str:
    try:
        return _decoded(row, "key").decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError("has a key that is not ASCII") from error
