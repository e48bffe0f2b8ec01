# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of hooks that go to a VM with the policies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Dict

from ..errors import InputError
from .cache import file_digest
from .sources import inside

HookFile = Dict[str, str]  # path below the directory of hooks, source on the control node, mode in octal, sha256


def hook_files(home: Path, paths: Sequence[str], *, checkout: bool) -> list[HookFile]:
    """Return the files that hooks consist of, sorted by path.

    A file is named by its last part, and may be executed. The content of a directory keeps its names, and may be
    executed where it may be here; hidden files are left out. ``home`` is where relative paths begin. In a ``checkout``
    none may lead out of it. Raises InputError for a path that does not exist, and for two files of one name.
    """
    found: dict[str, HookFile] = {}
    for path in paths:
        whole = home / (inside(home, path) if checkout else path)
        if whole.is_dir():
            files = [(file.relative_to(whole).as_posix(), file) for file in _files_below(whole)]
            if not files:
                raise InputError(f"{path}: there are no files for hooks.")
        elif whole.is_file():
            files = [(whole.name, whole)]
        else:
            raise InputError(f"{path}: there is no such program for a hook, on the control node.")
        for name, file in files:
            if checkout:
                inside(home, str(file.relative_to(home)))  # a link in it may lead anywhere
            if name in found and found[name]["source"] != str(file):
                raise InputError(f"Two programs for hooks are called {name}: {found[name]['source']} and {file}.")
            executable = not whole.is_dir() or os.access(file, os.X_OK)
            found[name] = {
                "path": name,
                "source": str(file),
                "mode": "0755" if executable else "0644",
                "sha256": file_digest(file),
            }
    return [found[name] for name in sorted(found)]


def _files_below(directory: Path) -> list[Path]:
    visible = (
        file for file in directory.rglob("*") if not any(part[0] == "." for part in file.relative_to(directory).parts)
    )
    return sorted(file for file in visible if file.is_file())
