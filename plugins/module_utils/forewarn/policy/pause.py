# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator's pause: while it is active, this VM approves nothing. ``forewarn pause`` begins one.

STATE/pause/pause.json holds the latest pause of a state directory. Ending a pause early replaces the file, too: nobody
can remove a pause that somebody else has just begun. A file that cannot be read counts as an active pause.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..system.files import open_to_read
from ..texts import duration_text, exact_text

DIRECTORY, FILE_NAME = "pause", "pause.json"  # below a state directory
LONGEST_SECONDS = 30 * 86400.0

_MAX_BYTES = 64 * 1024
_MAX_REASON = 500  # characters, as _MAX_NAME
_MAX_NAME = 200
_SCHEMA = {"schema": "pause", "version": 1}
_LATEST = datetime(9999, 1, 1, tzinfo=timezone.utc).timestamp()


class Pause(NamedTuple):
    """One pause. ``by`` and ``ended_by`` name users; ``ended_by`` is None unless somebody ended the pause early.

    ``began`` and ``until`` are seconds since 1970, so a pause survives a reboot. ``problem`` is None, or says why the
    file cannot be read; all other fields are empty then.
    """

    identifier: str
    by: str
    reason: str
    began: float
    until: float
    ended_by: str | None = None
    problem: str | None = None

    def is_active(self, now: float) -> bool:
        """Return whether the pause forbids approvals at ``now``, in seconds since 1970."""
        return self.problem is not None or (self.ended_by is None and now < self.until)

    def describe(self) -> str:
        """Return why nothing is approved, as a sentence without its full stop."""
        if self.problem is not None:
            return f"approvals count as paused, since nobody can tell whether they are: {self.problem}"
        end = datetime.fromtimestamp(self.until, timezone.utc)
        return f"approvals are paused until {end:%Y-%m-%d %H:%M:%S} UTC, by {self.by}: {self.reason}"


def check_pause(pause: Pause) -> Pause:
    """Return the pause unchanged. Raises InputError if it is invalid."""
    if not (pause.reason.strip() and _is_line(pause.reason, _MAX_REASON)):
        raise InputError(
            f"the reason is not one line of 1 to {_MAX_REASON} characters.",
            "Say in a few words why nothing is to be approved; status and history show it.",
        )
    if not 0.0 < pause.until - pause.began <= LONGEST_SECONDS:
        raise InputError(
            f"a pause of {exact_text(pause.until - pause.began)} is not longer than 0 s and at most "
            f"{duration_text(LONGEST_SECONDS)}."
        )
    if not 0.0 <= pause.began < pause.until < _LATEST:
        raise InputError("the clock of this VM is wrong: the pause would be at no time that can be written.")
    if not (pause.identifier and all(_is_line(text, _MAX_NAME) for text in (pause.identifier, pause.by))):
        raise InputError("the pause does not say who began it.")
    return pause


def encode_pause(pause: Pause) -> bytes:
    """Return the content of the file, which is JSON. Raises InputError if the pause is invalid."""
    values = check_pause(pause)._asdict()
    del values["problem"]
    return json.dumps({"forewarn": _SCHEMA, **values}).encode("ascii")


def read_pause(directory: str, read: Callable[[Path], bytes] | None = None) -> Pause | None:
    """Return the latest pause of a state directory, even if it has ended; None if there has never been one.

    ``read`` returns the content of the file, or raises OSError or InputError. Raises nothing: a pause with a
    ``problem`` stands for a file that cannot be read.
    """
    path = Path(directory, DIRECTORY, FILE_NAME)
    try:
        path.lstat()
        return _decode((read or _read_file)(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return unreadable_pause(f"{path}: {error.strerror or error}")
    except (InputError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        return unreadable_pause(str(error) if str(path) in str(error) else f"{path} is not a pause: {error}")


def unreadable_pause(problem: str) -> Pause:
    """Return the pause that stands for a file that cannot be read."""
    return Pause("", "", "", 0.0, 0.0, None, problem)


def _read_file(path: Path) -> bytes:
    file = open_to_read(path, follow=False)
    try:
        return os.read(file, _MAX_BYTES + 1)
    finally:
        os.close(file)


def _decode(content: bytes) -> Pause:
    """Return the pause in the content of a file. Raises InputError, ValueError, TypeError, KeyError, OverflowError or
    RecursionError for anything else than the output of ``encode_pause``.
    """
    if len(content) > _MAX_BYTES:
        raise ValueError(f"it is longer than {_MAX_BYTES} bytes")
    data: Any = json.loads(content)
    if not isinstance(data, dict) or data.keys() != {"forewarn", *Pause._fields[:-1]}:
        raise ValueError(f"it has not exactly the keys forewarn, {', '.join(Pause._fields[:-1])}")
    if data.pop("forewarn") != _SCHEMA:
        raise ValueError("it is of another version of Forewarn")
    for name in ("identifier", "by", "reason"):
        if not isinstance(data[name], str):
            raise TypeError(f"{name} is not a text")
    if not (data["ended_by"] is None or isinstance(data["ended_by"], str)):
        raise TypeError("ended_by is not a text")
    for name in ("began", "until"):
        if isinstance(data[name], bool) or not isinstance(data[name], (int, float)) or not math.isfinite(data[name]):
            raise TypeError(f"{name} is not a time")
    return check_pause(Pause(**data))


def _is_line(text: str, max_length: int) -> bool:
    return 0 < len(text) <= max_length and text.isprintable()
