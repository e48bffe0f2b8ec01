# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hooks find programs, and what every one of them is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

TARGET = "linux"  # what forewarn policy check --target calls this system
# The whole search path: a hook does not get the runner's.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE_ENVIRONMENT = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8"}
HOME_VARIABLE = "HOME"


def is_name(program: str) -> bool:
    """Return whether a program is named without a path."""
    return "/" not in program


def find(name: str) -> str | None:
    """Return the path of the program with a name, or None if there is none in ``SEARCH_PATH``."""
    for directory in SEARCH_PATH.split(":"):
        path = f"{directory}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - without pathlib, as everywhere in the runner
            return path
    return None


def problem(program: str, arguments: Sequence[str]) -> str | None:  # noqa: ARG001 - Windows has objections
    """Return None: the program at a path gets its arguments as they are."""
    return None


def python() -> str:
    """Return the path of a Python for child processes, "" if it is unknown."""
    return sys.executable
