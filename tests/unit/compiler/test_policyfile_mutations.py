# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of the library with something wrong in them: findings at places that exist, never an exception."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from forewarn.compiler.findings import blocks, render
from forewarn.compiler.policies import compile_policies
from tools.fixtures.policy_files import SHIPPED

ODD = [
    *("\t", "\r", "\r\n", "\n", "\x00", "\x85", "\u2028", "\ufeff", "é", "\U0001f600", "\ud800", "x" * 3000, "- " * 40),
    *('"', "'", "`", "{", "}", "[", "]", "&a ", "*a", "!", "!!str ", "|", ">", "%", "@", "#", ": ", "- ", "? ", "~"),
    *("null", "true", "1e999", ".nan", "0x10", "9" * 30, "-" + "9" * 30, "9223372036854775808", "\\", "\\u0000"),
    *("&&", "||", "==", "in", "?", "has(", 'duration("1d")', 'matches("(a+)+$")', "[1, 'a']", "{1: 2}"),
    *("limit: 1", "limit: ", "25%", "0%", "{at_most: 1, group: ", "at_most", "vm.zone", "group: ready", "1.5", "- 1"),
    *("events.all(e, ", "(" * 70, "!" * 80, "event" + ".a" * 50, '"""', "---\n", "...\n", "<<: *a", "params."),
]  # fmt: skip


# No shipped policy has limits.
LIMITED = """\
name: limited
rule:
  match:
    - {id: one, condition: affects_me, output: approve, group: ready, limit: 1}
    - {id: share, condition: leader, output: hold, limit: 25%, prepare: [{run: [/bin/a]}], recover: [{run: [/bin/b]}]}
    - id: named
      output: approve
      limit:
        at_most: 25%
        group: >-
          has(vm.scale_set) // a comment
          ? vm.scale_set : vm.tags["role"]
"""


def mutated(text: str, random: Random) -> str:
    """Return the text with something inserted, removed, replaced, moved, or indented otherwise."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 1, 1, 5, 20, 100)))
        lines = text.splitlines(keepends=True)
        line = random.randrange(len(lines)) if lines else 0
        kind = random.randrange(8) if lines else 0
        if kind <= 1:
            text = text[:start] + random.choice(ODD) + text[end:]
        elif kind == 2:
            text = text[:start] + text[end:]
        elif kind == 3:
            lines.insert(random.randrange(len(lines)), lines[line])
            text = "".join(lines)
        elif kind == 4:
            lines[line] = " " * random.randrange(9) + lines[line].lstrip()
            text = "".join(lines)
        elif kind == 5:
            other = random.randrange(len(lines))
            lines[line], lines[other] = lines[other], lines[line]
            text = "".join(lines)
        elif kind == 6:
            text = "".join(lines[:line] + lines[line + 1 :])
        else:
            text = text[:start] + chr(random.choice((random.randrange(128), random.randrange(0x10000)))) + text[end:]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_any_mistake_is_a_finding_with_a_place(seed: int, repository: Path, tmp_path: Path) -> None:
    random = Random(20260131 + seed)
    library = [*(path.read_text() for path in SHIPPED), *[LIMITED] * 3]
    assert len(library) > 3
    file = tmp_path / "p.yml"
    found = 0
    for _ in range(40):
        content = mutated(random.choice(library), random).encode("utf-8", "surrogatepass")
        file.write_bytes(content)
        lines = re.split("\r\n|\r|\n", content.decode("utf-8-sig", "replace"))
        compilation = compile_policies([file])
        assert (compilation.artifact is None) == any(blocks(finding) for finding in compilation.findings), content
        for finding in compilation.findings:
            found += 1
            assert 1 <= finding.line <= len(lines), content
            length = len(lines[finding.line - 1])
            assert 1 <= finding.column <= length + 1, content
            assert finding.column < finding.end_column <= max(length, finding.column) + 1, content
            assert all(len(line) < 800 for line in render(finding)), content
    assert found > 20
