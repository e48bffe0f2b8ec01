# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a host, found within a bounded time: the resolver of the C library knows no time limit."""

from __future__ import annotations

import socket
from _thread import allocate_lock, start_new_thread  # importing threading would cost each VM 0.2 MiB
from typing import Any, List, Tuple

from ...system.signals import block_signals

SocketAddresses = List[Tuple[int, Any]]  # the family of each, and what socket.connect takes


class _Search:
    """A search in a thread of its own, which ends some time after everybody has stopped waiting."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._done = allocate_lock()
        self._done.acquire()
        self._found: SocketAddresses = []
        self._error: BaseException | None = None
        try:
            start_new_thread(self._run, ())
        except RuntimeError as error:  # too many threads
            raise OSError(str(error)) from error

    def wait(self, seconds: float) -> bool:
        """Return whether it has ended within so much time."""
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def result(self) -> SocketAddresses:
        """Return what was found. Raises what went wrong, OSError as a rule."""
        if self._error is not None:
            raise self._error
        return self._found

    def _run(self) -> None:
        # Signals are for the main thread: its system calls have to be interrupted.
        block_signals()
        try:
            self._found = _search(*self._place)
        except BaseException as error:  # the thread that waits raises it
            self._error = error
        self._done.release()


class Lookup:
    """Finds the addresses of one host, and remembers them for the time when names cannot be looked up."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._known: SocketAddresses = []
        self._running: _Search | None = None  # one at a time, however long the resolver hangs

    def addresses(self, seconds: float) -> SocketAddresses:
        """Return the addresses, or those from before where a search fails or takes too long. Raises OSError."""
        if _is_numeric(self._host):
            return _search(self._host, self._port)
        search = self._running = self._running or _Search(self._host, self._port)
        try:
            if not search.wait(seconds):
                raise socket.timeout("the name lookup timed out")
            self._running = None
            self._known = search.result()
        except OSError:
            if not self._known:
                raise
        return self._known


def _search(host: str, port: int) -> SocketAddresses:
    return [(found[0], found[4]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _is_numeric(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return False
    return True
