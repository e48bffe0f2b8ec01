# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the sanity tests of which two ansible-cores have the same code: ``same_sanity.py ANSIBLE_TEST ANSIBLE_TEST``.

The arguments are the directories of two packages ``ansible_test``. About the same files these tests say the same, so
the second one need not run them. A test that only one has, or whose code or settings differ, is not printed.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SANITY = Path("_util", "controller", "sanity")
# Directories whose whole test is in them. That of validate-modules, for one, imports what modules import.
PLAIN = ("pep8", "yamllint")


def meaning(path: Path) -> str:
    """Return what a file says, without comments and layout."""
    text = path.read_text(encoding="utf-8")
    return ast.dump(ast.parse(text)) if path.suffix == ".py" else text


def files(directory: Path, name: str) -> dict[str, str]:
    """Return what the files of a test say."""
    found = [path for path in (directory / SANITY / name).rglob("*") if path.suffix in (".py", ".txt", ".yml", ".json")]
    found += [
        path for suffix in (".py", ".json") if (path := directory / SANITY / "code-smell" / (name + suffix)).exists()
    ]
    return {str(path.relative_to(directory)): meaning(path) for path in found}


def same(one: Path, other: Path) -> list[str]:
    """Return the names of the tests that are the same."""
    names = [*PLAIN, *(path.stem for path in (other / SANITY / "code-smell").glob("*.json"))]
    return sorted(name for name in names if files(one, name) == files(other, name))


if __name__ == "__main__":
    print(*same(*map(Path, sys.argv[1:])), sep="\n")
