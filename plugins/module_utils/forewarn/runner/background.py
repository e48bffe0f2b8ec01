# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner does beside its work, by child processes that nothing waits for: the sink and the policy source."""

from __future__ import annotations

from typing import Protocol


class BackgroundTask(Protocol):
    """All methods are for the main thread, return at once and raise nothing."""

    vm_name: str | None

    def start_if_due(self) -> None:
        """Start a child process if one is due. Called at each tick."""

    def collect_results(self) -> None:
        """Handle the report of a child process that has ended, if one has."""

    def close(self) -> None:
        """End the child process."""
