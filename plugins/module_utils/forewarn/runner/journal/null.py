# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that keeps nothing: for ``--once``, which does nothing that would have to be undone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .writer import EventRow, Journal


class NoJournal(Journal):
    """As ``Journal``."""

    def __init__(self) -> None:
        self.trouble = None
        self.moved_aside = None
        self.late = []
        self.lost = []
        self.cleared = []

    def open(self) -> list[EventRow]:
        """Return no records."""
        return []

    @property
    def damaged_keys(self) -> frozenset[str]:
        """Return none: what is not kept cannot be lost."""
        return frozenset()

    @property
    def damaged_unknown(self) -> bool:
        """Say no, as above."""
        return False

    @property
    def damaged(self) -> int:
        """Return 0, as above."""
        return 0

    @property
    def unread(self) -> bool:
        """Say no, as above."""
        return False

    @property
    def unkept(self) -> frozenset[int]:
        """Return none: nothing is to be kept."""
        return frozenset()

    def doubt(self, _key: str) -> str | None:
        """Return None, as above."""
        return None

    def listed(self, keys: Iterable[str]) -> None:
        """Forget it."""

    def suspect(self, keys: Iterable[str]) -> None:
        """Forget it."""

    def distrust(self, row: EventRow, why: str) -> None:
        """Forget it."""

    def note(self, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        """Forget it."""

    def save(self, row: EventRow) -> None:
        """Forget it."""

    def commit(self) -> bool:
        """Say that all is well."""
        return True

    def fields_of(self, kind: str, record_id: int) -> list[dict[str, Any]]:  # noqa: ARG002 - as the other's
        """Return nothing."""
        return []

    def prune(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
