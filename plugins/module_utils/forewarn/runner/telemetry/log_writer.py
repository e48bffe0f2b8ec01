# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the log in a thread of its own: a stalled reader, such as a full pipe, holds up nothing but the log."""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread  # importing threading would cost each VM 0.2 MiB
from collections import deque
from collections.abc import Callable
from typing import Sequence

from ...system.files import wait_until_writable
from ...system.signals import block_signals

LIMIT_BYTES = 1024 * 1024  # of lines that wait
_OVERHEAD_BYTES = 200  # of each, in memory

# The same line in several forms: where it is delivered decides which one is used.
Forms = Sequence[bytes]


class LogWriter:
    """Takes lines and delivers them in their order. ``put`` may be called from any thread.

    ``deliver`` writes one line, however long that takes. If it raises OSError, the line is counted in ``lost``, as is a
    line that finds no room: ``limit_bytes`` of lines may wait, ``LIMIT_BYTES`` if None. As soon as lines can be written
    again, the line that ``about_lost`` makes of the number of lost ones takes their place.

    A BrokenPipeError of ``deliver`` ends the writer: it is ``broken``, and the next ``put`` raises it.
    """

    def __init__(
        self, deliver: Callable[[Forms], None], about_lost: Callable[[int], Forms], limit_bytes: int | None = None
    ) -> None:
        self.lost = 0
        self.broken = False  # the reader is gone
        self._limit = limit_bytes
        self._deliver = deliver
        self._about_lost = about_lost
        self._lock = allocate_lock()  # around all that follows
        self._waiting: deque[Forms | int] = deque()  # a number is how many lines were lost there
        self._size = 0
        self._overflow = 0  # lines that were lost after all waiting ones
        self._failed = 0  # lines that could not be written, and whose loss has not been reported yet
        self._failing = False  # the last line could not be written

        self._started = False
        # Two more locks: the thread waits for news with one; others wait with the other until all is delivered.
        self._news = allocate_lock()
        self._news.acquire()
        self._idle = allocate_lock()

    def put(self, line: Forms) -> None:
        """Hand over a line, without waiting. Raises BrokenPipeError if the reader is gone."""
        size = _size(line)
        with self._lock:
            if self.broken:
                raise BrokenPipeError
            # After an overflow, lines are accepted again when half of the room is free: one gap instead of many.
            limit = LIMIT_BYTES if self._limit is None else self._limit
            room = (limit // 2 if self._overflow else limit) - self._size
            if self._waiting and size > room:
                self.lost += 1
                self._overflow += 1
                return
            if self._overflow:
                self._waiting.append(self._overflow)
                self._overflow = 0
            self._waiting.append(line)
            self._size += size
            self._idle.acquire(False)
            if self._news.locked():
                self._news.release()
            if not self._started:
                self._start()

    def close(self, seconds: float | None) -> None:
        """Wait until all lines are delivered, ``seconds`` at most, or with None for as long as it takes."""
        if not self._started:  # nothing was put, or nothing can be delivered
            return
        if self._idle.acquire(timeout=-1 if seconds is None else seconds):
            self._idle.release()

    def _start(self) -> None:
        try:
            start_new_thread(self._run, ())
        except RuntimeError:  # too many threads; the next line tries again
            return
        self._started = True

    def _run(self) -> None:
        # Signals are for the main thread: its system calls have to be interrupted.
        block_signals()
        while not self.broken:
            line = self._next()
            if line is None:
                self._news.acquire()
                continue
            count = line if isinstance(line, int) else 0
            try:
                self._deliver(self._about_lost(line) if isinstance(line, int) else line)
            except BrokenPipeError:
                self._record_delivery(broken=True)
            except OSError:
                self._record_delivery(failed=count or 1, lost=0 if count else 1)
            else:
                self._record_delivery()

    def _next(self) -> Forms | int | None:
        """Return what to deliver next: a line, the number of lines that were lost, or None."""
        with self._lock:
            if self._failed and not self._failing:
                lost, self._failed = self._failed, 0
                return lost
            if self._waiting:
                line = self._waiting.popleft()
                if not isinstance(line, int):
                    self._size -= _size(line)
                return line
            if self._overflow:
                lost, self._overflow = self._overflow, 0
                return lost
            if self._idle.locked():
                self._idle.release()
            return None

    def _record_delivery(self, *, failed: int = 0, lost: int = 0, broken: bool = False) -> None:
        """Record the end of a delivery: ``failed`` lines have yet to be reported, ``lost`` more are lost."""
        with self._lock:
            self._failing = failed > 0
            self._failed += failed
            self.lost += lost
            self.broken = broken
            if broken and self._idle.locked():
                self._idle.release()


class HalfError(OSError):
    """Only the beginning of the data could be written."""


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``, waiting for the reader. Raises OSError, HalfError if some of it was written."""
    size = len(data)
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # noqa: PERF203 - another process has made it non-blocking
            wait_until_writable(descriptor)
        except BrokenPipeError:
            raise
        except OSError as error:
            if len(data) == size:
                raise
            raise HalfError(error.errno, error.strerror) from error


def _size(line: Forms) -> int:
    return sum(len(form) for form in line) + _OVERHEAD_BYTES
