# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats YAML files of policies and tests: indentation, blank lines, white space, line ends, and nothing else.

Comments stay, and every text keeps the way it is quoted. Lines that this cannot be sure about stay as they are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .layout import STEP, Layout, YamlBlock, YamlText, read_layout

with suppress(ImportError):  # a failed import must not break the modules beside this one
    import yaml

# Lists with blank lines between all of their entries, or between none.
_EVENLY_SPACED = ("match", "section", "tests")
_MOST_ROUNDS = 8
_BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile("\r\n|\r")
# Whether to change indentation, blank lines and the last line end: all of it, or as much as leaves the meaning alone.
_ATTEMPTS = sorted(itertools.product((True, False), repeat=3), key=lambda choice: -sum(choice))


def formatted(text: str) -> str:
    """Return a file's text formatted; a text that is formatted already is returned as it is.

    It has the same values, anchors and comments, in the same order. Raises yaml.YAMLError if it is not YAML.
    """
    original = _content(text)
    current = _LINE_END.sub("\n", text.lstrip(_BYTE_ORDER_MARK))
    if _content(current) != original:
        return text
    for _round in range(_MOST_ROUNDS):
        attempts = (_attempt(current, *choice) for choice in _ATTEMPTS)
        following = next((one for one in attempts if one == current or _content(one) == original), current)
        if following == current:
            return current
        current = following
    return text


def means_the_same(one: str, other: str) -> bool:
    """Return whether two texts of YAML have the same values, anchors and comments, in the same order."""
    return _content(one) == _content(other)


def _content(text: str) -> tuple[list[Any], list[str]] | None:
    """Return all that a text says, None if it is not YAML."""
    text = _LINE_END.sub("\n", text)
    try:
        events = [_said(event) for event in yaml.parse(text, Loader=yaml.SafeLoader)]
        return events, read_layout(text).comments
    except yaml.YAMLError:
        return None


def _said(event: Any) -> tuple[Any, ...]:
    named = (getattr(event, "anchor", None), getattr(event, "tag", None))
    if isinstance(event, yaml.ScalarEvent):
        return ("scalar", *named, event.value, event.style)
    flow = isinstance(event, yaml.CollectionStartEvent) and bool(event.flow_style)
    return (type(event).__name__, *named, flow)


def _attempt(text: str, indentation: bool, blank_lines: bool, last_line_end: bool) -> str:
    """Return a text formatted, which may then mean something else, or be no YAML."""
    layout = read_layout(text)
    lines = _indented(layout) if indentation and layout.sure else list(layout.lines)
    inner = _text_lines(layout)
    lines = [line if number in inner else line.rstrip(" \t") for number, line in enumerate(lines)]
    text = "\n".join(lines)
    if blank_lines:
        with suppress(yaml.YAMLError):  # the indentation was wrong, and whoever compares both texts will see that
            text = _spaced(text)
    if last_line_end and (not text.endswith("\n") or blank_lines):
        text = text.rstrip("\n") + "\n"
    return text


def _text_lines(layout: Layout) -> set[int]:
    """Return the lines whose end may be part of a text."""
    found: set[int] = set()
    for text in layout.texts:
        if text.is_block:
            found.update(range(text.first, text.last + 1))
        elif text.style:
            found.update(range(text.begins, text.last))
    return found


# Indentation


def _indented(layout: Layout) -> list[str]:
    lines = list(layout.lines)
    for number, ranges in layout.gaps.items():
        for start, end in sorted(ranges, reverse=True):
            lines[number] = lines[number][:start] + " " + lines[number][end:]
    moved: dict[int, int] = {}  # by how much the first character of a line has moved to the right
    for number, (_block, wanted) in layout.starts.items():
        moved[number] = wanted - _indent(lines[number])
        lines[number] = " " * wanted + lines[number].lstrip(" ")
    inner = {number for text in layout.texts for number in range(text.first, text.last + 1)}
    for begins, ends, _block in layout.flows:
        least = _indent(lines[begins])
        for number in range(begins + 1, ends + 1):
            if number not in inner:
                lines[number] = _shifted(lines[number], moved.get(begins, 0), least)
                moved[number] = _indent(lines[number]) - _indent(layout.lines[number])
    for text in layout.texts:
        if text.is_block:
            _move_block(lines, text)
        else:
            least = STEP if text.inside is None else text.inside.wanted + STEP
            for number in range(text.first, text.last + 1):
                lines[number] = _shifted(lines[number], moved.get(text.begins, 0), least)
    for number, wanted in _comment_columns(layout, inner):
        lines[number] = " " * wanted + lines[number].lstrip(" \t")
    return lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shifted(line: str, by: int, least: int) -> str:
    """Return a line whose indentation is not part of a value, moved but not to the left of ``least``."""
    content = line.lstrip(" ")
    if not content or content.startswith("\t"):
        return line
    return " " * max(_indent(line) + by, least) + content


