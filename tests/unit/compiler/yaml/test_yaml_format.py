# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The formatter of YAML keeps values and comments, does the same twice, and leaves what it cannot be sure of."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.compiler.policies import compiles_alike
from forewarn.compiler.yaml.format import format_yaml, has_same_content
from forewarn.compiler.yaml.tree import YamlFile
from hypothesis import given
from hypothesis import strategies as st
from tools.generators.untidy_yaml import DATA, KEYS, UntidyWriter

UNTIDY = """\


# about the policy   
name:   p
params:
- {name: a, type: int,
   default: 9}   # a default
-   name: b
    # of b
    type: string


rule:
    variables:
    - name: brief
      expression: >-
              event.EventType == "Freeze"  // comment of CEL
                && true
    match:
    # before the first
    -  id: a
       condition: |
           affects_me   

       output: hold

    - id: b
      condition: "event.EventType ==
         'Reboot'"
      # still of b
    # of c
    - id: c
      explanation:
              'why'
      prepare:
        - run: [a,
            b]
      output: approve
    -
      id: d
      rule:
          match:
              - output: hold
              # the end of the inner one
    # the end of the outer one
# the end\
"""  # noqa: W291 - white space at the end of lines is what this is about
TIDY = """\
# about the policy
name:   p
params:
  - {name: a, type: int,
     default: 9}   # a default
  - name: b
    # of b
    type: string

rule:
  variables:
    - name: brief
      expression: >-
        event.EventType == "Freeze"  // comment of CEL
          && true
  match:
    # before the first
    - id: a
      condition: |
        affects_me   

      output: hold

    - id: b
      condition: "event.EventType ==
         'Reboot'"
      # still of b

    # of c
    - id: c
      explanation:
        'why'
      prepare:
        - run: [a,
            b]
      output: approve

    -
      id: d
      rule:
        match:
          - output: hold
          # the end of the inner one
    # the end of the outer one
# the end
"""  # noqa: W291 - likewise


def said(text: str) -> list[tuple[Any, ...]]:
    """Return all that a text of YAML says: its structure, values, how they are quoted, and anchors."""
    names = ("value", "style", "anchor", "tag")
    return [
        (
            type(event).__name__,
            *(getattr(event, name, None) for name in names),
            bool(getattr(event, "flow_style", None)),
        )
        for event in yaml.parse(text, Loader=yaml.SafeLoader)
    ]


def test_all_that_it_does() -> None:
    assert format_yaml(UNTIDY) == TIDY
    assert format_yaml(TIDY) == TIDY
    assert format_yaml(UNTIDY.replace("\n", "\r\n")) == TIDY


def test_what_the_repository_ships_is_formatted(repository: Path) -> None:
    files = [*(repository / "policies").glob("*.yml"), *(repository / "demo").rglob("*.yml")]
    assert len(files) > 20
    for path in files:
        assert format_yaml(path.read_text()) == path.read_text(), path


@given(st.data())
def test_it_keeps_what_a_file_says(data: st.DataObject) -> None:
    """Of a file of any shape, values, quotes, anchors and comments stay; and to format it twice is to do so once."""
    writer = UntidyWriter(data)
    text = writer.document(data.draw(st.dictionaries(st.sampled_from(KEYS), DATA, min_size=1)))
    after = format_yaml(text)
    assert said(after) == said(text)
    assert re.findall(r"# comment \d+", after) == writer.comments
    assert format_yaml(after) == after
    assert "\r" not in after


