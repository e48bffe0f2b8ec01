# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats YAML files of policies and tests: indentation, blank lines, white space, line ends, and nothing else.

Comments stay, and every text keeps the way it is quoted. A change that would change the content is left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .layout import STEP, Layout, YamlText, read_layout

with suppress(ImportError):  # a failed import must not break the modules beside this one
    import yaml

# Lists with blank lines between all of their entries, or between none.
_EVENLY_SPACED = ("match", "section", "tests")
_MOST_ROUNDS = 8
_BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile("\r\n|\r")
# Whether to change indentation, blank lines and the last line end: all of it, or as much as leaves the meaning alone.
_ATTEMPTS = sorted(itertools.product((True, False), repeat=3), key=lambda choice: -sum(choice))


def format_yaml(text: str) -> str:
    """Return a file's text formatted; a text that is formatted already is returned as it is.

    It has the same values, anchors and comments, in the same order. Raises yaml.YAMLError if it is not YAML.
    """
    original = _content(text)
    current = _LINE_END.sub("\n", text.lstrip(_BYTE_ORDER_MARK))
    if _content(current) != original:
        return text
    for _round in range(_MOST_ROUNDS):
        attempts = (_try_format(current, *choice) for choice in _ATTEMPTS)
        following = next((one for one in attempts if one == current or _content(one) == original), current)
        if following == current:
            return current
        current = following
    return text


def has_same_content(one: str, other: str) -> bool:
    """Return whether two texts of YAML have the same values, anchors and comments, in the same order."""
    return _content(one) == _content(other)


def _content(text: str) -> tuple[list[Any], list[str]] | None:
    """Return the values with their styles and anchors, and the comments; None if the text is not YAML."""
    text = _LINE_END.sub("\n", text)
    try:
        events = [_event_fields(event) for event in yaml.parse(text, Loader=yaml.SafeLoader)]
        return events, read_layout(text).comments
    except yaml.YAMLError:
        return None


def _event_fields(event: Any) -> tuple[Any, ...]:
    named = (getattr(event, "anchor", None), getattr(event, "tag", None))
    if isinstance(event, yaml.ScalarEvent):
        return ("scalar", *named, event.value, event.style)
    return (type(event).__name__, *named, bool(getattr(event, "flow_style", False)))


def _try_format(text: str, indentation: bool, blank_lines: bool, last_line_end: bool) -> str:
    """Return a text formatted, which may then mean something else, or be no YAML."""
    layout = read_layout(text)
    lines = _reindent(layout) if indentation and layout.is_complete else list(layout.lines)
    content = {  # lines whose end may be part of a value
        number
        for text in layout.texts
        if text.style
        for number in (text.lines if text.is_block else range(text.begins, text.last))
    }
    result = "\n".join(line if number in content else line.rstrip(" \t") for number, line in enumerate(lines))
    if blank_lines:
        with suppress(yaml.YAMLError):  # the indentation was wrong, which the comparison of both texts finds
            result = _normalize_blank_lines(result)
    if last_line_end and (not result.endswith("\n") or blank_lines):
        result = result.rstrip("\n") + "\n"
    return result


# Indentation


def _reindent(layout: Layout) -> list[str]:
    lines = list(layout.lines)
    for number, gaps in layout.gaps.items():
        for start, end in sorted(gaps, reverse=True):
            lines[number] = lines[number][:start] + " " + lines[number][end:]
    moved: dict[int, int] = {}  # by how much the first character of a line has moved to the right
    for number, wanted in layout.starts.items():
        moved[number] = wanted - _indent(lines[number])
        lines[number] = _with_indent(lines[number], wanted)
    inner = layout.text_lines
    for begins, ends in layout.flows:
        least = _indent(lines[begins])
        for number in range(begins + 1, ends + 1):
            if number not in inner:
                lines[number] = _shift(lines[number], moved.get(begins, 0), least)
                moved[number] = _indent(lines[number]) - _indent(layout.lines[number])
    for text in layout.texts:
        if text.is_block:
            _move_block(lines, text)
        else:
            least = STEP if text.inside is None else text.inside.wanted + STEP
            for number in text.lines:
                lines[number] = _shift(lines[number], moved.get(text.begins, 0), least)
    for number, wanted in _comment_columns(layout):
        lines[number] = " " * wanted + lines[number].lstrip(" \t")
    return lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _with_indent(line: str, indent: int) -> str:
    return " " * max(indent, 0) + line.lstrip(" ")


