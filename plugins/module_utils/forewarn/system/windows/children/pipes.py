# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pipes of a child process, each served by a thread: Windows cannot poll them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Callable

from .. import api

_PIECE_BYTES = 64 * 1024
_PIECES_AHEAD = 16  # that are read before anybody takes them
_THREAD_TERMINATE = 0x1
_CANCEL_TRIES, _CANCEL_SECONDS = 20, 0.01


class _PipeThread(threading.Thread):
    """Does ``work`` on one end of a pipe, and closes it at last."""

    def __init__(self, pipe: IO[bytes], work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._work = work
        self._cancelled = False

    def run(self) -> None:
        """Work until the pipe is broken, closed or let go of."""
        with suppress(OSError, ValueError), self._pipe:
            self._work()

    def cancel(self) -> None:
        """Let go of the pipe, whose other end a process may have that was left behind: it finds the pipe broken."""
        self._cancelled = True
        for _try in range(_CANCEL_TRIES):  # it may be just about to wait
            if not self.is_alive():
                return
            handle = api.kernel32.OpenThread(_THREAD_TERMINATE, False, self.native_id)
            if handle:
                api.kernel32.CancelSynchronousIo(handle)
                api.kernel32.CloseHandle(handle)
            self.join(_CANCEL_SECONDS)


class PipeWriter(_PipeThread):
    """Writes what a process is to read, as far as it does."""

    def __init__(self, pipe: IO[bytes], content: bytes) -> None:
        super().__init__(pipe, self._write)
        self._left = memoryview(content)

    def _write(self) -> None:
        while self._left and not self._cancelled:
            self._left = self._left[self._pipe.write(self._left) :]


class PipeReader(_PipeThread):
    """Reads what a process prints. ``notify`` is called, in this thread, after each piece and at the end."""

    def __init__(self, pipe: IO[bytes], notify: Callable[[], object]) -> None:
        super().__init__(pipe, self._read)
        self.ended = False
        self._notify = notify
        self._pieces: deque[bytes] = deque()
        self._room = threading.Semaphore(_PIECES_AHEAD)

    def run(self) -> None:
        """Read until the end."""
        super().run()
        self.ended = True
        self._notify()

    def cancel(self) -> None:
        """Let go of the pipe."""
        self._cancelled = True
        self._room.release()
        super().cancel()

    def take(self) -> Iterator[bytes]:
        """Yield the pieces that were read, few enough to return soon."""
        for _piece in range(min(len(self._pieces), _PIECES_AHEAD)):
            yield self._pieces.popleft()
            self._room.release()

    def _read(self) -> None:
        while self._room.acquire() and not self._cancelled:
            piece = self._pipe.read(_PIECE_BYTES)
            if not piece:
                break
            self._pieces.append(piece)
            self._notify()
