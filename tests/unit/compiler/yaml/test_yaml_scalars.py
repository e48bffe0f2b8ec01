# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Offsets of a scalar's value map to the characters of the file, in every style that YAML has."""

from __future__ import annotations

import textwrap

import pytest
import yaml
from forewarn.compiler.yaml.scalars import CharacterOffsets, as_expression
from forewarn.compiler.yaml.tree import Mapping, Scalar, YamlFile
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

LETTERS = "ab='\"\\!&|<0é字😀\t #:-"
WORDS = st.text("ab=<&|'\"\\!0é字😀", min_size=1, max_size=6).filter(lambda word: word[0] not in "'\"!&|%@`")
TEXTS = st.text(LETTERS, max_size=30)
LINES = st.lists(st.text("ab= \t'\"#:", max_size=8), min_size=0, max_size=7)


def scalar(text: str) -> tuple[Scalar, CharacterOffsets, str]:
    """Read the value of key ``k`` in a file."""
    file = YamlFile.from_bytes("f.yml", text.encode())
    assert isinstance(file.root, Mapping), (file.report.findings, text)
    node = file.root.get("k")
    assert isinstance(node, Scalar)
    assert node.text == yaml.safe_load(text.replace("k: ", "k: !!str ", 1))["k"]
    return node, file.characters(node), file.source.text


def holds(found: CharacterOffsets, text: str, style: str) -> None:
    """Check the mapping, knowing of each style only what one character may look like in the file."""
    assert len(found.starts) == len(found.ends) == len(found.value)
    position = 0
    for offset, character in enumerate(found.value):
        start, end = found.starts[offset], found.ends[offset]
        assert position <= start < end, "in order, without overlap"
        position = end
        written = text[start:end]
        if written in ("\n", "\r\n", "\r"):
            assert character == (" " if offset in found.folds else "\n")
        elif style == "'" and character == "'":
            assert written == "''"
        elif style == '"' and written.startswith("\\"):
            assert yaml.safe_load(f'"{written}"') == character
        else:
            assert written == character


@given(TEXTS)
@settings(max_examples=examples(150), deadline=None)
def test_single_quoted(value: str) -> None:
    text = "k: '" + value.replace("'", "''") + "'\n"
    node, found, text = scalar(text)
    assert node.text == value
    holds(found, text, "'")


@given(TEXTS, st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_double_quoted(value: str, unicode: bool) -> None:
    text = yaml.dump({"k": value}, default_style='"', allow_unicode=unicode, width=20).replace('"k"', "k", 1)
    node, found, text = scalar(text)
    assert node.text == value
    holds(found, text, '"')


@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\n  ", "\n\n  ", " \n \n    "])), min_size=1, max_size=8))
@settings(max_examples=examples(200), deadline=None)
def test_plain(parts: list[tuple[str, str]]) -> None:
    text = "k: " + "".join(word + space for word, space in parts).rstrip() + "\nz: 1\n"
    node, found, text = scalar(text)
    assert node.text.split() == [word for word, _space in parts]
    holds(found, text, "")


@given(
    st.lists(
        st.tuples(st.text("ab= ''", min_size=1, max_size=6), st.sampled_from(["\n  ", " \n\n \t", " "])), max_size=6
    )
)
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_quoted_over_several_lines(quote: str, parts: list[tuple[str, str]]) -> None:
    inner = "".join((word.replace("'", "''") if quote == "'" else word) + space for word, space in parts)
    _node, found, text = scalar(f"k: {quote}{inner}x{quote}\n")
    assert found.starts, "x is there"
    holds(found, text, quote)


@given(
    LINES,
    st.sampled_from("|>"),
    st.sampled_from(["", "-", "+"]),
    st.integers(1, 4),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "  # why"]),
    st.booleans(),
)
@settings(max_examples=examples(400), deadline=None)
def test_block(
    lines: list[str], style: str, chomping: str, indent: int, newline: str, comment: str, nested: bool
) -> None:
    """Folding, chomping, indentation indicators, more-indented lines, blank lines, CRLF."""
    body = "".join(" " * indent + line + newline for line in lines)
    text = f"k: {style}{indent}{chomping}{comment}{newline}{body}z: 1{newline}"
    if nested:  # the indicator counts from the parent's indentation
        text = "".join("   " + line for line in text.splitlines(keepends=True))
    node, found, text = scalar(text)
    assert "".join(node.text.split()) == "".join("".join(lines).split())
    holds(found, text, style)


@pytest.mark.parametrize("header", [">", ">-", ">+", "|", "|-", "|+", "|2", ">2-"])
def test_block_indentation_is_detected(header: str) -> None:
    text = f"k: {header}\n\n  a ==\n\n    b\n  && c\n\n\nz: 1\n"
    _node, found, text = scalar(text)
    holds(found, text, header[0])
    where = found.value.index("&&")
    assert text[found.starts[where] :].startswith("&& c")


def test_expression_ends_after_its_last_character() -> None:
    _node, found, text = scalar('k: "a &&"\n')
    assert found.range(4, 4) == (text.index('"\n'), text.index('"\n'))
    assert found.range(2, 4) == (text.index("&&"), text.index("&&") + 2)


def test_empty_scalar_has_no_place_of_its_own() -> None:
    assert CharacterOffsets().range(0, 0) == (0, 0)


def expression(text: str) -> str:
    _node, found, _text = scalar(textwrap.dedent(text))
    return as_expression(found)


def test_comment_ends_at_a_folded_line_break() -> None:
    """Else ``>-`` would silently turn the rest of a condition into a comment, and approve more than was written."""
    folded = """\
        k: >-
          event.EventType == "Freeze" // short
          && event.DurationInSeconds < 9
        """
    assert expression(folded) == 'event.EventType == "Freeze" // short\n&& event.DurationInSeconds < 9'


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("k: >-\n  'a\n  b'\n", "'a b'"),
        ("k: >-\n  '''a\n  b''' +\n  c\n", "'''a b''' +\nc"),
        ('k: >-\n  "a // b\n  c" // d\n  + e\n', '"a // b c" // d\n+ e'),
        ("k: >-\n  // don't\n  a + 'x\n  y'\n", "// don't\na + 'x y'"),
        ("k: >-\n  r'\\' +\n  b\n", "r'\\' +\nb"),
        ("k: a\n  b\n", "a\nb"),
        ("k: |-\n  a // b\n  c\n", "a // b\nc"),
    ],
)
def test_folded_line_break_in_text_is_a_space(written: str, read: str) -> None:
    assert expression(written) == read
