# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that saves nothing: for ``--once``, which does nothing that would have to be undone."""

from __future__ import annotations

import os
from typing import Any

from ..clocks import Clocks
from .writer import EventRow, Journal


class NoJournal(Journal):
    """Never touches a file. Nothing is saved, so nothing can be lost or in doubt."""

    def __init__(self, clocks: Clocks) -> None:
        super().__init__(os.devnull, clocks)  # no file can be below it

    def open(self) -> list[EventRow]:
        """Return no records."""
        return []

    def mark_damaged(self, row: EventRow, why: str) -> None:
        """Do nothing."""

    def note(self, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        """Do nothing."""

    def save(self, row: EventRow) -> None:
        """Do nothing."""

    def commit(self) -> bool:
        """Return True: there is nothing to write."""
        return True

    def fields_of(self, kind: str, record_id: int) -> list[dict[str, Any]]:  # noqa: ARG002 - the signature of Journal
        """Return no entries."""
        return []