def _move_block(lines: list[str], text: YamlText) -> None:
    """Indent the lines of a block scalar, all by the same amount."""
    written = [line for line in lines[text.first : text.last + 1] if line.strip(" ")]
    if not written or text.inside is None:
        return
    if re.search("[1-9]", text.header):
        by = text.inside.wanted - text.inside.base
    else:
        by = text.inside.wanted + STEP - _indent(written[0])
    for number in range(text.first, text.last + 1):
        indent = _indent(lines[number]) + by
        lines[number] = " " * max(indent, 0) + lines[number].lstrip(" ")


def _comment_columns(layout: Layout, inner: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the lines that are comments outside flow collections, each with the column that it gets.

    A comment goes with the entry that it is in line with: the one below it, or one that is open above it.
    """
    inner = inner | {number for begins, ends, _block in layout.flows for number in range(begins + 1, ends + 1)}
    following: tuple[YamlBlock | None, int] | None = None
    below, below_column = None, -1
    for number in range(len(layout.lines) - 1, -1, -1):
        line = layout.lines[number]
        if number in layout.starts:
            below, below_column = layout.starts[number], _indent(line)
        elif number not in inner and line.lstrip(" \t").startswith("#"):
            following = below
            column = _indent(line)
            if following is not None and column == below_column:
                yield number, following[1]
            else:
                yield number, _enclosing(layout, number, column, following, below_column)


def _enclosing(
    layout: Layout, number: int, column: int, following: tuple[YamlBlock | None, int] | None, below_column: int
) -> int:
    above = next((layout.open_after[line] for line in range(number, -1, -1) if line in layout.open_after), ())
    candidates = [(block.column, block.wanted) for block in above]
    if following is not None:
        candidates.append((below_column, following[1]))
    fitting = [candidate for candidate in candidates if candidate[0] <= column]
    return max(fitting)[1] if fitting else 0


# Blank lines


def _spaced(text: str) -> str:
    """Return a text without blank lines at its start and end, nor two in a row, and its lists spaced evenly."""
    layout = read_layout(text)
    lines: list[str | None] = list(layout.lines)
    kept = {number for one in layout.texts for number in range(one.first, one.last + 1)}
    begun = False
    blank = True
    for number, line in enumerate(layout.lines):
        if number in kept or line.strip(" \t"):
            blank, begun = False, True
        elif blank or not begun:
            lines[number] = None
        else:
            blank = True
    after = _blank_lines_to_add(layout, kept)
    result: list[str] = []
    for number, kept_line in enumerate(lines):
        if number in after:
            result.append("")
        if kept_line is not None:
            result.append(kept_line)
    return "\n".join(result) + ("\n" if lines and lines[-1] is None else "")


def _blank_lines_to_add(layout: Layout, kept: set[int]) -> set[int]:
    """Return the lines before which a blank one is missing."""
    missing: set[int] = set()
    keeping = {one.last for one in layout.texts if one.keeps}
    for block in layout.lists:
        if block.key not in _EVENLY_SPACED:
            continue
        places = []
        for entry in block.entries[1:]:
            first = entry
            while _is_comment(layout, first - 1, kept) and _indent(layout.lines[first - 1]) == block.column:
                first -= 1
            above = first - 1
            spaced = False
            while above > 0 and above not in kept:
                spaced = spaced or not layout.lines[above].strip(" \t")
                if layout.lines[above].strip(" \t") and not _is_comment(layout, above, kept):
                    break
                above -= 1
            spaced = spaced or any(not layout.lines[one].strip(" \t") for one in range(first, entry))
            places.append((first, spaced, first - 1 in keeping))
        if any(spaced for _first, spaced, _keeps in places):
            missing.update(first for first, spaced, keeps in places if not spaced and not keeps)
    return missing


def _is_comment(layout: Layout, number: int, kept: set[int]) -> bool:
    return number >= 0 and number not in kept and layout.lines[number].lstrip(" \t").startswith("#")
