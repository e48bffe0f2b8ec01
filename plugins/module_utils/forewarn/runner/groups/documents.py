# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents that VMs share in a store: their keys, and JSON that says which schema and version it has."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

_VERSION = 1
_PREFIX = "forewarn"
# Names of groups are part of keys, of URLs and of permissions.
_GROUP = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
GROUP_WORDS = "letters, digits, '.', '_' and '-', at most 63, beginning and ending with a letter or a digit"

_KINDS: Mapping[type, str] = {str: "a text", list: "a list", dict: "an object"}
_T = TypeVar("_T")


class SharedDocumentError(Exception):
    """A document in the store is not one of ours, or of a newer version: nothing rests on it, and nothing replaces it.

    The text is for an operator.
    """


def is_group(name: str) -> bool:
    """Return whether a text can be the name of a group: see ``GROUP_WORDS``."""
    return _GROUP.fullmatch(name) is not None and ".." not in name


def prefix(group: str) -> str:
    """Return what all keys of a group begin with."""
    return f"{_PREFIX}/{group}/"


def events_prefix(group: str) -> str:
    """Return what the keys of all barriers of a group begin with."""
    return f"{prefix(group)}events/"


def barrier_key(group: str, event_key: str) -> str:
    """Return the key of an event's barrier. ``event_key`` is ``Event.key``, which may be any text."""
    return f"{events_prefix(group)}{hashlib.sha256(event_key.encode('utf-8', 'backslashreplace')).hexdigest()[:40]}"


def claim_key(group: str, event_key: str) -> str:
    """Return the key of the document in which one of several witnesses undertakes to approve an event.

    It is not the event's barrier: what closes it says nothing about the event's VMs.
    """
    return barrier_key(group, f"{event_key} of witnesses")


def semaphore_key(group: str) -> str:
    """Return the key of a group's semaphore."""
    return f"{prefix(group)}limit"


def dump(schema: str, data: Mapping[str, Any]) -> bytes:
    """Return a document as JSON in ASCII."""
    header = {"schema": schema, "version": _VERSION}
    return json.dumps({"forewarn": header, **data}, separators=(",", ":")).encode("ascii")


def load(schema: str, content: bytes) -> Mapping[str, Any]:
    """Return what ``dump`` wrote. Raises SharedDocumentError."""
    try:
        data = json.loads(content.decode("utf-8"))
        header = data["forewarn"]
        found, version = header["schema"], header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SharedDocumentError(f"it is not a {schema} of Forewarn") from error
    if found != schema or not isinstance(version, int):
        raise SharedDocumentError(f"it is not a {schema} of Forewarn")
    if version != _VERSION:
        raise SharedDocumentError(f"it has version {version}, and this forewarn knows {_VERSION}: upgrade this VM")
    return dict(data)


def member(data: Any, name: str, kind: type[_T]) -> _T:
    """Return a member of a JSON object that is a text, a list or an object itself. Raises SharedDocumentError."""
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind):
        raise SharedDocumentError(f"its {name} is not {_KINDS[kind]}")
    return value


def texts(data: Any, names: Iterable[str]) -> list[str]:
    """Return members of a JSON object that are texts. Raises SharedDocumentError."""
    return [member(data, name, str) for name in names]
