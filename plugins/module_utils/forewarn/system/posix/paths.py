# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the files of the service are, and where its hooks look for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import InputError
from .account import is_administrator

CONFIG = "/etc/forewarn/config.json"
# Where systemd keeps the credentials of the running service, and where the role keeps them for it.
CREDENTIALS = ("/run/credentials/forewarn.service", "/etc/forewarn/credentials")
SERVICE_STATE = "/var/lib/forewarn"
STATE_DEFAULT = f"$STATE_DIRECTORY, else {SERVICE_STATE} for root and ~/.local/state/forewarn for others"  # for help


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the state directory of this user if none is named.

    What systemd made for the unit comes first (StateDirectory=, its first if it has several), then
    /var/lib/forewarn for root, then the user's own by the XDG base directories. Raises InputError without any of these.
    """
    given = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return given
    if is_administrator():
        return SERVICE_STATE
    base = Path(environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        home = environ.get("HOME")
        if not home:
            raise InputError("there is no HOME to keep a state directory in.", "Name one with --state.")
        base = Path(home, ".local", "state")
    return str(base / "forewarn")


def credentials_directory(environ: Mapping[str, str]) -> str | None:
    """Return where the credentials of this service are, by systemd's word, or None."""
    return environ.get("CREDENTIALS_DIRECTORY") or None


def memory_directory(environ: Mapping[str, str]) -> str | None:
    """Return a directory in memory, usable even when the disk is full, or None.

    What systemd made for the unit comes first (RuntimeDirectory=), then /run/forewarn for root, then the user's own.
    """
    given = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if given:
        return given
    if is_administrator():
        return "/run/forewarn"
    base = Path(environ.get("XDG_RUNTIME_DIR", ""))
    return str(base / "forewarn") if base.is_absolute() else None