@given(st.data())
def test_a_file_of_any_shape_is_tidy_afterwards(data: st.DataObject) -> None:
    """Unless a block scalar ends the file or has white space of its own, in which case it cannot be sure."""
    writer = UntidyWriter(data)
    after = format_yaml(writer.document(data.draw(st.dictionaries(st.sampled_from(KEYS), DATA, min_size=1))))
    events = list(yaml.parse(after, Loader=yaml.SafeLoader))
    for event in events:
        if isinstance(event, yaml.MappingStartEvent) and not event.flow_style and event.anchor is None:
            assert event.start_mark is not None
            assert event.start_mark.column % 2 == 0, after
    if not any(isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">") for event in events):
        outside = "\n".join(line for line in after.split("\n") if '"' not in line and "'" not in line)
        assert not re.search(r"[ \t]$", outside, re.MULTILINE), after
        assert after.endswith("\n")
        assert not after.endswith("\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "? a\n:   - b\n",  # a key with a question mark
        "a: |\n  text",  # a line end would become part of the value
        "a:\n    - |+\n      text\n\n\n",  # and so are these
        "%YAML 1.1\n---\na: 1\n...\n",
        "a: 'one\n\n\n  two   \n  three'\n",
    ],
)
def test_what_it_leaves(text: str) -> None:
    after = format_yaml(text)
    assert said(after) == said(text)
    assert format_yaml(after) == after


def test_indentation_is_kept_after_a_question_mark() -> None:
    assert format_yaml("? a\n:    - b  \n\n\n") == "? a\n:    - b\n"


def test_comments_stay_with_what_they_are_about() -> None:
    text = """\
        a:
            # of b
            b: 1   # beside b
            # after b
        # of c
        c:
        # of the first
        - 1
          # below the first
        # of the second
        - 2
        """
    assert format_yaml(textwrap.dedent(text)) == textwrap.dedent(
        """\
        a:
          # of b
          b: 1   # beside b
          # after b
        # of c
        c:
          # of the first
          - 1
          # below the first
          # of the second
          - 2
        """
    )


@pytest.mark.parametrize("key", ["match", "section", "tests"])
def test_rules_and_tests_are_spaced_evenly(key: str) -> None:
    text = f"{key}:\n  - a: 1\n  # of b\n  - b: 1\n\n\n  - c: 1\n  - d: |\n      e\n"
    spaced = f"{key}:\n  - a: 1\n\n  # of b\n  - b: 1\n\n  - c: 1\n\n  - d: |\n      e\n"
    assert format_yaml(text) == spaced
    dense = text.replace("\n\n\n", "\n")
    assert format_yaml(dense) == dense
    assert format_yaml(text.replace(key, "params")) == text.replace(key, "params").replace("\n\n\n", "\n\n")


def test_blank_line_inside_a_text_is_not_added() -> None:
    text = "match:\n  - a: |+\n      text\n  - b: 1\n\n  - c: 1\n"
    assert format_yaml(text) == text


def test_what_means_the_same() -> None:
    assert has_same_content("a: [b]  # c\n", "a:   [b] # c")
    for other in ("a: [b]\n", "a: ['b']  # c\n", "a: [b]  # d\n", "a:\n  - b  # c\n", "a: &x [b]  # c", "a: [b  # c"):
        assert not has_same_content("a: [b]  # c\n", other)


def test_moved_parts_compile_alike(repository: Path) -> None:
    text = (repository / "policies" / "web-tier.yml").read_text()
    moved = "# moved\n" + text.replace("rule:", "rule:\n\n").replace("    - id: drain", "\n    - id:   drain")
    assert compiles_alike("p.yml", text, moved)
    assert not compiles_alike("p.yml", text, text.replace("default: 9", "default: 8"))
    assert not compiles_alike("p.yml", text, text.replace("affects_me", "leader"))


def test_the_reader_of_policies_agrees(repository: Path) -> None:
    for path in (repository / "policies").glob("*.yml"):
        _head, _mark, text = path.read_text().partition("---\n")
        moved = re.sub(r"^(?=.)", "   ", text, flags=re.MULTILINE)
        assert moved != text
        after = format_yaml(moved)
        roots = [YamlFile.from_bytes("p", one.encode()).root for one in (text, moved, after)]
        first, *others = [root and root.data() for root in roots]
        assert first is not None
        assert others == [first, first]
        assert after == text
