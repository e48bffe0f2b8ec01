# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who this process is: the user of its token."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import security
from .api import shell32

ADMINISTRATOR = "an administrator"  # for sentences


def is_administrator() -> bool:
    """Return whether this process may do everything: with the rights of an administrator, or as SYSTEM."""
    return bool(shell32.IsUserAnAdmin())


def user_name() -> str:
    """Return the name of this process's user, with its domain, or else its security identifier."""
    return security.account_name(security.own_sid())


def calling_user(environ: Mapping[str, str]) -> str | None:  # noqa: ARG001 - sudo of POSIX has another user's name there
    """Return None: nobody runs this in another's name."""
    return None


def home() -> str:
    """Return the directory of this process's user."""
    return os.environ.get("USERPROFILE") or os.environ.get("SYSTEMROOT", r"C:\Windows")


def owns(path: str) -> bool:
    """Return whether a file or directory is this process's user's, or its group of administrators'. Raises OSError."""
    owner = security.read(path).owner
    return owner == security.own_sid() or (owner == security.ADMINISTRATORS and is_administrator())
