# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that tests and benchmarks have as texts, for processes of their own, import names that exist."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

_IMPORT = re.compile(
    r"^ *from (?:ansible_collections\.forewarn\.azure\.plugins\.module_utils\.)?(forewarn[\w.]*) import ([\w, ]+)",
    re.MULTILINE,
)


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield each module of the package that a text in a program imports from, with a name that it imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in _IMPORT.findall(node.value):
                yield from ((module, name.split()[0]) for name in names.split(",") if name.strip())


def exists(module: str, name: str) -> bool:
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def test_names_in_texts_exist(repository: Path) -> None:
    found = {
        (path.name, *one)
        for directory in ("tests", "demo")
        for path in (repository / directory).rglob("*.py")
        for one in imports(path.read_text(encoding="utf-8"))
        if path != Path(__file__)
    }
    assert len(found) > 20
    assert sorted(one for one in found if not exists(*one[1:])) == []
