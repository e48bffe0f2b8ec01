# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs that keep their lines."""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from forewarn.runner.telemetry.log import Log
from tools.waiting import wait_until


class Lines(Log):
    """A log that keeps its lines, and writes none."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def named(self, name: str, /, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines with that name and these fields."""
        return [line for _level, found, line in self.lines if found == name and fields.items() <= line.items()]

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        self.lines.append((level, name, dict(fields)))


class PipedLines(Lines):
    """A log that is also written as the service's is: to a pipe, which nobody reads until ``read`` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        self._pipe = os.fdopen(writer, "w")
        self._log = Log(self._pipe, "json")
        self._log.detach()
        self._received = b""

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        super()._write(level, name, fields)
        self._log._write(level, name, fields)

    def read(self) -> None:
        """Read everything; each line is there, or counted by a line in its place that says how many are missing."""
        wait_until(self._read_some, what="the log has lines that nobody can read")
        found = [json.loads(line) for line in self._received.splitlines()]
        lost = sum(line["lines"] for line in found if line["line"] == "log-lines-lost")
        written = [line["line"] for line in found if line["line"] != "log-lines-lost"]
        assert len(written) + lost == len(self.lines)
        if not lost:
            assert written == [name for _level, name, _fields in self.lines]

    def _read_some(self) -> bool:
        self._log.close(0.01)  # lets the writer go on
        try:
            news = os.read(self._reader, 65536)
        except BlockingIOError:
            return self._log._writer is None or (self._log._writer._idle.acquire(False) and self._give_back())
        self._received += news
        return False

    def _give_back(self) -> bool:
        assert self._log._writer
        self._log._writer._idle.release()
        return True

    def close(self, _seconds: float | None = None) -> None:
        """Close it, which also ends a writer that waits for a reader."""
        os.close(self._reader)
        with suppress(OSError):
            self._pipe.close()
