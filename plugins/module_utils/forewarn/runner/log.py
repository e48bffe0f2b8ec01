# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's log: one line per happening, as text (``name=value``) or JSON. docs/operations.md lists the lines.

Not ``logging``: importing it takes longer than the runner's whole start may, and nothing of it is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Callable, Protocol, TextIO

FORMATS = ("text", "json")
_SCHEMA = {"schema": "log", "version": 1}
_MOST_CHARACTERS = 200  # of a text that the service wrote for people, which may be of any length
_BARE = re.compile(r"[\w.,:/+@%~-]+", re.ASCII)


def utc_now() -> datetime:
    """Return the wall-clock time as an aware UTC time."""
    return datetime.now(timezone.utc)


class Logger(Protocol):
    """What the runner needs of a log: this module's, or the journal of systemd."""

    lost: int

    def info(self, name: str, /, **fields: Any) -> None:
        """Write what happened as it should."""

    def warning(self, name: str, /, **fields: Any) -> None:
        """Write what passes, or what an operator may want to look at."""

    def error(self, name: str, /, **fields: Any) -> None:
        """Write what will not pass unless somebody does something."""


class Log:
    """Writes lines to one stream, each flushed. A field that is None is left out.

    A line that cannot be written, on a full disk say, is counted in ``lost`` and must not stop the runner; only a
    closed pipe raises (BrokenPipeError): nobody is there to work for.
    """

    def __init__(self, stream: TextIO, form: str = "text", now: Callable[[], datetime] = utc_now) -> None:
        self.lost = 0
        self._stream = stream
        self._json = form == "json"
        self._now = now
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    def info(self, name: str, /, **fields: Any) -> None:
        """Write what happened as it should."""
        self._write("info", name, fields)

    def warning(self, name: str, /, **fields: Any) -> None:
        """Write what passes, or what an operator may want to look at."""
        self._write("warning", name, fields)

    def error(self, name: str, /, **fields: Any) -> None:
        """Write what will not pass unless somebody does something."""
        self._write("error", name, fields)

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        now = self._now()
        time = now.strftime(f"%Y-%m-%dT%H:%M:%S.{now.microsecond // 1000:03d}Z")
        if self._json:
            known = {key: value for key, value in fields.items() if value is not None}
            line = to_json({"time": time, "level": level, "line": name, **known, "forewarn": _SCHEMA})
        else:
            line = f"{time} {level} {text_line(name, fields)}"
            line = line.encode(self._encoding, "backslashreplace").decode(self._encoding)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError:
            self.lost += 1


def text_line(name: str, fields: Mapping[str, Any]) -> str:
    """Write a happening as text: its name, then ``name=value`` for each field that is not None."""
    return " ".join([name, *(f"{key}={_text(value)}" for key, value in fields.items() if value is not None)])


def shortened(text: str | None) -> str | None:
    """Return a text for a field at the end of a line: its first 200 characters, None (no field) for an empty one."""
    if not text:
        return None
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def to_json(value: object) -> str:
    """Write JSON with every control character escaped; DEL is the one that json leaves as it is."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _text(value: object) -> str:
    """Write a value so that one line stays one line, whatever the service or a policy put into it."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return to_json(value)
    text = str(value)
    if _BARE.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else to_json(text)
