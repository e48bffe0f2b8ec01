# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One runner for a VM, whatever its state directory and user: two would both run the hooks.

The lock is a socket in Linux's abstract namespace, named after the service. It needs no directory, so a sandbox does
not get in its way, and it ends with the process, however that ends. It holds within a network namespace: a container
with a network of its own counts as a machine of its own. On other systems there is no lock.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
import threading
import time
from binascii import crc32
from contextlib import suppress

from ...errors import InputError
from ...imds.endpoint import Endpoint

_LINK_LOCAL = ("169.254.", "fe80:")
_BACKLOG = 128  # clients that ask whose lock it is
_NAMES = 3  # another user may hold one on purpose, so there are others
_PATIENCE_SECONDS = 1.0  # a runner that has just been started has bound its name, but may not listen yet


class MachineLock:
    """Held for as long as the runner records. ``vm_name`` counts where one service answers for several VMs.

    ``others`` are sentences about processes of other users that hold it too, and cannot keep this runner from starting.
    """

    def __init__(self, endpoint: Endpoint, vm_name: str | None) -> None:
        self.others: list[str] = []
        self._url = endpoint.url
        # A link-local service answers for the VM that asks, whatever its name.
        self._vm = "" if endpoint.host.startswith(_LINK_LOCAL) else (vm_name or "").strip().lower()
        self._socket: socket.socket | None = None

    def lock(self) -> None:
        """Take it. Raises InputError, naming the process, if another runner of root or of this user has it."""
        if not sys.platform.startswith("linux"):
            return
        try:
            for number in range(_NAMES):  # all, even after a free one: another runner may have found that one taken
                self._acquire(self._name(number))
        except BaseException:  # KeyboardInterrupt too: another runner must not find it taken
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
            self._refuse(holder[0])
        who = "somebody" if holder is None else f"process {holder[0]} of user {holder[1]}"
        self.others.append(f"{who} holds the lock of a runner that asks {self._url}: does another run hooks here?")

    def _refuse(self, pid: int) -> None:
        about = f" for {self._vm}" if self._vm else ""
        process = f", process {pid}," if pid > 0 else ""
        raise InputError(
            f"another runner{process} asks {self._url}{about} already: both would run the hooks.",
            "Stop that one first. Beside it, --dry-run and --once can be used.",
        )

    def _name(self, number: int) -> bytes:
        text = f"{self._url}\n{self._vm}".encode("utf-8", "surrogateescape")
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
