# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What asks the runner to stop or to reload, and ends its waits."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress


class StopRequest:
    """``received`` says what asked the runner to stop, ``reload`` that it is to reload; the loop sets ``reload`` back.

    ``wait`` is for the main thread alone, all else for any thread. To be closed.
    """

    def __init__(self) -> None:
        self.received: str | None = None  # the signal's name, or the service manager's word for it
        self.reload = False
        self._woken = False
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a request to stop or to reload, or a call of ``wake``."""
        end = time.monotonic() + seconds
        while self.received is None and not self.reload and not self._woken:
            left = end - time.monotonic()
            if left <= 0:
                return
            if select.select([self._reader], [], [], left)[0]:
                self._reader.recv(4096)  # a handler that is due runs before the next check
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one."""
        self._woken = True
        with suppress(OSError):  # full: it ends anyway; closed: the runner has ended
            self._writer.send(b"!")

    def close(self) -> None:
        """Free what ``wait`` needs."""
        self._reader.close()
        self._writer.close()
