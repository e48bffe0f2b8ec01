# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier runner left of a hook: its first process at most."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from . import api
from .children.process_identity import QUERY, SYNCHRONIZE, created, is_running

_TERMINATE = 0x1  # PROCESS_TERMINATE
_ENDED_CODE = 1


class LeftoverProcess(NamedTuple):
    """A hook of an earlier runner. What it had started ended with that runner, by the job object."""

    pid: int
    started: int

    def found(self) -> bool:
        """Return whether it runs."""
        with self._opened() as handle:
            return handle is not None

    def remains(self, killed: bool) -> bool:  # noqa: ARG002 - asked or killed: here it is the same
        """Return whether it still runs."""
        return self.found()

    def request_end(self) -> None:
        """End it: the event that would ask it to end was the earlier runner's."""
        self.kill()

    def kill(self) -> None:
        """End it."""
        with self._opened() as handle:
            if handle is not None:
                api.kernel32.TerminateProcess(handle, _ENDED_CODE)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Yield a handle of it, or None if it has ended, another has its id, or it is not ours."""
        handle = api.kernel32.OpenProcess(QUERY | SYNCHRONIZE | _TERMINATE, False, self.pid)
        try:
            yield handle if handle and is_running(handle) and created(handle) == self.started else None
        finally:
            if handle:
                api.kernel32.CloseHandle(handle)
