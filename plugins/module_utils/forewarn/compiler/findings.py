# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: the mistakes in a file, their places and hints. One form for people, one for programs."""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ..texts import escaped
from .cel.types import Severity

# Every code of a finding about a file, and its meaning; expression.CODES has those about expressions.
CODES = {
    # the file as YAML
    "encoding": "The file is not UTF-8, or has a character that does not belong in a text file.",
    "too-large": "The file is larger, or nested deeper, than a reviewer can follow.",
    "empty-file": "The file is empty.",
    "yaml-syntax": "The file is not YAML.",
    "tab": "A tab indents a line.",
    "duplicate-key": "A key appears twice in one mapping.",
    "several-documents": "The file has more than one YAML document.",
    "yaml-tag": "A YAML tag, often an expression that begins with ! and has no quotes.",
    "yaml-alias": "A YAML alias without an anchor, or within it.",
    "yaml-key": "A key that is not plain text.",
    # the file against its schema
    "unknown-key": "A key that does not exist here.",
    "missing-key": "A key that must be here.",
    "missing-value": "A key without a value.",
    "wrong-type": "A value of the wrong type.",
    "wrong-value": "A value that is not allowed.",
    "malformed": "A malformed name, duration, unit or URL.",
    "too-short": "An empty list or text where something is needed.",
    "alternatives": "Two keys that exclude each other.",
    "not-here": "A key that is not allowed beside a nested rule, in a notify hook, or beside a kind of hook.",
    # the policy
    "duplicate-name": "Two parameters, variables, invariants or tests with one name.",
    "import-missing": "An import whose file, commit or collection cannot be found or read.",
    "import-path": "An import by an absolute path, or by one that leads out of its repository or collection.",
    "import-clash": "A name that two libraries declare, or that a file imports and declares itself.",
    "import-cycle": "Libraries that import each other.",
    "not-a-library": "An import of a file that is no library.",
    "unused-import": "An import of which a policy uses nothing.",
    "duplicate-id": "Two rules with one id in the same place.",
    "duplicate-policy": "Two policies with one name.",
    "duplicate-library": "Two libraries with one name.",
    "unreachable": "A rule after one that always decides.",
    "never-applies": "A rule whose condition is false.",
    "known-value": "An extra value that is known already, declared twice, or differs from a known one only in case.",
    "param-value": "A default or limit that does not fit the parameter's type, or its other limits.",
    "param-conflict": "A parameter that two policies declare with different types.",
    "param-limits": "A parameter that two policies declare with different limits.",
    "param-default": "A parameter that two policies declare with different defaults.",
    "command": "A command that the system cannot run as written.",
    "cmd-argument": "An argument of a .cmd or .bat that cmd.exe would change, or take for more than one word.",
    "wrong-system": "Something that the system that --target names does not have, such as a kind of hook.",
    "option-value": "An option of a hook whose value its kind cannot use.",
    "timeout-range": "A timeout of 0, or of more than a day.",
    "out-of-range": "A number or duration beyond its limits.",
    "nothing-to-recover": "Recover hooks of a match that prepares nothing, without recover_when: started.",
    "limit-differs": "A group that two policies limit differently.",
    "unencrypted": "A secret that would cross the network unencrypted.",
    "no-expression": "An expression where texts are taken as they are written.",
    "no-effect": "A key that changes nothing here.",
    # tests
    "test-policy": "A test file whose policy cannot be found.",
    "test-input": "An input that is not an event, time, duration or parameter.",
    "test-steps": "Steps out of order.",
    "test-decision": "A decision for an event that the document does not have, or for one event twice.",
    "test-rule": "A rule or policy that the tested policies do not have.",
    "engines-differ": "An expression that cel-python and forewarn evaluate differently, for the event of a test.",
}

_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
_LINE_BREAK = re.compile("\r\n|\r|\n")
# A longer line is shown in part: in a file of one huge line, each finding would fill a log.
_LONGEST_LINE = 200
_BEFORE = 80  # characters of such a line before the place
_LONGEST_MESSAGE = 600  # it may quote a name or a text that is very long


