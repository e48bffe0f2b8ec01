# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the lines of a YAML file hang together: which begins an entry of what, and which belong to a text above them.

The text has line ends of LF alone. Lines and columns count from 0.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

with suppress(ImportError):  # a failed import must not break the modules beside this one
    import yaml

STEP = 2  # spaces by which each level is indented


@dataclass(eq=False)
class YamlBlock:
    """A mapping or a list that indentation makes. ``column`` is that of its entries, ``wanted`` the one they get.

    ``base`` is the column that PyYAML counts the indentation of a block scalar from. ``key`` is that of a list, empty
    if it has none; ``entries`` are the lines of its dashes.
    """

    column: int
    wanted: int
    base: int
    is_list: bool
    indentless: bool = False
    key: str = ""
    entries: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class YamlText:
    """The lines ``first`` to ``last`` of a scalar below the line that it begins at, and the block that it is in.

    ``style`` is empty for a plain one, else its first character; ``header`` is what follows that of a block scalar.
    """

    begins: int
    first: int
    last: int
    style: str
    header: str
    inside: YamlBlock | None

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

    ``starts`` has the block and the wanted column of each line that begins an entry or a value. ``texts`` are the
    scalars that have further lines; ``flows`` the first and the last line of each flow collection that has several, and
    the block that it is in. ``open_after`` has the blocks, from the outermost one, that are open after a line. ``gaps``
    has the columns of white space, by line, between a dash and what follows it. Where not ``sure``, nothing is known
    about the indentation of some line.
    """

    lines: list[str]
    starts: dict[int, tuple[YamlBlock | None, int]] = field(default_factory=dict)
    texts: list[YamlText] = field(default_factory=list)
    flows: list[tuple[int, int, YamlBlock | None]] = field(default_factory=list)
    open_after: dict[int, tuple[YamlBlock, ...]] = field(default_factory=dict)
    lists: list[YamlBlock] = field(default_factory=list)
    gaps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    sure: bool = True


def read_layout(text: str) -> Layout:
    """Return the layout of a text. Raises yaml.YAMLError if it is not YAML."""
    reader = _LayoutReader(text)
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        reader.token(token)
    reader.comments_until(len(text))
    return reader.layout


class _LayoutReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.layout = Layout(text.split("\n"))
        self.stack: list[YamlBlock] = []
        self.flow_starts: list[int] = []  # the lines of the flow collections that are open
        self.read = 0  # up to where the text has been read
        self.last_line = 0
        self.last_key = ""
        self.is_key = False
        self.dash: Any = None  # the token of a dash, if it was the last one

    def token(self, token: Any) -> None:
        line, column = token.start_mark.line, token.start_mark.column
        if isinstance(token, (yaml.BlockMappingStartToken, yaml.BlockSequenceStartToken)):
            self._leave_indentless(token)
            self._open(column, isinstance(token, yaml.BlockSequenceStartToken))
        elif isinstance(token, yaml.BlockEndToken):
            while self.stack and self.stack.pop().indentless:
                pass
        elif not isinstance(token, (yaml.StreamStartToken, yaml.StreamEndToken)):
            self._written(token, line, column)
            self.layout.open_after[self.last_line] = tuple(self.stack)

    def _open(self, column: int, is_list: bool, indentless: bool = False) -> None:
        parent = self.stack[-1] if self.stack else None
        wanted = 0 if parent is None else parent.wanted + STEP
        base = parent.base if indentless and parent is not None else column
        block = YamlBlock(column, wanted, base, is_list, indentless, self.last_key if is_list else "")
        self.last_key = ""
        self.stack.append(block)
        if is_list:
            self.layout.lists.append(block)

    def _leave_indentless(self, token: Any) -> None:
        """End a list whose dashes are below its key, where an entry of the mapping around it begins."""
        if isinstance(token, yaml.KeyToken) and self.stack and self.stack[-1].indentless:
            self.stack.pop()

    def _written(self, token: Any, line: int, column: int) -> None:
        """Read a token that stands in the file."""
        start, end = token.start_mark.index, token.end_mark.index
        if self.dash is not None and self.dash.start_mark.line == line:
            self.layout.gaps.setdefault(line, []).append((self.dash.end_mark.column, column))
        self.dash = None
        in_flow = bool(self.flow_starts)
        if not in_flow:
            self._leave_indentless(token)
        self.comments_until(start)
        if isinstance(token, yaml.BlockEntryToken) and not in_flow:
            if not self.stack or not self.stack[-1].is_list:
                self._open(column, is_list=True, indentless=True)
            self.stack[-1].entries.append(line)
            self.dash = token
        if line > self.last_line or not self.layout.starts:
            self._first_of_line(token, line, column, in_flow)
        if isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)):
            self.flow_starts.append(line)
        elif isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)) and in_flow:
            begins = self.flow_starts.pop()
            if not self.flow_starts and begins < line:
                self.layout.flows.append((begins, line, self._innermost()))
        if isinstance(token, yaml.ScalarToken):
            self._scalar(token)
        if isinstance(token, yaml.KeyToken):
            self.is_key = True
        elif not isinstance(token, yaml.AnchorToken):
            self.is_key = False
        self.read = max(self.read, end)
        self.last_line = max(self.last_line, line)

    def _innermost(self) -> YamlBlock | None:
        return self.stack[-1] if self.stack else None

    def _first_of_line(self, token: Any, line: int, column: int, in_flow: bool) -> None:
        if self.layout.lines[line][:column].strip(" "):
            return  # a text of several lines ends in this one
        block = self._innermost()
        if isinstance(token, yaml.KeyToken) and token.end_mark.index > token.start_mark.index:
            self.layout.sure = False  # written with a question mark
        elif isinstance(token, yaml.ValueToken) and not in_flow:
            self.layout.sure = False
        elif in_flow:
            return
        elif block is None:
            self.layout.starts[line] = (None, 0)
        elif isinstance(token, (yaml.KeyToken, yaml.BlockEntryToken)):
            self.layout.starts[line] = (block, block.wanted)
        else:
            self.layout.starts[line] = (block, block.wanted + STEP)

    def _scalar(self, token: Any) -> None:
        begins, ends = token.start_mark.line, token.end_mark.line
        style = token.style or ""
        header = ""
        if self.is_key:
            self.last_key = token.value
        else:
            self.last_key = ""
        if style in ("|", ">"):
            line = self.layout.lines[begins]
            header, mark, comment = line[token.start_mark.column + 1 :].partition("#")
            if mark:
                self._comment(mark + comment)
            if token.end_mark.column == 0:
                ends -= 1
            while "+" not in header and ends > begins and not self.layout.lines[ends].strip(" "):
                ends -= 1
        if ends > begins:
            self.layout.texts.append(YamlText(begins, begins + 1, ends, style, header, self._innermost()))

    def comments_until(self, offset: int) -> None:
        """Collect the comments from where the reader is to an offset: nothing but white space is beside them."""
        if offset > self.read:
            for line in self.text[self.read : offset].split("\n"):
                _before, mark, comment = line.partition("#")
                if mark:
                    self._comment(mark + comment)
            self.read = offset

    def _comment(self, text: str) -> None:
        self.layout.comments.append(text.rstrip(" \t"))
