# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's log: one line for each thing that happens, as text (``name=value``) or JSON.

docs/log.md lists the lines. Not ``logging``: importing it takes longer than the runner's whole start may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, TextIO

from ...texts import escaped

if TYPE_CHECKING:
    from .log_writer import LogWriter

FORMATS = ("text", "json")
_SCHEMA = {"schema": "log", "version": 1}
_MOST_CHARACTERS = 200  # of a text from the service, which may have any length
_BARE = re.compile(r"[\w.,:/+@%~-]+", re.ASCII)


def utc_now() -> datetime:
    """Return the wall-clock time as an aware UTC time."""
    return datetime.now(timezone.utc)


class Log:
    """Writes lines to one stream, each flushed. A field that is None is left out.

    A line that cannot be written, for example to a full disk, is counted in ``lost`` and does not stop the runner. Only
    a closed pipe raises (BrokenPipeError), since the runner has lost its reader. After ``detach`` no call waits.
    """

    def __init__(self, stream: TextIO, form: str = "text", now: Callable[[], datetime] = utc_now) -> None:
        self._lost = 0
        self._stream = stream
        self._json = form == "json"
        self._now = now
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._writer: LogWriter | None = None
        self._descriptor = -1
        self._line_unfinished = False  # for example on a full disk

    @property
    def lost(self) -> int:
        """The number of lines that could not be written."""
        return self._lost + (0 if self._writer is None else self._writer.lost)

    def detach(self, limit_bytes: int | None = None) -> None:
        """Leave the writing to a thread from now on, so that no reader of the log can hold up the runner.

        Does nothing if the stream has no file descriptor. Call ``close`` at the end. ``limit_bytes`` of lines may wait
        to be written, None for the default of a service.
        """
        try:
            self._stream.flush()
            self._descriptor = self._stream.fileno()
        except (OSError, ValueError):
            return
        from .log_writer import LogWriter  # here: most logs have no thread

        self._writer = LogWriter(self._deliver, self._about_lost, limit_bytes)

    def close(self, seconds: float | None) -> None:
        """Let lines that wait be written, for ``seconds`` at most, or with None for as long as there is a reader."""
        if self._writer is not None:
            self._writer.close(seconds)

    @property
    def reader_gone(self) -> bool:
        """Whether the reader of the thread's lines is gone."""
        return self._writer is not None and self._writer.broken

    def info(self, name: str, /, **fields: Any) -> None:
        """Write what is normal."""
        self._write("info", name, fields)

    def warning(self, name: str, /, **fields: Any) -> None:
        """Write what passes by itself, or what an operator may want to know."""
        self._write("warning", name, fields)

    def error(self, name: str, /, **fields: Any) -> None:
        """Write what an operator has to deal with."""
        self._write("error", name, fields)

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        forms = self._forms(level, name, fields)
        if self._writer is not None:
            self._writer.put(forms)
            return
        try:
            self._deliver_at_once(forms)
        except BrokenPipeError:
            raise
        except OSError:
            self._lost += 1

    def _forms(self, level: str, name: str, fields: Mapping[str, Any]) -> Sequence[bytes]:
        """Return the forms in which the line may be written; the last is the one for the stream."""
        now = self._now()
        time = now.strftime(f"%Y-%m-%dT%H:%M:%S.{now.microsecond // 1000:03d}Z")
        if self._json:
            known = {key: value for key, value in fields.items() if value is not None}
            line = to_json({"time": time, "level": level, "line": name, **known, "forewarn": _SCHEMA})
        else:
            line = f"{time} {level} {text_line(name, fields)}"
        return ((line + "\n").encode(self._encoding, "backslashreplace"),)

    def _about_lost(self, count: int) -> Sequence[bytes]:
        return self._forms("warning", "log-lines-lost", {"lines": count})

    def _deliver_at_once(self, forms: Sequence[bytes]) -> None:
        self._stream.write(forms[-1].decode(self._encoding))
        self._stream.flush()

    def _deliver(self, forms: Sequence[bytes]) -> None:
        """Write a line, in the writer's thread. Not to the stream, whose lock the end of the process needs."""
        from .log_writer import HalfError, write_all

        try:
            write_all(self._descriptor, b"\n" * self._line_unfinished + forms[-1])
        except HalfError:
            self._line_unfinished = True
            raise
        self._line_unfinished = False


def text_line(name: str, fields: Mapping[str, Any]) -> str:
    """Return a line as text: its name, then ``name=value`` for each field that is not None."""
    return " ".join([name, *(f"{key}={_text(value)}" for key, value in fields.items() if value is not None)])


def shortened(text: str | None) -> str | None:
    """Return a text for a field at the end of a line: its first 200 characters, or None (no field) if it is empty."""
    if not text:
        return None
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def to_json(value: object) -> str:
    """Return JSON with every control character escaped: json leaves DEL as it is."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _text(value: object) -> str:
    """Return a value as text that stays on one line, whatever the service or a policy put into it."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return to_json(value)
    text = str(value)
    if _BARE.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False) if escaped(text) == text else to_json(text)
