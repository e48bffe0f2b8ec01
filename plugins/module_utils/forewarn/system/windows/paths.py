# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the files of the service are, and where its hooks look for programs."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from pathlib import PureWindowsPath

from ...errors import InputError
from . import api
from .account import is_administrator

_COMMON_APPDATA = 0x23  # CSIDL_COMMON_APPDATA
_MAX_PATH = 260


def _program_data() -> str:
    """Return the directory for data of all users: the same for the service and for those who ask about it.

    Their environments can differ.
    """
    if sys.platform == "win32":
        found = ctypes.create_unicode_buffer(_MAX_PATH)
        if api.shell32.SHGetFolderPathW(None, _COMMON_APPDATA, None, 0, found) == 0:
            return found.value
    return r"C:\ProgramData"


_DATA = rf"{_program_data()}\Forewarn"
CONFIG = rf"{_DATA}\config.json"
CREDENTIALS = (rf"{_DATA}\credentials",)
SERVICE_STATE = rf"{_DATA}\state"
LOG = rf"{_DATA}\log"
# For help, in which argparse wants each % twice.
STATE_DEFAULT = r"%%ProgramData%%\Forewarn\state for administrators and %%LOCALAPPDATA%%\Forewarn\state for others"


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the state directory of this user if none is named: the service's for an administrator, else a user's own.

    Raises InputError without any of these.
    """
    given = environ.get("STATE_DIRECTORY", "")
    if given:
        return given
    if is_administrator():
        return SERVICE_STATE
    base = environ.get("LOCALAPPDATA")
    if not base:
        raise InputError("there is no LOCALAPPDATA to keep a state directory in.", "Name one with --state.")
    return str(PureWindowsPath(base, "Forewarn", "state"))


def credentials_directory(environ: Mapping[str, str]) -> str | None:
    """Return where the credentials of this service are."""
    return environ.get("CREDENTIALS_DIRECTORY") or CREDENTIALS[0]


def memory_directory(environ: Mapping[str, str]) -> str | None:
    """Return a directory in memory, or None: Windows has none, unless an administrator names one."""
    return environ.get("RUNTIME_DIRECTORY") or None
