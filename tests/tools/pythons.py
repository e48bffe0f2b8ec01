# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons of this machine, for tests that run what a VM runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from .requirements import lacking

SUPPORTED = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


def python(version: str) -> str:
    """Return the interpreter of a version, for example ``3.9``; skip the test where the machine has none."""
    path = _find(version)
    if path is None:
        reason = f"this machine has no Python {version}"
        if version not in SUPPORTED:
            pytest.skip(reason)
        lacking("versions", reason)
    return path


@cache
def _find(version: str) -> str | None:
    if version == RUNNING:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python")) if os.access(pyenv, os.R_OK) else []  # it may be root's
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        # pyenv's stand-ins are on the PATH also for versions that it will not start.
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None
