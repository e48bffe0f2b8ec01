# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that keeps nothing: for ``--once``, which does nothing that would have to be undone."""

from __future__ import annotations

from typing import Any

from .journal import Journal, LifeRow


class NoJournal(Journal):
    """As ``Journal``."""

    def __init__(self) -> None:
        self.trouble = None
        self.moved_aside = None
        self.late = []

    def open(self) -> list[LifeRow]:
        """Return no lives."""
        return []

    def note(self, kind: str, life_id: int | None = None, /, **fields: Any) -> None:
        """Forget it."""

    def save(self, row: LifeRow) -> None:
        """Forget it."""

    def commit(self) -> bool:
        """Say that all is well."""
        return True

    def fields_of(self, kind: str, life_id: int) -> list[dict[str, Any]]:  # noqa: ARG002 - as the other's
        """Return nothing."""
        return []

    def prune(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
