# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who this process is."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping

ADMINISTRATOR = "root"  # for sentences


def is_administrator() -> bool:
    """Return whether this process may do everything."""
    return os.geteuid() == 0


def user_name() -> str:
    """Return the name of this process's user, or ``uid 1000`` for one without an entry."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def calling_user(environ: Mapping[str, str]) -> str | None:
    """Return the name of the user who ran this with sudo, or None."""
    return (environ.get("SUDO_USER") or None) if os.getuid() == 0 else None


def home() -> str:
    """Return the home directory of this process's user, ``/`` for one without an entry."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def owns(path: str) -> bool:
    """Return whether a file or directory is this process's user's. Raises OSError."""
    return os.stat(path).st_uid == os.geteuid()  # noqa: PTH116 - the runner does without pathlib at each event
