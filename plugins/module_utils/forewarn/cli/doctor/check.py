# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of ``forewarn doctor`` share: their result, and what to do."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import ForewarnError
from ...system.account import ADMINISTRATOR

OK, WARNING, TROUBLE, NOT_CHECKED = "ok", "warning", "trouble", "not checked"
AS_ADMIN = f"Run this as {ADMINISTRATOR}."


class Check(NamedTuple):
    """The result of a check: its ``name`` is a word, ``hint`` says what to do unless all is well."""

    name: str
    state: str
    text: str
    hint: str = ""


class Orders(NamedTuple):
    """The commands that an administrator of this system gives to the service; ``log`` shows its latest lines."""

    start: str
    restart: str
    reload: str
    reload_or_restart: str
    log: str


def is_denied(error: ForewarnError) -> bool:
    """Return whether this user lacks a right: in the words of C, or of Windows."""
    return "ermission denied" in error.message or "ccess is denied" in error.message
