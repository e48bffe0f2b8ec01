# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of tests and classes, and the sizes of directories, follow the rules of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

MOST_WORDS = 8
MOST_MODULES = 25
# Directories with more modules, and why each needs them.
CROWDED: dict[str, str] = {}
# Names that say nothing of what an object is. A class has a noun of the field.
NO_NOUNS = {"Look", "Pretence", "Previous"}
PARTICIPLES = {"Built", "Drawn", "Given", "Held", "Kept", "Known", "Made", "Said", "Seen", "Sent", "Shown", "Told"}
NOUNS_IN_ED = {"Need", "Seed", "Speed", "Shed"}


def long_names(text: str) -> Iterator[str]:
    """Yield the names of tests that have too many words."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = [word for word in node.name.split("_")[1:] if word]
            if len(words) > MOST_WORDS:
                yield node.name


def classes(text: str) -> Iterator[str]:
    """Yield the names of classes, without the underscore of private ones."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")


def is_noun(name: str) -> bool:
    """Return whether a name is neither an adjective nor a participle alone. More words are trusted to end in a noun."""
    participle = name in PARTICIPLES or re.fullmatch(r"[A-Z][a-z]+ed", name) is not None
    return name not in NO_NOUNS and (not participle or name in NOUNS_IN_ED)


def modules(directory: Path) -> list[Path]:
    found = sorted(directory.rglob("*.py"))
    assert len(found) > 100, "the walk found the modules"
    return found


def test_test_names_have_at_most_eight_words(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}: {name}"
        for path in modules(repository / "tests")
        for name in long_names(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("root", ["plugins", "tests"])
def test_directories_have_at_most_25_modules(repository: Path, root: str) -> None:
    counts = Counter(path.parent.relative_to(repository).as_posix() for path in modules(repository / root))
    assert {name: count for name, count in counts.items() if count > MOST_MODULES and name not in CROWDED} == {}
    assert [name for name in CROWDED if name.startswith(root) and counts[name] <= MOST_MODULES] == []


@pytest.mark.parametrize("root", ["plugins", "tests"])
def test_class_names_are_nouns(repository: Path, root: str) -> None:
    found = {name for path in modules(repository / root) for name in classes(path.read_text(encoding="utf-8"))}
    assert [name for name in sorted(found) if not is_noun(name)] == []


def test_rules_notice_violations() -> None:
    text = f"class _Told:\n    def test_{'_'.join('word' * 9)}(self): pass\ndef test_{'_'.join('12345678')}(): pass\n"
    assert list(classes(text)) == ["Told"]
    names = ["Told", "Asked", "Look", "Need", "StoredValue", "Deployment", "Event"]
    assert [name for name in names if is_noun(name)] == ["Need", "StoredValue", "Deployment", "Event"]
    assert len(list(long_names(text))) == 1
