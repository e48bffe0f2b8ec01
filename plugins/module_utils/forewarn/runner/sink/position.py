# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a sink has received the journal, in a file: a restart continues from there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ...system.files import open_to_write, replace

FILE_NAME = "sink.json"
_MAX_BYTES = 4096


class Position(NamedTuple):
    """``acknowledged`` is the number of the last entry that the sink has accepted, 0 for none.

    ``checksum`` is that entry's: it distinguishes the file from another one. ``stream`` names that file.
    ``begins`` is the number of its newest entry when the sink was configured, None until it is known. ``lost`` counts
    the entries that the journal removed before they were sent, ``rejected`` those that the sink has refused one by one,
    in a request that it accepted.
    """

    stream: str
    acknowledged: int = 0
    checksum: int | None = None
    begins: int | None = None
    lost: int = 0
    rejected: int = 0


def new_position(lost: int = 0, rejected: int = 0) -> Position:
    """Return the position before a new journal's first entry."""
    return Position(os.urandom(8).hex(), lost=lost, rejected=rejected)


def read(directory: str) -> Position | None:
    """Return the position that a state directory has, or None if it has none that can be read."""
    try:
        with Path(directory, FILE_NAME).open("rb") as file:
            found = json.loads(file.read(_MAX_BYTES).decode("utf-8"))
        known = Position(**{name: found[name] for name in Position._fields})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    optional = (number for number in (known.checksum, known.begins) if number is not None)
    numbers = (known.acknowledged, known.lost, known.rejected, *optional)
    if not isinstance(known.stream, str) or not known.stream or not all(map(_is_number, numbers)):
        return None
    return known


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def write(directory: str, position: Position) -> None:
    """Replace the file, atomically and on the disk. Raises OSError."""
    path = Path(directory, FILE_NAME)
    draft = path.with_name(f".{FILE_NAME}.new")
    descriptor = open_to_write(draft, truncate=True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(position._asdict()).encode("ascii") + b"\n")
        file.flush()
        os.fsync(descriptor)
    replace(draft, path)
