# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks in the background, once a minute, whether hooks still have what they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

CHECK_SECONDS = 60.0

NeedsCheck = Callable[[], "Sequence[str]"]


def _in_thread(work: Callable[[], None]) -> None:
    import threading  # here: most policies have no hooks

    threading.Thread(target=work, daemon=True).start()


class NeedsWatch:
    """Runs a check in a thread of its own: a file server that does not answer must not stop the polls.

    The check returns sentences on what is missing. For one thread alone, whose ``clock`` is monotonic.
    """

    def __init__(
        self, clock: Callable[[], float], in_background: Callable[[Callable[[], None]], None] = _in_thread
    ) -> None:
        self._clock = clock
        self._in_background = in_background
        self._check: NeedsCheck | None = None
        self._due = 0.0
        self._results: list[tuple[NeedsCheck, Sequence[str]]] = []  # appended by a check, which is atomic
        self._checking = False

    def set_check(self, check: NeedsCheck | None) -> None:
        """Run this check from now on, first in a minute: its result now is known. None: run nothing."""
        self._check = check
        self._due = self._clock() + CHECK_SECONDS

    def take_result(self) -> Sequence[str] | None:
        """Return the result of a check that has ended, or None; begin the next one when it is due."""
        found = None
        while self._results:
            check, result = self._results.pop(0)
            found = result if check is self._check else found  # otherwise it is of an earlier check
        due_check = self._check
        if due_check is not None and not self._checking and self._clock() >= self._due:
            self._due = self._clock() + CHECK_SECONDS
            self._checking = True
            try:
                self._in_background(lambda: self._run_check(due_check))
            except RuntimeError:  # too many threads: in a minute, then
                self._checking = False
        return found

    def _run_check(self, check: NeedsCheck) -> None:
        try:
            self._results.append((check, check()))
        finally:
            self._checking = False
