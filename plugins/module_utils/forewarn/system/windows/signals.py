# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops the runner on a console of Windows: Ctrl-C and Ctrl-Break. The service manager stops it by ``stop``."""

from __future__ import annotations

import signal
from types import FrameType

from ..common.stop_request import StopRequest


class StopSignals(StopRequest):
    """While entered, Ctrl-C and Ctrl-Break set ``received``. Nothing on a console reloads."""

    def __init__(self, reloads: bool = True) -> None:
        super().__init__()
        self._reloads = reloads
        self._previous: dict[int, object] = {}
        self._previous_wakeup = -1

    def __enter__(self) -> StopSignals:
        for number in (signal.SIGINT, signal.SIGBREAK):
            self._previous[number] = signal.signal(number, self._on_stop)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned
        signal.set_wakeup_fd(self._previous_wakeup)
        self.close()

    def stop(self, why: str) -> None:
        """Ask the runner to stop. From any thread."""
        self.received = self.received or why
        self.wake()

    def request_reload(self) -> None:
        """Ask the runner to reload, where it does so. From any thread."""
        if self._reloads:
            self.reload = True
            self.wake()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name


def block_signals() -> None:
    """Do nothing: Python handles a console's events in the main thread alone."""
