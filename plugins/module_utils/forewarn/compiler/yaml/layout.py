# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The structure of the lines of a YAML file: the blocks that lines begin entries of, and the texts that they belong to.

The text has line ends of LF alone. Lines and columns count from 0.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

with suppress(ImportError):  # a failed import must not break the modules beside this one
    import yaml

STEP = 2  # spaces by which each level is indented


@dataclass(eq=False)
class YamlBlock:
    """A mapping or a list that indentation makes. ``column`` is that of its entries, ``wanted`` the one they get.

    ``base`` is the column that PyYAML counts the indentation of a block scalar from. An ``indentless`` list has its
    dashes below its key. ``key`` is that of a list, empty if it has none; ``entries`` are the lines of its dashes.
    """

    column: int
    wanted: int
    base: int
    is_list: bool
    indentless: bool
    key: str
    entries: list[int] = field(default_factory=list)


class YamlText(NamedTuple):
    """A scalar that has lines below the one that it begins at, up to ``last``, and the block that it is in.

    ``style`` is empty for a plain one, else its first character; ``header`` is what follows that of a block scalar.
    """

    begins: int
    last: int
    style: str
    header: str
    inside: YamlBlock | None

    @property
    def lines(self) -> range:
        """The lines below the one that it begins at."""
        return range(self.begins + 1, self.last + 1)

    @property
    def is_block(self) -> bool:
        """Whether indentation makes it, so that its lines are content to their end."""
        return self.style in ("|", ">")

    @property
    def keeps(self) -> bool:
        """Whether the empty lines at its end are part of the value."""
        return self.is_block and "+" in self.header


@dataclass
class Layout:
    """What is known about the lines of a text.

    ``starts`` has the wanted column of each line that begins an entry or a value. ``texts`` are the scalars that have
    several lines; ``flows`` the first and the last line of each flow collection that has several. ``open_after`` has
    the blocks, from the outermost one, that are open after a line. ``gaps`` has the columns of white space, by line,
    between a dash and what follows it. If it is not complete, nothing is known about the indentation of some line.
    """

    lines: list[str]
    starts: dict[int, int] = field(default_factory=dict)
    texts: list[YamlText] = field(default_factory=list)
    flows: list[tuple[int, int]] = field(default_factory=list)
    open_after: dict[int, tuple[YamlBlock, ...]] = field(default_factory=dict)
    lists: list[YamlBlock] = field(default_factory=list)
    gaps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    is_complete: bool = True

    @property
    def text_lines(self) -> set[int]:
        """The lines of all texts, except those that the texts begin at."""
        return {number for text in self.texts for number in text.lines}


def read_layout(text: str) -> Layout:
    """Return the layout of a text. Raises yaml.YAMLError if it is not YAML."""
    reader = _LayoutReader(text)
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        reader.read_token(token)
    reader.read_comments(len(text))
    return reader.layout


