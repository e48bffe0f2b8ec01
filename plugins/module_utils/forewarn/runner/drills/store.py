# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of STATE/drills. ID.json is a drill: the request and its progress. ID.cancel is a request to end it.

``inbox`` keeps the files safe.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from ...errors import InputError
from ...events import EVENT_SOURCES
from ...texts import duration_text, exact_text
from ..clocks import Stamp
from ..state.inbox import Inbox

DIRECTORY = "drills"
ID_PREFIX = "drill-"
# As far ahead as the service announces (predicted hardware failure), and far longer than any event lasts.
LONGEST_SECONDS = 7 * 86400.0

# Compiled when first needed: that takes longer than the rest of this import.
_ID = ID_PREFIX + "[0-9a-z]{1,32}"
_TYPE = "[A-Z][A-Za-z0-9]{0,63}"
_RECORD, _CANCEL = ".json", ".cancel"
_MOST_RESOURCES = 100
_LONGEST_NAME = 255
_LONGEST_DESCRIPTION = 1000
_SCHEMA = {"schema": "drill", "version": 1}


class DrillRequest(NamedTuple):
    """The request for a drill. ``resources`` None: this VM alone. ``description`` None: the runner's default."""

    event_type: str
    notice_seconds: float
    duration_seconds: float
    source: str
    resources: tuple[str, ...] | None = None
    description: str | None = None


class DrillRecord(NamedTuple):
    """The state of a drill. ``scheduled`` and ``resources`` are None until the runner begins it."""

    request: DrillRequest
    handed_over: Stamp
    scheduled: Stamp | None = None
    started: Stamp | None = None
    resources: tuple[str, ...] | None = None


class Names(NamedTuple):
    """Ids of drills, ids to cancel, and names of files that are neither."""

    drills: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()
    strange: tuple[str, ...] = ()


NOTHING = Names()


class DrillStore:
    """The directory of drills below a state directory."""

    def __init__(self, directory: str) -> None:
        self.inbox = Inbox(directory, DIRECTORY, "drill")

    def names(self) -> Names | None:
        """Return the names in the directory, or None if it cannot be read. Never raises."""
        listing = self.inbox.names()
        if listing is None:
            return None
        found: dict[str, list[str]] = {_RECORD: [], _CANCEL: []}
        strange = []
        for name in listing:
            file = PurePath(name)
            if file.suffix not in found:
                continue
            if re.fullmatch(_ID, file.stem):
                found[file.suffix].append(file.stem)
            else:
                strange.append(name)
        return Names(frozenset(found[_RECORD]), frozenset(found[_CANCEL]), tuple(strange))

    def read(self, event_id: str) -> DrillRecord:
        """Return a drill. Raises InputError if its file holds no drill, or is not safe from others."""
        return _record(self.inbox.read(event_id + _RECORD))

    def write(self, event_id: str, record: DrillRecord) -> None:
        """Write a drill, durably. Raises InputError."""
        data = {"forewarn": _SCHEMA, **record._asdict(), "request": record.request._asdict()}
        self.inbox.write(event_id + _RECORD, json.dumps(data).encode("ascii"))

    def cancel(self, event_id: str) -> None:
        """Request the end of a drill. Raises InputError if there is no drill of this id."""
        names = self.names()
        if names is None or event_id not in names.drills:
            there = ", ".join(sorted(names.drills)) if names else ""
            known = f"There are: {there}." if there else "None is under way."
            raise InputError(f"there is no drill {event_id}.", known)
        self.inbox.write(event_id + _CANCEL, b"")

    def remove(self, event_id: str) -> None:
        """Remove the files of a drill. Never raises: a file that cannot be removed is ignored from now on."""
        for suffix in (_RECORD, _CANCEL):
            self.inbox.remove(event_id + suffix)


def new_id() -> str:
    """Return an id that no other drill has: short enough to type, and unlike any id of the service."""
    return ID_PREFIX + os.urandom(6).hex()


def check(request: DrillRequest) -> DrillRequest:
    """Return the request if it is valid. Raises InputError with what is wrong."""
    if not re.fullmatch(_TYPE, request.event_type):
        raise InputError(f"type {request.event_type[:80]!r} is not a word such as Reboot.")
    for what, seconds in (("notice", request.notice_seconds), ("duration", request.duration_seconds)):
        if not 0 <= seconds <= LONGEST_SECONDS:
            raise InputError(
                f"the {what} of {exact_text(seconds)} is not between 0 s and {duration_text(LONGEST_SECONDS)}."
            )
    if request.source not in EVENT_SOURCES:
        raise InputError(f"source {request.source[:80]!r} is not one of {', '.join(EVENT_SOURCES)}.")
    if request.resources is not None:
        if not 1 <= len(request.resources) <= _MOST_RESOURCES:
            raise InputError(f"{len(request.resources)} resources are not from 1 to {_MOST_RESOURCES}.")
        for name in request.resources:
            if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
                raise InputError(f"resource {name[:80]!r} is not the name of a VM.")
    if request.description is not None and not (
        len(request.description) <= _LONGEST_DESCRIPTION and request.description.isprintable()
    ):
        raise InputError(f"the description is not one line of at most {_LONGEST_DESCRIPTION} characters.")
    return request


def _record(content: bytes) -> DrillRecord:
    """Return what ``DrillStore.write`` wrote. Raises InputError for anything else."""
    try:
        data = json.loads(content)
        _exactly(data, ("forewarn", *DrillRecord._fields))
        if data["forewarn"] != _SCHEMA:
            raise ValueError("it is of another version of Forewarn")
        fields = data["request"]
        _exactly(fields, DrillRequest._fields)
        request = DrillRequest(
            event_type=_text(fields["event_type"]),
            notice_seconds=_number(fields["notice_seconds"]),
            duration_seconds=_number(fields["duration_seconds"]),
            source=_text(fields["source"]),
            resources=_names(fields["resources"]),
            description=None if fields["description"] is None else _text(fields["description"]),
        )
        handed_over = _stamp(data["handed_over"])
        if handed_over is None:
            raise ValueError("it lacks the time when it was handed over")
        record = DrillRecord(
            check(request), handed_over, _stamp(data["scheduled"]), _stamp(data["started"]), _names(data["resources"])
        )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"its file is not a drill: {error}") from error
    if (record.scheduled is None) != (record.resources is None) or (record.started and not record.scheduled):
        raise InputError("its file is not a drill: it contradicts itself")
    if record.resources is not None:
        check(request._replace(resources=record.resources))
    return record


def _exactly(data: object, keys: Sequence[str]) -> None:
    if not isinstance(data, Mapping) or set(data) != set(keys):
        raise ValueError(f"it has not exactly the keys {', '.join(keys)}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{json.dumps(value)[:40]} is not a text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"{json.dumps(value)[:40]} is not a number")
    return float(value)


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError(f"{json.dumps(value)[:40]} is not a list of names")
    return tuple(_text(name) for name in value)


def _stamp(value: Any) -> Stamp | None:
    if value is None:
        return None
    stamp = Stamp.of(value)
    return Stamp(_number(stamp.wall), _number(stamp.boot), stamp.boot_id)
