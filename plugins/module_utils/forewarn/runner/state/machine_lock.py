# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One runner for a VM, whatever its state directory and user: two would both run the hooks."""

from __future__ import annotations

from ...errors import InputError
from ...imds.endpoint import Endpoint
from ...system.locks import LockHeldError, NamedLock

_LINK_LOCAL = ("169.254.", "fe80:")


class MachineLock:
    """Held for as long as the runner records. ``vm_name`` counts where one service answers for several VMs.

    ``others`` are sentences about processes of other users that hold it too, and cannot keep this runner from starting.
    """

    def __init__(self, endpoint: Endpoint, vm_name: str | None) -> None:
        self.others: list[str] = []
        self._url = endpoint.url
        # A link-local service answers for the VM that asks, whatever its name.
        self._vm = "" if endpoint.host.startswith(_LINK_LOCAL) else (vm_name or "").strip().lower()
        self._lock = NamedLock(f"{self._url}\n{self._vm}")

    def lock(self) -> None:
        """Take it. Raises InputError, naming the process, if another runner of an administrator or this user has it."""
        try:
            self._lock.acquire()
        except LockHeldError as error:
            about = f" for {self._vm}" if self._vm else ""
            process = f", process {error.pid}," if error.pid > 0 else ""
            raise InputError(
                f"another runner{process} asks {self._url}{about} already: both would run the hooks.",
                "Stop that one first. Beside it, --dry-run and --once can be used.",
            ) from None
        self.others += [
            f"{who} holds the lock of a runner that asks {self._url}: does another run hooks here?"
            for who in self._lock.others
        ]

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()
