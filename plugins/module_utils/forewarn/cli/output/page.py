# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for people: times and spans, and lines that fit the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TextIO
from unicodedata import east_asian_width

from ...events import UNKNOWN_DURATION
from ...texts import exact_text
from .console import Console, one_line

_SHOWN_RESOURCES = 3
_UNIT = re.compile(r"\d (?:s|min|h|d)\b")  # stays together
_NARROWEST = 60  # columns; a narrower terminal wraps lines itself
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def iso(wall: float, timespec: str = "seconds") -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    try:
        moment = _EPOCH + timedelta(seconds=wall)
    except (OverflowError, ValueError):
        return "?"
    return moment.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def announced_text(duration_in_seconds: float | None) -> str:
    """Return DurationInSeconds for people (SE-19)."""
    if duration_in_seconds is None:
        return "-"
    return "unknown" if duration_in_seconds == UNKNOWN_DURATION else exact_text(duration_in_seconds)


def resources_text(names: Sequence[Any]) -> str:
    """Return the first names of Resources, and the number of the others."""
    more = len(names) - _SHOWN_RESOURCES
    return ", ".join(map(str, names[:_SHOWN_RESOURCES])) + (f" and {more} more" if more > 0 else "") or "-"


def cut(text: str, most: int) -> str:
    """Return the text, cut after ``most`` characters, with the number of those left out."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def fitted(text: str, width: int) -> str:
    """Return the text, if longer than ``width`` columns cut to it with three dots at the end."""
    if _columns(text) <= width:
        return text
    while text and _columns(text) + 3 > width:
        text = text[:-1]
    return text.rstrip() + "..."


class Page:
    """Lines for people: wrapped to the width of a terminal, whole in a pipe, where ``width`` is None.

    A terminal must not wrap lines itself: text that it puts at the left margin could pass for a line of ours.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.style = console.style
        self.width = _width(console)

    def line(self, text: str = "", *styles: str) -> None:
        """Write a text, wrapped if need be."""
        self.hanging("", text, *styles)

    def hanging(self, lead: str, text: str, *styles: str, lead_styles: Sequence[str] = ("dim",)) -> None:
        """Write a text after ``lead``; further lines align below the text."""
        lead, text = one_line(lead), one_line(text)
        room = None if self.width is None else self.width - len(lead)
        for number, part in enumerate([text] if room is None else wrap(text, room)):
            margin = " " * len(lead) if number else lead
            styled = self.style(margin, *lead_styles) if margin.strip() else margin
            self.console.line((styled + self.style(part, *styles)).rstrip())

    def segments(self, *parts: tuple[str, Sequence[str]]) -> None:
        """Write texts, each with its styles, on one line, or each on its own line if they do not fit."""
        texts = [one_line(text) for text, _styles in parts]
        if self.width is not None and _columns("  ".join(texts)) > self.width:
            for text, styles in parts:
                self.line(text, *styles)
            return
        self.console.line("  ".join(self.style(text, *styles) for text, (_text, styles) in zip(texts, parts)))


def wrap(text: str, width: int) -> list[str]:
    """Break a line into lines of at most ``width`` columns, at spaces if there are any."""
    lines = []
    start, space, used = 0, 0, 0  # the line's start, its last space, its columns
    for place, character in enumerate(text):
        size = _columns(character)
        breakable = character == " " and not _UNIT.match(text, max(0, place - 1))
        if used + size > width and text[start] == " ":  # no blanks before a line where a word could stand
            blanks = len(text[start:place]) - len(text[start:place].lstrip(" "))
            start, used = start + blanks, used - blanks
            space = max(space, start)
        if used + size > width:
            end = place if breakable or not text[start:space].strip() else space
            lines.append(text[start:end])
            start = end + (text[end] == " ")
            space, used = start, _columns(text[start:place])
            if start > place:
                continue
        if breakable:
            space = place
        used += size
    return [*lines, text[start:]]


def _columns(text: str) -> int:
    """Return the columns that a terminal needs for a text, or more, but never fewer."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _width(console: Console) -> int | None:
    if not console.stream.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    columns = int(wanted) if wanted.isdecimal() and int(wanted) > 0 else terminal_columns(console.stream)
    return max(columns, _NARROWEST)


def terminal_columns(stream: TextIO) -> int:
    """Return the width of a terminal, 80 if it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
