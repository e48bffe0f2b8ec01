# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-test sanity refuses most often, found in a second rather than in minutes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

DISALLOWED = {"_", "foo", "bar", "baz", "toto", "tutu", "tata"}
SMART_QUOTES = re.compile("[\N{LEFT SINGLE QUOTATION MARK}-\N{RIGHT DOUBLE QUOTATION MARK}]")


def disallowed(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of what is assigned under a name that means nothing, and smart quotes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in DISALLOWED:
            yield node.lineno, node.id
    for number, line in enumerate(text.splitlines(), 1):
        if SMART_QUOTES.search(line):
            yield number, line


def test_plugins_have_no_such_names_or_quotes(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}:{line}: {what}"
        for path in sorted((repository / "plugins").rglob("*.py"))
        for line, what in disallowed(path.read_text())
    ]
    assert found == []


def test_they_would_be_found() -> None:
    text = "for _ in x: pass\nbar = 1\na, (_, b) = c\nd = '\N{RIGHT SINGLE QUOTATION MARK}'\nfor _name in x: e(bar)\n"
    assert sorted(line for line, _what in disallowed(text)) == [1, 2, 3, 4]