@dataclass(frozen=True)
class Finding:
    """One mistake. Lines and columns count from 1, in characters; ``end_column`` is the first one past the range.

    ``source_line`` is the line's text from ``source_column`` on: all of it, unless it is very long.
    """

    path: str
    line: int
    column: int
    end_column: int
    severity: Severity
    code: str
    message: str
    suggestion: str = ""
    source_line: str = ""
    source_column: int = 1

    @property
    def where(self) -> str:
        """The place, in the form that compilers use."""
        return f"{self.path}:{self.line}:{self.column}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for ``--json``."""
        return asdict(self)


class SourceText:
    """A file's text, which maps offsets (in characters, from 0) to lines and columns."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def start_of(self, number: int) -> int:
        """Return the offset at which a line, counted from 1, begins."""
        return self._starts[number - 1]

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line break."""
        start, end = self._line(number)
        return self.text[start:end]

    def excerpt(self, number: int, column: int) -> tuple[str, int]:
        """Return the text of a line and 1; for a very long line, the part around a column and its first column."""
        start, end = self._line(number)
        if end - start <= _LONGEST_LINE:
            return self.text[start:end], 1
        first = max(0, column - 1 - _BEFORE)
        return self.text[start + first : min(end, start + first + _LONGEST_LINE)], first + 1

    def _line(self, number: int) -> tuple[int, int]:
        start = self._starts[number - 1]
        if number == len(self._starts):
            return start, len(self.text)
        end = self._starts[number] - 1
        return start, end - (self.text[end - 1 : end + 1] == "\r\n")


@dataclass
class Report:
    """Collects the findings of one file."""

    source: SourceText
    findings: list[Finding] = field(default_factory=list)
    _seen: set[Finding] = field(default_factory=set)

    def add(
        self, code: str, message: str, start: int, end: int, suggestion: str = "", severity: Severity = "error"
    ) -> None:
        """Add a finding about the characters ``start`` to ``end`` (offsets in the file)."""
        line, column = self.source.place(start)
        end_line, end_column = self.source.place(max(start, end))
        if end_line != line:
            end_column = len(self.source.line(line)) + 1
        if len(message) > _LONGEST_MESSAGE:
            message = message[: _LONGEST_MESSAGE - 1] + "…"
        text, first = self.source.excerpt(line, column)
        place = (self.source.path, line, column, max(end_column, column + 1))
        finding = Finding(*place, severity, code, message, suggestion, text, first)
        if finding not in self._seen:  # an alias repeats its anchor's findings
            self._seen.add(finding)
            self.findings.append(finding)


class Styler(Protocol):
    """The part of ``cli.output.console.Console`` that colours a finding."""

    def style(self, text: str, *styles: str) -> str:
        """Return the text in the named styles."""


def sort_findings(findings: Iterable[Finding], paths: Sequence[str] = ()) -> list[Finding]:
    """Sort by file (in the order of ``paths``, then by name), then by place."""
    rank = {path: number for number, path in enumerate(paths)}
    return sorted(
        findings,
        key=lambda one: (rank.get(one.path, len(rank)), one.path, one.line, one.column, one.code, one.message),
    )


def blocks(finding: Finding) -> bool:
    """Return whether a finding keeps a policy from being compiled."""
    return finding.severity == "error"


def fails(finding: Finding) -> bool:
    """Return whether a finding makes a command that looks for mistakes fail: a note does not."""
    return finding.severity != "note"


def render(finding: Finding, console: Styler | None = None) -> list[str]:
    """Return the lines that show a finding: its place and message, the source line, a caret, and the hint."""

    def style(text: str, *styles: str) -> str:
        return console.style(text, *styles) if console else escaped(text, keep="\n\t")

    colour = _COLOURS[finding.severity]
    lines = [
        f"{style(finding.where, 'bold')}: {style(finding.severity, 'bold', colour)} "
        f"{style(finding.code, 'bold')} {style(finding.message)}"
    ]
    if finding.source_line.strip():
        first = finding.source_column
        before = escaped(finding.source_line[: finding.column - first], keep="\t")
        marked = escaped(finding.source_line[finding.column - first : finding.end_column - first])
        caret = "^" * max(1, _width(marked))
        lines.append("  | " + style(finding.source_line).replace("\\x09", "\t"))
        # Tabs are repeated, so that the caret stands below its text however wide the terminal makes them.
        lines.append("  | " + "".join("\t" if c == "\t" else " " * _width(c) for c in before) + style(caret, colour))
    if finding.suggestion:
        lines.append("  " + style("hint:", "cyan") + " " + style(finding.suggestion))
    return lines


def _width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width
