# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JUnit XML, as Jenkins, GitLab and Azure Pipelines read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitOutcome(NamedTuple):
    """What a case is besides passed. ``text`` is for people; ``type`` names the kind of problem."""

    kind: Literal["failure", "error", "skipped", "system-out"]
    message: str = ""
    type: str = ""
    text: str = ""


class JUnitCase(NamedTuple):
    """One test case; it has passed if no outcome is a failure, an error, or that it was skipped."""

    classname: str
    name: str
    file: str
    line: int | None = None
    seconds: float = 0.0
    outcomes: Sequence[JUnitOutcome] = ()


class JUnitSuite(NamedTuple):
    """The test cases of one file."""

    name: str
    cases: Sequence[JUnitCase]


def junit_xml(suites: Sequence[JUnitSuite]) -> str:
    """Return the document. It is ASCII, so that it is the same in a file and in a pipe of any locale."""
    root = ElementTree.Element("testsuites", _counts([case for suite in suites for case in suite.cases]))
    for suite in suites:
        node = ElementTree.SubElement(root, "testsuite", {"name": _xml(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            _add_case(node, case)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii") + "\n"


def _add_case(suite: ElementTree.Element, case: JUnitCase) -> None:
    attributes = {"classname": _xml(case.classname), "name": _xml(case.name), "file": _xml(case.file)}
    if case.line is not None:
        attributes["line"] = str(case.line)
    node = ElementTree.SubElement(suite, "testcase", {**attributes, "time": f"{case.seconds:.6f}"})
    for outcome in case.outcomes:
        more = {"type": outcome.type, "message": outcome.message}
        element = ElementTree.SubElement(node, outcome.kind, {name: _xml(text) for name, text in more.items() if text})
        element.text = _xml(outcome.text) or None


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    def cases_with(kind: str) -> str:
        return str(sum(any(outcome.kind == kind for outcome in case.outcomes) for case in cases))

    seconds = sum(case.seconds for case in cases)
    return {
        "tests": str(len(cases)),
        "failures": cases_with("failure"),
        "errors": cases_with("error"),
        "skipped": cases_with("skipped"),
        "time": f"{seconds:.6f}",
    }


def _xml(text: str) -> str:
    """Return the text without the characters that XML cannot hold."""
    return _NOT_XML.sub("�", text)
