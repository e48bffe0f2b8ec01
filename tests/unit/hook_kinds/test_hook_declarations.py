# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of hooks as they are declared: complete, documented, and in the schema that editors read."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn import hook_kinds
from forewarn.hook_kinds.common.declaration import CHOICE, DURATION, INTEGER, HookKind
from tools.docs.hook_kinds import PAGES, pages, schema
from tools.docs.policy_reference import SCHEMA

KINDS = hook_kinds.available()
_LONGEST_FILE = 160  # lines: a reader should see at once what a kind does


def test_every_kind_is_here() -> None:
    assert [kind.name for kind in KINDS] == list(hook_kinds.NAMES)
    assert hook_kinds.find("no-such-kind") is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_declared_in_whole_sentences(kind: HookKind) -> None:
    for text in (kind.summary, kind.prepares, kind.recovers, kind.effect, kind.repeatable):
        assert text.endswith("."), text
    for option in kind.options:
        assert option.description.endswith("."), option.name
        assert option.problem(option.example) is None or "${" in str(option.example), option.name
        assert option.default is None or option.problem(option.default) is None, option.name
        assert option.required or option.type not in (CHOICE,) or option.default in option.choices, option.name
        if option.type in (INTEGER, DURATION):
            assert option.minimum is not None, option.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_one_short_file(kind: HookKind, package: Path) -> None:
    lines = (package / "hook_kinds" / f"{kind.name}.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= _LONGEST_FILE


def test_schema_and_pages_match_the_declarations() -> None:
    hint = "run python -m tools.docs.hook_kinds in tests"
    assert SCHEMA.read_text(encoding="utf-8") == schema(), hint
    assert {path: path.read_text(encoding="utf-8") for path in pages()} == pages(), hint


def test_the_documentation_lists_every_kind() -> None:
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert f"[{kind.name}]({kind.name}.md)" in text
        assert kind.summary in text