def _shift(line: str, by: int, least: int) -> str:
    """Return a line whose indentation is not part of a value, moved but not to the left of ``least``."""
    if line.lstrip(" ")[:1] in ("", "\t"):
        return line
    return _with_indent(line, max(_indent(line) + by, least))


def _move_block(lines: list[str], text: YamlText) -> None:
    """Indent the lines of a block scalar, all by the same amount."""
    first = next((lines[number] for number in text.lines if lines[number].strip(" ")), None)
    if first is None or text.inside is None:
        return
    if re.search("[1-9]", text.header):
        by = text.inside.wanted - text.inside.base
    else:
        by = text.inside.wanted + STEP - _indent(first)
    for number in text.lines:
        lines[number] = _with_indent(lines[number], _indent(lines[number]) + by)


def _comment_columns(layout: Layout) -> Iterator[tuple[int, int]]:
    """Yield the lines that are comments outside flow collections, each with the column that it gets.

    A comment goes with the entry that it is in line with: the one below it, or one that is open above it.
    """
    inner = layout.text_lines.union(*(range(begins + 1, ends + 1) for begins, ends in layout.flows))
    below: list[tuple[int, int]] = []  # the column of the entry below, and the one that it gets
    for number in range(len(layout.lines) - 1, -1, -1):
        column = _indent(layout.lines[number])
        if number in layout.starts:
            below = [(column, layout.starts[number])]
        elif number not in inner and _is_comment(layout.lines[number]):
            above = next((layout.open_after[line] for line in range(number, -1, -1) if line in layout.open_after), ())
            candidates = below + [(block.column, block.wanted) for block in above]
            if not (below and below[0][0] == column):
                candidates = sorted((one for one in candidates if one[0] <= column), reverse=True)
            yield number, candidates[0][1] if candidates else 0


def _is_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("#")


# Blank lines


def _normalize_blank_lines(text: str) -> str:
    """Return a text without blank lines at its start and end, nor two in a row, and its lists spaced evenly."""
    layout = read_layout(text)
    inner = layout.text_lines
    blank = {number for number, line in enumerate(layout.lines) if number not in inner and not line.strip(" \t")}
    missing = _missing_blank_lines(layout, inner, blank)
    result: list[str] = []
    for number, line in enumerate(layout.lines):
        if number in missing:
            result.append("")
        if number not in blank or (number and number - 1 not in blank):
            result.append(line)
    last = len(layout.lines) - 1
    return "\n".join(result) + ("\n" if last in blank and (last == 0 or last - 1 in blank) else "")


def _missing_blank_lines(layout: Layout, inner: set[int], blank: set[int]) -> set[int]:
    """Return the lines before which a blank one is missing."""
    missing: set[int] = set()
    keeping = {text.last for text in layout.texts if text.keeps}
    comments = {number for number, line in enumerate(layout.lines) if number not in inner and _is_comment(line)}
    for block in layout.lists:
        if block.key not in _EVENLY_SPACED:
            continue
        places = []  # the first line of an entry or of the comments on it, and whether a blank line is above
        for entry in block.entries[1:]:
            first = entry
            while first - 1 in comments and _indent(layout.lines[first - 1]) == block.column:
                first -= 1
            above = itertools.takewhile((blank | comments).__contains__, range(entry - 1, 0, -1))
            places.append((first, not blank.isdisjoint(above)))
        if any(spaced for _first, spaced in places):
            missing.update(first for first, spaced in places if not spaced and first - 1 not in keeping)
    return missing
