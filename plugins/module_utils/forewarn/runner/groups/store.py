# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a store: values under keys, with compare-and-swap."""

from __future__ import annotations

import builtins
from typing import NamedTuple, Protocol

from ...imds.errors import Fault

MAX_VALUE_BYTES = 512 * 1024

# Kinds of faults, beside those in imds.errors.
CERTIFICATE = "certificate"  # TLS: theirs was not accepted, or ours
LOGIN = "login"  # no login, or no permission
LOST_DATA = "lost data"  # the store has less than it had, or is another one
TOO_LARGE = "too large"
CONFLICT = "conflict"  # others were faster, again and again


class StoreFault(Fault):
    """A request to a store that failed.

    ``unsure``: the write may have been applied; read the key again before anything else. ``lasting``: trying again
    changes nothing until somebody changes the store, a file or the settings. ``kind`` is a constant of this module or
    of ``imds.errors``, ``status`` the HTTP status or None.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        kind: str,
        status: int | None = None,
        unsure: bool = False,
        lasting: bool = False,
    ) -> None:
        super().__init__(message, hint, kind=kind, status=status)
        self.unsure = unsure
        self.lasting = lasting


class StoredValue(NamedTuple):
    """What a store has under a key. ``value`` is None, and ``version`` "", where there is nothing."""

    value: bytes | None
    version: str


class Store(Protocol):
    """Values of at most ``MAX_VALUE_BYTES`` under keys such as ``forewarn/web/events/0f3c``: letters, digits, ``._-/``.

    ``name`` says to people which store it is, and where: "etcd at etcd-1:2379, etcd-2:2379". Each request ends within
    seconds. Not thread-safe.
    """

    name: str

    def read(self, key: str) -> StoredValue:
        """Return the newest value: every write that was acknowledged before is in it. Raises StoreFault."""

    def swap(self, key: str, value: bytes | None, version: str) -> str | None:
        """Write ``value`` if the key still has ``version``; "" means: only if there is nothing.

        None as the value removes the key, whose version must not be "". Return the new version ("" after a removal),
        or None where somebody else has changed the key. Raises StoreFault, which may be ``unsure``.
        """

    def list(self, prefix: str) -> builtins.list[str]:
        """Return the keys that begin with a prefix, which is not empty, sorted. Raises StoreFault."""

    def close(self) -> None:
        """Close the connection; the next request opens another."""


def check_swap(key: str, value: bytes | None, version: str) -> None:
    """Raise StoreFault for a value that is too large, and ValueError for a removal of nothing."""
    if value is None and version == "":
        raise ValueError(f"nothing can be removed from {key}, which has nothing")
    if value is not None and len(value) > MAX_VALUE_BYTES:
        text = f"{len(value)} bytes are too much for {key}: {MAX_VALUE_BYTES} are the limit."
        raise StoreFault(text, kind=TOO_LARGE, lasting=True)
