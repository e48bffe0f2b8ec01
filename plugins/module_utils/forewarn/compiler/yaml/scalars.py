# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maps each character of a scalar's value to its characters in the YAML file.

A CEL expression is checked as a value; its mistakes are reported where the author wrote them. PyYAML keeps only where
a scalar starts and ends, so its text is read once more here, style by style, as YAML 1.1 defines folding, chomping,
indentation and escapes. The result is compared with the value that PyYAML read: a difference costs precision (every
character then maps to the scalar's start), never correctness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_BREAK = re.compile("\r\n|\r|\n")
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
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


@dataclass(frozen=True)
class _Character:
    text: str
    start: int
    end: int
    fold: bool = False


def map_characters(text: str, start: int, end: int, style: str, value: str) -> CharacterOffsets:
    """Map the scalar written at ``text[start:end]``; ``style`` is ``""`` (plain), ``'``, ``"``, ``|`` or ``>``."""
    if style in ("|", ">"):
        characters = list(_block(text, start, end, value))
    else:
        quote = len(style)
        characters = list(_flow(text, start + quote, end - quote, style))
    if "".join(character.text for character in characters) != value:
        return CharacterOffsets(value, [start] * len(value), [end] * len(value))
    return CharacterOffsets(
        value,
        [character.start for character in characters],
        [character.end for character in characters],
        {offset for offset, character in enumerate(characters) if character.fold},
    )


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


def _flow(text: str, position: int, end: int, style: str) -> Iterator[_Character]:
    while position < end:
        character = text[position]
        if character in " \t\r\n":
            after = position
            while after < end and text[after] in " \t\r\n":
                after += 1
            yield from _flow_white_space(text, position, after)
            position = after
        elif character == "\\" and style == '"':
            if _BREAK.match(text, position + 1):
                after = position + 1
                while after < end and text[after] in " \t\r\n":
                    after += 1
                # An escaped line break is nothing; empty lines after it count.
                for match in list(_BREAK.finditer(text, position + 1, after))[1:]:
                    yield _Character("\n", match.start(), match.end())
                position = after
            else:
                digits = _HEX_DIGITS.get(text[position + 1], 0)
                after = position + 2 + digits
                meant = chr(int(text[position + 2 : after], 16)) if digits else _ESCAPES[text[position + 1]]
                yield _Character(meant, position, after)
                position = after
        else:
            width = 2 if character == "'" == style else 1  # within single quotes, '' is one quote
            yield _Character(character, position, position + width)
            position += width


def _flow_white_space(text: str, start: int, end: int) -> Iterator[_Character]:
    breaks = list(_BREAK.finditer(text, start, end))
    if not breaks:
        for position in range(start, end):
            yield _Character(text[position], position, position + 1)
    elif len(breaks) == 1:
        yield _Character(" ", breaks[0].start(), breaks[0].end(), fold=True)
    else:
        for match in breaks[1:]:
            yield _Character("\n", match.start(), match.end())


@dataclass(frozen=True)
class _Line:
    start: int
    end: int
    after: int  # past its line break


def _least_indentation(lines: Sequence[str]) -> int:
    """Return the least indentation of lines in spaces, blank lines not counted; of blank lines alone, the greatest."""
    indentations = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" ")]
    return min(indentations) if indentations else max(map(len, lines), default=0)


def _block(text: str, start: int, end: int, value: str) -> Iterator[_Character]:
    header_end = _BREAK.search(text, start, end)
    if header_end is None:
        return
    lines = []
    position = header_end.end()
    while position < end:
        match = _BREAK.search(text, position, end)
        line = _Line(position, match.start() if match else end, match.end() if match else end)
        lines.append(line)
        position = line.after
    written = [text[line.start : line.end] for line in lines]
    # The line that is indented least begins a line of the value: folding joins only lines without spaces before them.
    indent = _least_indentation(written) - _least_indentation(value.split("\n"))
    header = text[start : header_end.start()]
    indicators = header.split("#")[0]
    previous: _Line | None = None
    blank: list[_Line] = []
    for line in lines:
        if line.end - line.start <= indent and not text[line.start : line.end].strip(" "):
            blank.append(line)
            continue
        first = line.start + indent
        if previous is None:
            yield from _breaks(blank)
        elif ">" in indicators and text[previous.start + indent] not in " \t" and text[first] not in " \t":
            # A space joins the lines of a paragraph; of several line breaks, all but one are kept.
            if blank:
                yield from _breaks(blank)
            else:
                yield _Character(" ", previous.end, previous.after, fold=True)
        else:
            yield from _breaks([previous, *blank])
        for position in range(first, line.end):
            yield _Character(text[position], position, position + 1)
        previous, blank = line, []
    if previous and "-" not in indicators:
        yield from _breaks([previous])
    if "+" in indicators:
        yield from _breaks(blank)


def _breaks(lines: list[_Line]) -> Iterator[_Character]:
    for line in lines:
        if line.after > line.end:
            yield _Character("\n", line.end, line.after)
