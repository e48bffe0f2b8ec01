# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier runner left of a hook: a group of processes."""

from __future__ import annotations

import signal
from typing import NamedTuple

from .process_groups import group_exists, group_is_of_hook, identity, signal_group


class LeftoverProcess(NamedTuple):
    """A hook of an earlier runner, which led a group of processes. ``started`` is in clock ticks since boot."""

    pid: int
    started: int

    def found(self) -> bool:
        """Return whether it runs, or processes that it has started."""
        return self._is_leader() or self._is_orphaned()

    def remains(self, killed: bool) -> bool:
        """Return whether anything of it still runs. Of what was killed only the leader is waited for."""
        return self._is_leader() or (not killed and group_exists(self.pid))

    def request_end(self) -> None:
        """Send SIGTERM to the group."""
        signal_group(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the group."""
        signal_group(self.pid, signal.SIGKILL)

    def _is_leader(self) -> bool:
        found = identity(self.pid)
        return found is not None and found.state not in "ZX" and (found.group, found.start) == self

    def _is_orphaned(self) -> bool:
        """Return whether a hook has ended, for example by SIGPIPE, but processes that it started have not."""
        return identity(self.pid) is None and group_is_of_hook(self.pid, self.started)