class _LayoutReader:
    """Reads PyYAML's tokens, and the comments between them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.layout = Layout(text.split("\n"))
        self.stack: list[YamlBlock] = []
        self.flow_starts: list[int] = []  # the lines of the flow collections that are open
        self.offset = 0  # up to where the text has been read
        self.last_line = 0
        self.last_key = ""
        self.is_key = False
        self.dash: Any = None  # the token of a dash, if it was the last one

    def read_token(self, token: Any) -> None:
        if isinstance(token, (yaml.BlockMappingStartToken, yaml.BlockSequenceStartToken)):
            self._leave_indentless(token)
            self._open(token.start_mark.column, isinstance(token, yaml.BlockSequenceStartToken))
        elif isinstance(token, yaml.BlockEndToken):
            while self.stack and self.stack.pop().indentless:
                pass
        elif not isinstance(token, (yaml.StreamStartToken, yaml.StreamEndToken)):
            self._read_visible(token)
            self.layout.open_after[self.last_line] = tuple(self.stack)

    def _open(self, column: int, is_list: bool, indentless: bool = False) -> None:
        parent = self._innermost()
        wanted = 0 if parent is None else parent.wanted + STEP
        base = parent.base if indentless and parent is not None else column
        block = YamlBlock(column, wanted, base, is_list, indentless, self.last_key if is_list else "")
        self.last_key = ""
        self.stack.append(block)
        if is_list:
            self.layout.lists.append(block)

    def _innermost(self) -> YamlBlock | None:
        return self.stack[-1] if self.stack else None

    def _leave_indentless(self, token: Any) -> None:
        """End a list whose dashes are below its key, where an entry of the mapping around it begins."""
        if isinstance(token, yaml.KeyToken) and self.stack and self.stack[-1].indentless:
            self.stack.pop()

    def _read_visible(self, token: Any) -> None:
        """Read a token that has characters in the file."""
        line, column = token.start_mark.line, token.start_mark.column
        if self.dash is not None and self.dash.start_mark.line == line:
            self.layout.gaps.setdefault(line, []).append((self.dash.end_mark.column, column))
        self.dash = None
        in_flow = bool(self.flow_starts)
        if not in_flow:
            self._leave_indentless(token)
        self.read_comments(token.start_mark.index)
        if isinstance(token, yaml.BlockEntryToken) and not in_flow:
            if not self.stack or not self.stack[-1].is_list:
                self._open(column, is_list=True, indentless=True)
            self.stack[-1].entries.append(line)
            self.dash = token
        # Where anything is before the token, a text of several lines ends in this one.
        if (line > self.last_line or not self.layout.starts) and not self.layout.lines[line][:column].strip(" "):
            self._read_first_of_line(token, line, in_flow)
        if isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)):
            self.flow_starts.append(line)
        elif isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)) and in_flow:
            begins = self.flow_starts.pop()
            if not self.flow_starts and begins < line:
                self.layout.flows.append((begins, line))
        elif isinstance(token, yaml.ScalarToken):
            self._read_scalar(token)
        if not isinstance(token, yaml.AnchorToken):
            self.is_key = isinstance(token, yaml.KeyToken)
        self.offset = max(self.offset, token.end_mark.index)
        self.last_line = max(self.last_line, line)

    def _read_first_of_line(self, token: Any, line: int, in_flow: bool) -> None:
        block = self._innermost()
        explicit_key = isinstance(token, yaml.KeyToken) and token.end_mark.index > token.start_mark.index
        if explicit_key or (isinstance(token, yaml.ValueToken) and not in_flow):
            self.layout.is_complete = False  # written with a question mark
        elif block is None and not in_flow:
            self.layout.starts[line] = 0
        elif block is not None and not in_flow:
            is_entry = isinstance(token, (yaml.KeyToken, yaml.BlockEntryToken))
            self.layout.starts[line] = block.wanted if is_entry else block.wanted + STEP

    def _read_scalar(self, token: Any) -> None:
        begins, ends = token.start_mark.line, token.end_mark.line
        self.last_key = token.value if self.is_key else ""
        text = YamlText(begins, ends, token.style or "", "", self._innermost())
        if text.is_block:
            header, mark, comment = self.layout.lines[begins][token.start_mark.column + 1 :].partition("#")
            self._add_comment(mark + comment)
            if token.end_mark.column == 0:
                ends -= 1
            while "+" not in header and ends > begins and not self.layout.lines[ends].strip(" "):
                ends -= 1
            text = text._replace(last=ends, header=header)
        if text.lines:
            self.layout.texts.append(text)

    def read_comments(self, offset: int) -> None:
        """Collect the comments from where the reader is to an offset: nothing but white space is beside them."""
        if offset > self.offset:
            for line in self.text[self.offset : offset].split("\n"):
                _before, mark, comment = line.partition("#")
                self._add_comment(mark + comment)
            self.offset = offset

    def _add_comment(self, text: str) -> None:
        if text:
            self.layout.comments.append(text.rstrip(" \t"))
