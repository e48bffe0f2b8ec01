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
    """Return an interpreter of a version, for example ``3.9``; skip the test where the machine has none.

    Of several patch releases it is the oldest: a host may have that one, and what later ones brought is not there.
    """
    releases = patch_releases(version)
    if not releases:
        reason = f"this machine has no Python {version}"
        if version not in SUPPORTED:
            pytest.skip(reason)
        lacking("versions", reason)
    return releases[min(releases)]


@cache
def patch_releases(version: str) -> dict[tuple[int, ...], str]:
    """Return the interpreters of a version on this machine by their patch release, such as ``(3, 9, 2)``."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = pyenv.glob(f"{version}.*/bin/python") if os.access(pyenv, os.R_OK) else ()  # it may be root's
    name = f"python{version}"
    found: dict[tuple[int, ...], str] = {}
    for candidate in (sys.executable, shutil.which(name), shutil.which(name, path="/usr/bin"), *map(str, kept)):
        release = _release(candidate) if candidate else None
        if release is not None and f"{release[0]}.{release[1]}" == version:
            found.setdefault(release, candidate or "")
    return found


@cache
def _release(interpreter: str) -> tuple[int, ...] | None:
    # pyenv's stand-ins are on the PATH also for versions that it will not start.
    command = [interpreter, "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None
