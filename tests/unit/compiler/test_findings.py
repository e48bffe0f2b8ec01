# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How findings are shown, and their places in a text."""

from __future__ import annotations

import json

import pytest
from forewarn.compiler.findings import Report, SourceText, render
from forewarn.compiler.yaml.tree import MOST_BYTES, YamlFile


def report_of(text: str, mark: str) -> Report:
    """Return a report with one finding, about the first ``mark`` of a text."""
    report = Report(SourceText("a.yml", text))
    start = text.index(mark)
    report.add("syntax", "odd", start, start + len(mark))
    return report


def test_the_caret_stands_below_what_is_wrong() -> None:
    lines = render(report_of("a: 1\r\nb:\t\N{GRINNING FACE}evnt\r\nc: 1\r\n", "evnt").findings[0])
    assert lines == ["a.yml:2:5: error syntax odd", "  | b:\t\N{GRINNING FACE}evnt", "  |   \t  ^^^^"]


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n"])
def test_a_line_is_what_stands_between_line_breaks(line_break: str) -> None:
    source = SourceText("a.yml", line_break.join(["a", "", "bc", ""]))
    assert [source.line(number) for number in (1, 2, 3, 4)] == ["a", "", "bc", ""]


@pytest.mark.parametrize(("before", "after"), [(0, 10_000), (10_000, 0), (5_000, 5_000), (79, 5_000)])
def test_long_line_is_cut_around_the_finding(before: int, after: int) -> None:
    finding = report_of("x\n" + "-" * before + "evnt" + "+" * after, "evnt").findings[0]
    assert finding.column == before + 1
    assert finding.source_line[finding.column - finding.source_column :].startswith("evnt")
    shown, caret = render(finding)[1:3]
    assert len(shown) <= 210
    assert shown[caret.index("^") :].startswith("evnt")
    assert caret.count("^") == 4


def test_caret_of_a_long_range_ends_with_line() -> None:
    shown, caret = render(report_of("-" * 100 + "e" * 10_000, "e" * 10_000).findings[0])[1:3]
    assert len(shown) == len(caret) <= 210


def test_many_findings_in_one_long_line_stay_small() -> None:
    file = YamlFile.from_bytes("a.yml", ("{" + "a: 1, " * 8000 + "b: 1}").encode())
    assert len(file.report.findings) == 7999
    assert len(json.dumps([finding.as_dict() for finding in file.report.findings])) < 10_000_000


def test_oversized_file_is_not_reported_as_badly_encoded() -> None:
    file = YamlFile.from_bytes("a.yml", ("# " + "é" * MOST_BYTES).encode()[: MOST_BYTES + 1])
    assert [finding.code for finding in file.report.findings] == ["too-large"]


def test_a_message_that_quotes_something_endless_is_cut() -> None:
    report = Report(SourceText("a.yml", "x"))
    report.add("syntax", "CEL does not allow " + "x" * 100_000, 0, 1)
    assert len(report.findings[0].message) == 600
