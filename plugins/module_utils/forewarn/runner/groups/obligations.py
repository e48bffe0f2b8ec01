# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this VM may have written into the store and must withdraw, in a file of the state directory.

The file is written before each request, so that neither a crash nor a lost answer leaves a slot behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...system.files import open_to_write, replace

FILE_NAME = "groups.json"
_MAX_BYTES = 1024 * 1024
_SCHEMA = {"schema": "obligations", "version": 1}


class EventObligations(NamedTuple):
    """For one event: the keys of ``barriers`` in which this VM may have a statement, the groups of its ``slots``.

    In those of ``ready`` it may have said that it is ready. ``event_id`` is for people.
    """

    event_id: str
    barriers: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


class Obligations(NamedTuple):
    """``vm`` is the name under which they were written, ``events`` are by ``Event.key``."""

    vm: str
    events: Mapping[str, EventObligations]


def read(directory: str) -> Obligations | None:
    """Return what the state directory has, None if it has none. Raises ValueError for a file that cannot be read."""
    path = Path(directory, FILE_NAME)
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_BYTES).decode("utf-8"))
        if data["forewarn"] != _SCHEMA or not isinstance(data["vm"], str):
            raise ValueError("another version has written it")
        return Obligations(data["vm"], {key: _event_obligations(value) for key, value in data["events"].items()})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def write(directory: str, obligations: Obligations) -> None:
    """Replace the file, atomically and on the disk. Raises OSError."""
    path = Path(directory, FILE_NAME)
    if not obligations.events:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f".{FILE_NAME}.new")
    events = {key: each._asdict() for key, each in obligations.events.items()}
    descriptor = open_to_write(draft, truncate=True)
    with os.fdopen(descriptor, "wb") as file:
        content = {"forewarn": _SCHEMA, "vm": obligations.vm, "events": events}
        file.write(json.dumps(content).encode("ascii") + b"\n")
        file.flush()
        os.fsync(descriptor)
    replace(draft, path)


def _event_obligations(data: Mapping[str, Any]) -> EventObligations:
    ready = data.get("ready", data["barriers"])  # earlier runners did not keep it: it may have been said in any
    texts = data["event_id"], *data["barriers"], *data["slots"], *ready
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("it is damaged")
    return EventObligations(data["event_id"], tuple(data["barriers"]), tuple(data["slots"]), tuple(ready))
