# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML as a tree of values with their places; no objects are constructed, and no types are guessed.

Plain scalars are read as in JSON: ``true``, ``false``, ``null`` and decimal numbers are what they look like;
everything else (``on``, ``yes``, ``0123``, ``1:30``, ``2026-01-01``) is a text.
"""

from __future__ import annotations

import abc
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..cel.types import ExpressionFinding
from ..findings import Report, SourceText
from . import scalars

try:
    import yaml
except ImportError:  # a failed import must not break the modules beside this one
    HAVE_YAML = False
else:
    HAVE_YAML = True

MOST_BYTES = 1024 * 1024
MOST_NODES = 50_000  # aliases counted in full
MOST_DEPTH = 64
_LONGEST_NUMBER = 300

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<double>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_ANCHOR = re.compile(r"&\S+\s*(?:#.*\s*)*")
_ODD_BREAKS = re.compile("[\x85\u2028\u2029]")


@dataclass(eq=False)
class YamlNode(abc.ABC):
    """``start`` and ``end`` are offsets in the file; ``size`` counts this node and all below it."""

    start: int
    end: int
    size: int = field(default=1, init=False)

    @abc.abstractmethod
    def data(self) -> Any:
        """Return the value as JSON has it."""


@dataclass(eq=False)
class Scalar(YamlNode):
    """``style`` is ``""`` for a plain scalar, else the character it begins with: ``'``, ``"``, ``|``, ``>``."""

    text: str
    style: str

    def data(self) -> Any:
        """Return the scalar's value."""
        if self.style:
            return self.text
        if self.text in _LITERALS:
            return _LITERALS[self.text]
        match = _NUMBER.fullmatch(self.text)
        if not match or len(self.text) > _LONGEST_NUMBER:
            return self.text
        if not match.group("double"):
            return int(self.text)
        value = float(self.text)
        return value if math.isfinite(value) else self.text

    @property
    def empty(self) -> bool:
        """Whether there is no value at all."""
        return not self.style and self.data() is None


@dataclass(eq=False)
class Sequence(YamlNode):
    """A list."""

    items: list[YamlNode] = field(default_factory=list)

    def data(self) -> Any:
        """Return a list."""
        return [item.data() for item in self.items]


@dataclass(eq=False)
class Mapping(YamlNode):
    """Keys are unique texts, in the order of the file."""

    keys: dict[str, Scalar] = field(default_factory=dict)
    values: dict[str, YamlNode] = field(default_factory=dict)

    def data(self) -> Any:
        """Return a dict."""
        return {key: value.data() for key, value in self.values.items()}

    def get(self, key: str) -> YamlNode | None:
        """Return the value of a key, or None."""
        return self.values.get(key)


class YamlFile:
    """A file read as YAML: its tree (None if it cannot be read) and the report that findings about it go to."""

    def __init__(self, path: str, text: str) -> None:
        self.source = SourceText(path, text)
        self.report = Report(self.source)
        self.root: YamlNode | None = None
        self._characters: dict[int, scalars.CharacterOffsets] = {}

    @classmethod
    def read(cls, path: Path) -> YamlFile:
        """Read a file. Raises InputError if it does not exist or cannot be read."""
        return cls.from_bytes(str(path), read_bytes(path))

    @classmethod
    def from_bytes(cls, path: str, content: bytes) -> YamlFile:
        """Parse the content of a file. Raises InputError if PyYAML is not installed."""
        if not HAVE_YAML:
            raise InputError("PyYAML is not installed, and policy files are YAML.", "Install it: pip install PyYAML")
        if len(content) > MOST_BYTES:
            file = cls(path, content[:MOST_BYTES].decode("utf-8-sig", errors="replace"))
            file.report.add("too-large", f"the file is larger than {MOST_BYTES // 1024} KiB", 0, 0, "split it")
            return file
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            readable = content[: error.start].decode("utf-8-sig", errors="replace")
            file = cls(path, readable)
            file.report.add("encoding", "the file is not UTF-8", len(readable), len(readable), "save it as UTF-8")
            return file
        file = cls(path, text)
        _TreeBuilder(file).build()
        return file

    def get(self, key: str) -> YamlNode | None:
        """Return the value of a key of the file, or None."""
        return value_at(self.root, key)

    def characters(self, node: Scalar) -> scalars.CharacterOffsets:
        """Return the place of each character of a scalar."""
        found = self._characters.get(node.start)
        if found is None:
            found = scalars.map_characters(self.source.text, node.start, node.end, node.style, node.text)
            self._characters[node.start] = found
        return found

    def add(self, code: str, message: str, node: YamlNode, suggestion: str = "", **more: Any) -> None:
        """Report a finding about a node."""
        end = node.end if isinstance(node, Scalar) and node.style not in ("|", ">") else node.start + 1
        self.report.add(code, message, node.start, max(end, node.start), suggestion, **more)

    def add_in(self, node: Scalar, finding: ExpressionFinding, offset: int = 0) -> None:
        """Report a finding about a part of a scalar's value, whose places count from ``offset`` in it."""
        start, end = self.range_in(node, offset + finding.start, offset + finding.end)
        self.report.add(finding.code, finding.message, start, end, finding.suggestion, finding.severity)

    def range_in(self, node: Scalar, start: int, end: int) -> tuple[int, int]:
        """Return where in the file the characters ``start`` to ``end`` of a scalar's value were written."""
        found = self.characters(node)
        return found.range(start, end) if found.starts else (node.start, node.end)

    def place(self, node: YamlNode, offset: int = 0) -> tuple[int, int]:
        """Return line and column of a node; of a scalar, those of the character at ``offset`` of its value."""
        start = node.start
        if isinstance(node, Scalar) and (node.style or offset):
            start, _end = self.range_in(node, offset, offset)
        return self.source.place(start)

    def expression(self, node: Scalar) -> str:
        """Return the value of a scalar as an expression of CEL."""
        return scalars.as_expression(self.characters(node))


