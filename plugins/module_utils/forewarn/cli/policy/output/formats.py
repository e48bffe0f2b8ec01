# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings in every format that ``policy check`` and ``policy verify`` write: for people, programs and CI systems."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ....atomic_file import replace_file
from ....errors import InputError
from ...output.console import Console, clean, json_text
from ..common import is_same_file
from .junit import JUnitCase, JUnitOutcome, JUnitSuite, junit_xml
from .repository_paths import in_repository
from .sarif import sarif_location, sarif_log, sarif_result, sarif_rule

if TYPE_CHECKING:  # check does not need the analysis
    from ....analysis.verify.finding import ProofFinding
    from ....compiler.findings import Finding

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}  # of workflows of GitHub, by level
FORMATS = ("text", "json", "sarif", "github", "junit")
DOCUMENTATION = "https://github.com/forewarn/forewarn.azure/blob/main/docs"


class ReportedFinding(NamedTuple):
    """One finding. ``level`` is ``error``, ``warning`` or ``note``; ``fails``: the command ends with 1 because of it.

    Line and columns count from 1, in characters; ``end_column`` is the first one outside. ``text`` is what people see.
    ``suppressed`` is the reason that the policy file gives, None for a finding that counts.
    """

    path: str
    line: int
    column: int
    level: str
    code: str
    message: str
    hint: str
    text: str
    fails: bool
    end_column: int | None = None
    suppressed: str | None = None
    more: Mapping[str, Any] | None = None  # what only programs read

    @classmethod
    def of(cls, finding: Finding | ProofFinding, path: str, text: str, **more: Any) -> ReportedFinding:
        """Return a finding of the compiler or of a proof; ``more`` are the fields from ``fails`` on."""
        head = (path, finding.line, finding.column, finding.severity)
        return cls(*head, finding.code, finding.message, finding.suggestion, text, **more)

    @property
    def sentence(self) -> str:
        """The message, and below it the hint."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class FindingsReport(NamedTuple):
    """What a command found: ``meanings`` has each code that it knows, ``pages`` the page of the documentation of each.

    ``summary`` is the last line for people, ``show`` writes all that is for people; ``data`` is the content of the JSON
    object, ``schema`` its name.
    """

    command: str
    files: Sequence[str]
    findings: Sequence[ReportedFinding]
    meanings: Mapping[str, str]
    pages: Callable[[str], str]
    summary: str
    show: Callable[[Console], None]
    schema: str
    data: Mapping[str, Any]


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``, its short form ``--json``, and ``--output``."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text for people (the default), json, sarif, github (annotations of a workflow), or junit",
    )
    parser.add_argument("--json", action="store_const", dest="format", const="json", help="short for --format json")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write that to a file, and the text for people to standard output"
    )


def write_report(report: FindingsReport, style: str, output: Path | None) -> None:
    """Write a report in one of FORMATS. Raises InputError if the file is a policy or cannot be written."""
    if output is None and style == "text":
        report.show(Console(sys.stdout))
        return
    text = _WRITERS[style](report)
    if output is None:
        sys.stdout.write(text)
        return
    if any(is_same_file(output, Path(file)) for file in report.files):
        raise InputError(f"{output} is a policy: it would be overwritten", "Name another file for --output.")
    replace_file(output, text.encode("utf-8", "backslashreplace"))
    report.show(Console(sys.stdout))


def plain(show: Callable[[Console], None]) -> str:
    """Return what is written for people, without colour."""
    stream = io.StringIO()
    show(Console(stream, {}))
    return stream.getvalue()


def _sarif(report: FindingsReport) -> str:
    codes = list(report.meanings)
    rules = [sarif_rule(code, meaning, report.pages(code)) for code, meaning in report.meanings.items()]
    results = []
    for finding in report.findings:
        more: dict[str, Any] = {}
        if finding.suppressed is not None:
            more["suppressions"] = [{"kind": "inSource", "justification": finding.suppressed}]
        if finding.more is not None:
            more["properties"] = dict(finding.more)
        place = sarif_location(Path(finding.path), finding.line, finding.column, finding.end_column)
        results.append(sarif_result(codes, finding.code, finding.level, finding.sentence, place, **more))
    return json.dumps(sarif_log(rules, results), indent=2) + "\n"


def _github(report: FindingsReport) -> str:
    lines = [
        github_command(one.level, one.path, one.line, one.column, one.code, one.sentence)
        for one in report.findings
        if one.suppressed is None
    ]
    return "".join(f"{line}\n" for line in (*lines, report.summary))


def _junit(report: FindingsReport) -> str:
    names = dict.fromkeys((*report.files, *(finding.path for finding in report.findings)))
    return junit_xml([JUnitSuite(name, list(_cases(report, name))) for name in names])


def _cases(report: FindingsReport, file: str) -> Iterator[JUnitCase]:
    """Yield a case for each finding about a file, or one that has passed."""
    classname = f"policy-{report.command}.{Path(file).stem}"
    found = [finding for finding in report.findings if finding.path == file]
    if not found:
        yield JUnitCase(classname, "nothing found", file)
    for one in found:
        if one.suppressed is not None:
            outcome = JUnitOutcome("skipped", f"suppressed: {one.suppressed}", text=one.text)
        elif one.fails:
            outcome = JUnitOutcome("failure", one.message, one.code, one.text)
        else:
            outcome = JUnitOutcome("system-out", text=one.text)
        yield JUnitCase(classname, f"{one.line}:{one.column} {one.code}", file, one.line, outcomes=[outcome])


_WRITERS: Mapping[str, Callable[[FindingsReport], str]] = {
    "text": lambda report: plain(report.show),
    "json": lambda report: json_text(report.schema, report.data),
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}


def github_command(level: str, path: str, line: int, column: int, title: str, message: str) -> str:
    """Return one line. ``level`` is ``error``, ``warning`` or ``note``; the message may have several lines."""
    inside = in_repository(Path(path))
    properties = {
        "file": path if inside is None else inside.as_posix(),
        "line": str(line),
        "col": str(column),
        "title": title,
    }
    described = [f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items()]
    return f"::{_COMMANDS[level]} {','.join(described)}::{_data(message)}"


def _data(text: str) -> str:
    """Return a text with the characters escaped that would end a command, or begin another one."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
