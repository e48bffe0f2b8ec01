# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store in memory, with everything that can go wrong on the way to a real one."""

from __future__ import annotations

import builtins
import copy
import threading
from collections.abc import Callable
from typing import NamedTuple

from forewarn.imds.errors import CONNECTION, TIMEOUT
from forewarn.runner.groups.store import LOST_DATA, MAX_VALUE_BYTES, TOO_LARGE, StoredValue, StoreFault

NOTHING = StoredValue(None, "")

# What happens to a request, as ``MemoryStore.trouble`` says it:
OUTAGE = "outage"  # nobody is there: certainly nothing was written
LOST_REQUEST = "lost request"  # no answer, and the request did not arrive
LOST_ANSWER = "lost answer"  # no answer, and the request did arrive
LATE = "late"  # no answer, and the request arrives when ``MemoryServer.deliver`` is called
DOUBLED = "doubled"  # the request arrives twice, and the second answer is the one that is seen
STALE = "stale"  # a read returns what the key had before its last change

Trouble = Callable[[str, str], "str | None"]  # of "read", "swap" or "list", and the key or the prefix


class _Write(NamedTuple):
    key: str
    value: bytes | None
    version: str


class MemoryServer:
    """What the stores of several VMs share. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._revision = 1
        self._history: dict[str, list[StoredValue]] = {}
        self._late: list[_Write] = []

    def content(self) -> dict[str, bytes]:
        """Return what there is, by its key."""
        with self._lock:
            newest = {key: states[-1].value for key, states in self._history.items()}
        return {key: value for key, value in newest.items() if value is not None}

    def deliver(self) -> None:
        """Let the requests arrive that are ``LATE``, in their order."""
        with self._lock:
            late, self._late = self._late, []
        for write in late:
            self.swap(*write)

    def wipe(self) -> None:
        """Lose everything, as a cluster does that is set up anew: versions that were used are used again."""
        self.restore((1, {}))

    def backup(self) -> tuple[int, dict[str, list[StoredValue]]]:
        """Return everything, for ``restore``."""
        with self._lock:
            return self._revision, copy.deepcopy(self._history)

    def restore(self, backup: tuple[int, dict[str, list[StoredValue]]]) -> None:
        """Go back to an earlier state."""
        with self._lock:
            self._revision, self._history = backup[0], copy.deepcopy(backup[1])

    def revision(self) -> int:
        """Return the number of the last change; the first is 2, as in etcd."""
        with self._lock:
            return self._revision

    def read(self, key: str, back: int = 0) -> StoredValue:
        """Return what a key has, or had so many changes ago."""
        with self._lock:
            states = [NOTHING, *self._history.get(key, [])]
            return states[max(0, len(states) - 1 - back)]

    def swap(self, key: str, value: bytes | None, version: str) -> str | None:
        """Write if the key still has the version."""
        with self._lock:
            states = self._history.setdefault(key, [NOTHING])
            if states[-1].version != version:
                return None
            self._revision += 1
            states.append(NOTHING if value is None else StoredValue(value, str(self._revision)))
            return states[-1].version

    def later(self, key: str, value: bytes | None, version: str) -> None:
        """Keep a write for ``deliver``."""
        with self._lock:
            self._late.append(_Write(key, value, version))


class MemoryStore:
    """The store as one VM has it. ``trouble`` may be set at any time; it decides about each request before it is made.

    ``notices``: the store's answers tell when it has less than it had, as those of etcd do.
    """

    def __init__(self, server: MemoryServer, trouble: Trouble = lambda what, key: None, notices: bool = True) -> None:
        self.name = "the memory of the tests"
        self.trouble = trouble
        self._server = server
        self._notices = notices
        self._highest = 0

    def read(self, key: str) -> StoredValue:
        """Return what a key has, or what it had before where the trouble is ``STALE``."""
        trouble = self._asked("read", key)
        self._notice(unsure=False)
        return self._server.read(key, back=1 if trouble == STALE else 0)

    def swap(self, key: str, value: bytes | None, version: str) -> str | None:
        """Write if the key still has the version."""
        if value is None and version == "":
            raise ValueError(f"nothing can be removed from {key}, which has nothing")
        if value is not None and len(value) > MAX_VALUE_BYTES:
            raise StoreFault(f"{len(value)} bytes are too much for {self.name}.", kind=TOO_LARGE, lasting=True)
        trouble = self._asked("swap", key)
        if trouble == LATE:
            self._server.later(key, value, version)
        if trouble in (LATE, LOST_REQUEST):
            raise self._unanswered(unsure=True)
        written = self._server.swap(key, value, version)
        if trouble == DOUBLED:
            written = self._server.swap(key, value, version)
        if trouble == LOST_ANSWER:
            raise self._unanswered(unsure=True)
        self._notice(unsure=True)
        return written

    def list(self, prefix: str) -> builtins.list[str]:
        """Return the keys that begin with a prefix."""
        self._asked("list", prefix)
        self._notice(unsure=False)
        return sorted(key for key in self._server.content() if key.startswith(prefix))

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _asked(self, what: str, key: str) -> str | None:
        """Return the trouble that a request meets, unless that ends it. Raises StoreFault."""
        trouble = self.trouble(what, key)
        if trouble == OUTAGE:
            raise StoreFault(f"{self.name} refused the connection.", kind=CONNECTION)
        if trouble in (LOST_REQUEST, LOST_ANSWER, LATE) and what != "swap":
            raise self._unanswered(unsure=False)
        return trouble

    def _unanswered(self, unsure: bool) -> StoreFault:
        return StoreFault(f"{self.name} took longer than 2 s answering.", kind=TIMEOUT, unsure=unsure)

    def _notice(self, unsure: bool) -> None:
        revision = self._server.revision()
        if self._notices and revision < self._highest:
            text = f"{self.name} has gone back: its data may have been lost."
            raise StoreFault(text, kind=LOST_DATA, unsure=unsure, lasting=True)
        self._highest = revision