def mappings(node: YamlNode | None) -> list[Mapping]:
    """Return the mappings of a list, without anything else: the schema reports that."""
    return [item for item in node.items if isinstance(item, Mapping)] if isinstance(node, Sequence) else []


def value_at(node: YamlNode | None, key: str) -> YamlNode | None:
    """Return the value of a key of a mapping; None without the key, and for any other node."""
    return node.values.get(key) if isinstance(node, Mapping) else None


def text_of(node: YamlNode | None) -> str | None:
    """Return the value of a node that is a text, None for any other node or none."""
    value = node.data() if isinstance(node, Scalar) else None
    return value if isinstance(value, str) else None


def read_bytes(path: Path) -> bytes:
    """Read a file, but only the start of a huge one. Raises InputError if it does not exist or cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _offset(mark: Any) -> int:
    """Return the offset of a mark. The parser gives every event one; its stubs say that it might not."""
    return int(mark.index)


class _UnreadableError(Exception):
    """The rest of the file cannot be read; the finding about that is reported."""


class _TreeBuilder:
    """Builds the tree from PyYAML's events: no construction of objects, and limits of depth and size."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.anchors: dict[str, YamlNode] = {}
        self.open: list[Mapping | Sequence] = []  # whose end has not been read, the innermost last
        self.total = 0

    def build(self) -> None:
        text = self.file.source.text
        odd = _ODD_BREAKS.search(text)
        if odd:
            message = f"the character U+{ord(odd.group()):04X} is a line break to some parsers"
            self._report("encoding", message, odd.start(), "")
            return
        try:
            root = self._document(yaml.parse(text, Loader=yaml.SafeLoader))
            if root is None or (isinstance(root, Scalar) and root.empty):
                raise self._unreadable("empty-file", "the file is empty", 0, "")
            self.file.root = root
        except yaml.reader.ReaderError as error:
            code = error.character if isinstance(error.character, int) else ord(error.character)
            message = f"the file has a control character, U+{code:04X}"
            self._report("encoding", message, error.position, "remove the character")
        except yaml.MarkedYAMLError as error:
            self._report_syntax(error)
        except _UnreadableError:
            pass

    def _report(self, code: str, message: str, start: int, suggestion: str, end: int | None = None) -> None:
        self.file.report.add(code, message, start, start + 1 if end is None else end, suggestion)

    def _unreadable(
        self, code: str, message: str, start: int, suggestion: str, end: int | None = None
    ) -> _UnreadableError:
        self._report(code, message, start, suggestion, end)
        return _UnreadableError()

    def _document(self, events: Iterator[Any]) -> YamlNode | None:
        root: YamlNode | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    message = "a second document begins here: one file is one document"
                    hint = "put it into a file of its own"
                    raise self._unreadable("several-documents", message, _offset(event.start_mark), hint)
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, events)
        return root

    def _node(self, event: Any, events: Iterator[Any]) -> YamlNode:
        """Return the node that an event begins, and read the events up to its end."""
        start, end = _offset(event.start_mark), _offset(event.end_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", start, end)
        self._count(1, start, end)
        if event.tag is not None:
            tag = self.file.source.text[start:].split(maxsplit=1)[0]
            message = f"{tag} is a YAML tag, and tags are not supported"
            hint = "an expression that begins with ! needs quotes around it"
            raise self._unreadable("yaml-tag", message, start, hint, start + len(tag))
        anchor = _ANCHOR.match(self.file.source.text, start)
        if event.anchor and anchor:
            start = min(anchor.end(), end)
        node: Scalar | Sequence | Mapping
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, start, end)
        else:
            node = Mapping(start, end) if isinstance(event, yaml.MappingStartEvent) else Sequence(start, end)
            if len(self.open) >= MOST_DEPTH:
                raise self._unreadable("too-large", f"more than {MOST_DEPTH} levels of nesting", start, "")
        if event.anchor:
            self.anchors[event.anchor] = node
        if not isinstance(node, Scalar):
            self.open.append(node)
            self._fill(node, events)
            self.open.pop()
        return node

    def _fill(self, node: Mapping | Sequence, events: Iterator[Any]) -> None:
        """Read the items of a list, or the entries of a mapping, up to its end."""
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                node.end = max(node.end, _offset(event.end_mark))
                return
            child = self._node(event, events)
            node.size += child.size
            if isinstance(node, Sequence):
                node.items.append(child)
                continue
            if not isinstance(child, Scalar):
                braces = isinstance(child, Mapping) and self.file.source.text[child.start - 1 : child.start] == "{"
                hint = "leave out the braces: a policy is not a template" if braces else ""
                raise self._unreadable("yaml-key", "a key must be a plain text", child.start, hint)
            value = self._node(next(events), events)
            node.size += value.size
            if child.text in node.keys:
                line, _column = self.file.source.place(node.keys[child.text].start)
                message = f"the key {child.text!r} is already at line {line}"
                self._report("duplicate-key", message, child.start, "keep one of them", child.end)
            else:
                node.keys[child.text] = child
                node.values[child.text] = value

    def _alias(self, name: str, start: int, end: int) -> YamlNode:
        node = self.anchors.get(name)
        if node is None or node in self.open:
            problem = "has no anchor before it" if node is None else "stands inside its own value"
            hint = "write the value itself; a text that begins with * needs quotes"
            raise self._unreadable("yaml-alias", f"the alias *{name} {problem}", start, hint, end)
        self._count(node.size, start, end)
        return node

    def _scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> Scalar:
        lone = next((character for character in event.value if "\ud800" <= character <= "\udfff"), None)
        if lone:
            raise self._unreadable("encoding", f"\\u{ord(lone):04x} alone is not a character", start, "", end)
        return Scalar(start, end, event.value, event.style or "")

    def _count(self, more: int, start: int, end: int) -> None:
        self.total += more
        if self.total > MOST_NODES:
            message = f"the file has more than {MOST_NODES} values, aliases counted in full"
            raise self._unreadable("too-large", message, start, "split it", end)

    def _report_syntax(self, error: yaml.MarkedYAMLError) -> None:
        text = self.file.source.text
        problem = error.problem or "the file is not YAML"
        mark = error.problem_mark or error.context_mark
        position = min(mark.index, len(text)) if mark else 0
        if text[position : position + 1] == "\t":
            self._report("tab", "a tab cannot indent YAML", position, "use spaces")
            return
        message, suggestion = problem, ""
        if "quoted scalar" in (error.context or "") and "end of stream" in problem and error.context_mark:
            position = error.context_mark.index
            message = "this quote is never closed"
            suggestion = "close it; within single quotes write '' for a quote, within double quotes \\\""
        elif "mapping values are not allowed" in problem:
            message = "a colon is not allowed here"
            suggestion = "check the indentation; a text with ': ' in it needs quotes, or a line of its own below >-"
        elif "could not find expected ':'" in problem:
            message = "a key without a colon"
            position = error.context_mark.index if error.context_mark else position
            suggestion = "write key: value, and check the indentation"
        elif "<block end>" in problem:
            message, suggestion = self._indentation_mistake(text, position)
        elif "cannot start any token" in problem:
            message = f"a value cannot begin with {text[position : position + 1]!r}"
            suggestion = "put the value in quotes"
        elif "undefined alias" in problem:
            suggestion = "put the value in quotes"
        self._report("yaml-syntax", message, position, suggestion)

    @staticmethod
    def _indentation_mistake(text: str, position: int) -> tuple[str, str]:
        line_start = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
        before = text[line_start:position].rstrip()
        if before.endswith(("'", '"')):
            return (
                "the value ends at the quote before this place",
                "put the whole expression into one pair of quotes, or on a line of its own below >-",
            )
        return "this does not fit the indentation of the lines above", "indent it like its siblings"


def short_json(value: Any, length: int = 40) -> str:
    """Write a value for a message, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else text[: length - 1] + "…"
