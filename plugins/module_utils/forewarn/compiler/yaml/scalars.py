# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maps each character of a scalar's value to its characters in the YAML file.

A CEL expression is checked as a value; its mistakes are reported where the author wrote them. PyYAML keeps only where
a scalar starts and ends, so the value is laid along its text here: words stand in both, and what differs is white space
and, within quotes, escapes. Where that does not succeed it costs precision (every character then maps to the scalar's
start), never correctness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Tuple

_BREAK = re.compile("\r\n|\r|\n")
_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_RUNS = re.compile(r"[ \t\n]+|[^ \t\n]+")
# What one or more characters of a value are written as, in each style that is no block.
_WRITTEN = {
    "": re.compile(r"(?P<white>[ \t\r\n]+)|.", re.DOTALL),
    "'": re.compile(r"(?P<white>[ \t\r\n]+)|''|.", re.DOTALL),
    '"': re.compile(
        r"(?P<white>[ \t\r\n]+)|\\(?:(?P<joined>[\r\n][ \t\r\n]*)|x..|u.{4}|U.{8}|.)|.",
        re.DOTALL,
    ),
}
# Tokens of CEL in which a line break is not just white space.
_CEL_STRING_OR_COMMENT = re.compile(
    r"""(?P<comment>//[^\n]*)
    | [bB]?[rR][bB]?(?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\n]*'|"[^"\n]*")
    | (?:'''(?:\\.|.)*?'''|\"\"\"(?:\\.|.)*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")""",
    re.DOTALL | re.VERBOSE,
)


@dataclass
class CharacterOffsets:
    """For character i of ``value``: it was written at ``starts[i]`` to ``ends[i]`` (offsets in the file).

    ``folds`` are the places where the value has a space for a line break of the file.
    """

    value: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    folds: set[int] = field(default_factory=set)

    def range(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the file the characters ``start`` to ``end`` of the value were written."""
        if not self.starts:
            return 0, 0
        if start >= len(self.starts):  # the end of the expression, where something is missing
            return self.ends[-1], self.ends[-1]
        first = self.starts[start]
        return first, max(first, self.ends[min(max(end, start + 1), len(self.ends)) - 1])


_Place = Tuple[int, int, bool]  # where a character starts and ends in the file, and whether it is a fold


def map_characters(text: str, start: int, end: int, style: str, value: str) -> CharacterOffsets:
    """Map the scalar written at ``text[start:end]``; ``style`` is ``""`` (plain), ``'``, ``"``, ``|`` or ``>``."""
    quote = len(style)
    written = _block(text, start, end, value) if style in ("|", ">") else _flow(text, start + quote, end - quote, style)
    places = list(written)
    if len(places) != len(value) or any(
        after == begin + 1 and text[begin] not in (character, "\r", "\n")
        for character, (begin, after, _fold) in zip(value, places)
    ):
        return CharacterOffsets(value, [start] * len(value), [end] * len(value))
    starts, ends = [begin for begin, _after, _fold in places], [after for _begin, after, _fold in places]
    return CharacterOffsets(value, starts, ends, {offset for offset, place in enumerate(places) if place[2]})


def as_expression(found: CharacterOffsets) -> str:
    """Return the value as a CEL expression: of the same length, line breaks kept where they matter.

    The CEL policy format keeps the line breaks of a folded scalar. They end a comment: with ``>-`` alone, the lines
    after ``// …`` would silently become part of it. Within a string literal a folded line break stays a space.
    """
    source = "".join("\n" if offset in found.folds else char for offset, char in enumerate(found.value))
    if not found.folds or not any(quote in source for quote in "'\""):
        return source
    result = list(source)
    position = 0
    while match := _CEL_STRING_OR_COMMENT.search(found.value, position):
        position = match.end()
        if match.group("comment"):  # it ends at the line break that the value has folded
            position = next((o for o in range(match.start(), match.end()) if o in found.folds), match.end())
            continue
        for offset in range(match.start(), match.end()):
            result[offset] = found.value[offset]
    return "".join(result)


def _flow(text: str, start: int, end: int, style: str) -> Iterator[_Place]:
    """Yield the places of the characters of a plain or quoted scalar."""
    for match in _WRITTEN[style].finditer(text, start, end):
        if match.lastgroup is None:
            yield *match.span(), False
            continue
        white = match.group(match.lastgroup)
        breaks = len(_BREAK.findall(white))
        if breaks:  # of several line breaks all but one are kept; the only one is a space, or nothing after a backslash
            white = "\n" * (breaks - 1) or (" " if match.lastgroup == "white" else "")
        yield from _white_space(text, *match.span(), white, inside=True)


def _block(text: str, start: int, end: int, value: str) -> Iterator[_Place]:
    """Yield the places of the characters of a block scalar."""
    header = _BREAK.search(text, start, end)
    position = end if header is None else header.end()
    for match in _RUNS.finditer(value):
        run, white = match.group(), _WHITE_SPACE.match(text, position, end)
        after = position if white is None else white.end()
        if run[0] in " \t\n":
            inside = match.start() > 0 and match.end() < len(value)
            yield from _white_space(text, position, after, run, inside=inside)
            position = after
        elif text.startswith(run, after):
            position = after + len(run)
            yield from ((place, place + 1, False) for place in range(after, position))


def _white_space(text: str, start: int, end: int, white: str, *, inside: bool) -> Iterator[_Place]:
    """Yield the places of ``white``, which white space of the file is in the value.

    Its lines are at the ends of lines of the file, after their indentation. Between words (``inside``) the first line
    break of several may be missing, and the only one may be a space: a fold.
    """
    breaks = list(_BREAK.finditer(text, start, end))
    *lines, last = white.split("\n")
    dropped = len(breaks) - len(lines) if inside else 0
    if not 0 <= dropped <= 1 or len(lines) > len(breaks):
        return  # the value is not what was expected here
    fold = bool(dropped and not lines and last)
    line_ends = [*(one.start() for one in breaks), end]
    for number, line in enumerate([*lines, last[:-1] if fold else last]):
        if number:
            yield *breaks[number - 1 + dropped].span(), False
        line_end = line_ends[number + dropped if number else 0]
        yield from ((place, place + 1, False) for place in range(line_end - len(line), line_end))
    if fold:
        yield *breaks[0].span(), True
