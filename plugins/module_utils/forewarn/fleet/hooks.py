# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes to a VM for the hooks of policies: their programs, their kinds, and what the sandbox must allow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Dict

from .. import hook_kinds
from ..errors import InputError
from ..policy.decision import PHASES
from ..policy.forms import every_match
from ..policy.hook_program import has_expressions
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


def kinds_of(artifact: Mapping[str, Any]) -> list[str]:
    """Return the names of the kinds of hooks that a checked artifact uses, sorted."""
    matches = (match for policy in artifact["policies"] for _path, match in every_match(policy["rule"]))
    hooks = (hook for match in matches for phase in PHASES for hook in match.get(phase, ()))
    return sorted({hook["kind"] for hook in hooks if "kind" in hook})


def sandbox_of(hooks: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return what the runner's unit must allow for hooks: categories, and paths to write to, sorted.

    What programs need is not known; those of ``run`` commonly use the network, as ``http`` does.
    """
    categories: set[str] = set()
    writable: set[str] = set()
    for hook in hooks:
        if "run" in hook or "http" in hook:
            categories.add("network")
        kind = hook_kinds.find(hook["kind"]) if "kind" in hook else None
        if kind is not None:
            options = {name: value for name, value in hook["options"].items() if not has_expressions(value)}
            needs = kind.needs(kind.with_defaults(options))
            categories.update(needs.sandbox)
            writable.update(needs.writable)
    return sorted(categories), sorted(writable)


def _files_below(directory: Path) -> list[Path]:
    visible = (
        file for file in directory.rglob("*") if not any(part[0] == "." for part in file.relative_to(directory).parts)
    )
    return sorted(file for file in visible if file.is_file())
