# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line on a terminal about work that takes long, erased when it has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO

from ...output.console import one_line
from ...output.page import terminal_columns

FIRST_SECONDS = 1.0  # after which the line appears
_NEXT_SECONDS = 0.2  # between two changes of it
_ERASE = "\r\033[K"


class ProgressLine:
    """A line on ``stream``, which is standard error.

    Nothing is written in the first second, to what is no terminal, or to one that cannot erase a line. ``clock``
    returns seconds; ``environ`` is the process's own unless given.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._stream, self._clock = stream, clock
        dumb = (os.environ if environ is None else environ).get("TERM") == "dumb"
        self._next = clock() + FIRST_SECONDS if stream.isatty() and not dumb else None
        self._shown = False

    def show(self, text: Callable[[], str]) -> None:
        """Show a text, which is asked for only if it is time for another one."""
        if self._next is None or self._clock() < self._next:
            return
        self._next = self._clock() + _NEXT_SECONDS
        self._shown = True
        self._write(_ERASE + one_line(text())[: terminal_columns(self._stream) - 1])

    def clear(self) -> None:
        """Erase the line, so that others can be written."""
        if self._shown:
            self._shown = False
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone: the answer may still reach its reader
            self._stream.write(text)
            self._stream.flush()
