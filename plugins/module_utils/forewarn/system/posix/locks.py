# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks that end with the process, however it ends: of a directory, and of a name on this machine.

The lock of a name is a socket in Linux's abstract namespace. It needs no directory, so a sandbox does not get in its
way. It holds within a network namespace: a container with a network of its own counts as a machine of its own. On other
systems there is no such lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import sys
import threading
import time
from binascii import crc32
from contextlib import suppress

from ...errors import InputError
from ..common.lock_held import LockHeldError

_BACKLOG = 128  # clients that ask whose lock it is
_NAMES = 3  # another user may hold one on purpose, so there are others
_PATIENCE_SECONDS = 1.0  # a process that has just been started has bound its name, but may not listen yet


def open_lock(directory: str, name: str) -> int:
    """Open what ``lock`` locks: a file in the directory, which others cannot open, or else the directory itself.

    Raises OSError, with the file's name, if neither can be opened.
    """
    file = f"{directory}/{name}"
    tries = (
        (file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW),
        (file, os.O_RDONLY | os.O_NOFOLLOW),  # the file system is read-only now,
        (directory, os.O_RDONLY | os.O_DIRECTORY),  # or was so from the start, or is full
    )
    problems: list[OSError] = []
    for path, flags in tries:
        try:
            # A user who cannot read it cannot lock it, and so cannot keep the runner from starting.
            return os.open(path, flags | os.O_CLOEXEC, 0o600)
        except OSError as error:  # noqa: PERF203 - three at most
            problems.append(OSError(error.errno, error.strerror, path))
            if isinstance(error, PermissionError):
                break  # it is another user's: the directory must not be locked instead
    raise problems[0]


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file. Return False if another process has the lock, unless ``wait``. Raises OSError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_locked(path: str) -> bool:
    """Return whether a process has locked a file or directory. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class NamedLock:
    """A lock of a name on this machine. ``others`` describe processes of other users that have the name too, and do
    not keep this one from it.
    """

    def __init__(self, name: str) -> None:
        self.others: list[str] = []
        self._text = name.encode("utf-8", "surrogateescape")
        self._socket: socket.socket | None = None

    def acquire(self) -> None:
        """Take it. Raises LockHeldError if another process of root or of this user has it, and InputError."""
        if not sys.platform.startswith("linux"):
            return
        try:
            for number in range(_NAMES):  # all, even after a free one: another process may have found that one taken
                self._acquire(self._name(number))
        except BaseException:  # KeyboardInterrupt too: another process must not find it taken
            self.release()
            raise
        if self._socket is not None:
            threading.Thread(target=_close_connections, args=(self._socket,), daemon=True).start()

    def _acquire(self, name: bytes) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            holder = _holder(name)
            if holder is None and self._socket is None:
                self._socket = _bind(name)
                if self._socket is not None:
                    return
            if holder is not None or self._socket is not None or time.monotonic() >= deadline:
                break
            time.sleep(0.02)  # its holder may be ending, or not listen yet
        if holder is None and self._socket is not None:
            return
        if holder is not None and holder[1] in (0, os.getuid()):
            raise LockHeldError(holder[0])
        self.others.append("somebody" if holder is None else f"process {holder[0]} of user {holder[1]}")

    def _name(self, number: int) -> bytes:
        text = self._text
        return b"\0forewarn-run:%08x:%d:" % (crc32(text), number) + text.replace(b"\n", b":")[:60]

    def release(self) -> None:
        """Release the lock."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # ends the thread
            self._socket.close()
            self._socket = None


def _bind(name: bytes) -> socket.socket | None:
    """Return a socket bound to the name, or None if another process has it. Raises InputError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(name)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise InputError(f"this runner cannot find out whether there is another: {error.strerror}.") from error
    return listener


def _close_connections(listening: socket.socket) -> None:
    """Close the connections of others who ask whose lock it is, to keep room for the next."""
    with suppress(OSError):  # until the lock is released
        while True:
            listening.accept()[0].close()


def _holder(name: bytes) -> tuple[int, int] | None:
    """Return process and user of the listener on the name, or None."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.setblocking(False)
        with suppress(BlockingIOError):
            client.connect(name)
            size = struct.calcsize("3i")
            pid, uid, _gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
            return pid, uid
    except OSError:
        pass
    finally:
        client.close()
    return None
