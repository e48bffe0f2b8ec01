# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``limit`` and ``group: ready`` in a policy file: what the artifact has of them, and every likely mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.policy.artifact import load
from tools.fixtures.policy_files import HEAD, compiled


def match(directory: Path, text: str) -> dict[str, Any]:
    """Return the compiled form of a policy's only match."""
    compilation = compiled(directory, HEAD + f"    - {text}\n")
    assert compilation.findings == []
    assert compilation.artifact is not None
    (found,) = load(compilation.artifact).data["policies"][0]["rule"]["match"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("1", {"at_most": 1}),
        ("100000", {"at_most": 100_000}),
        ("2.0", {"at_most": 2}),
        ("25%", {"percent": 25}),
        ("'1%'", {"percent": 1}),
        ('"100%"', {"percent": 100}),
        ("{at_most: 3}", {"at_most": 3}),
        ("{at_most: 25%}", {"percent": 25}),
    ],
)
def test_a_limit_is_a_number_or_a_share(tmp_path: Path, written: str, limit: dict[str, int]) -> None:
    assert match(tmp_path, f"{{output: approve, limit: {written}}}")["limit"] == limit


def test_a_limit_names_its_group_by_an_expression(tmp_path: Path) -> None:
    limit = match(tmp_path, "{output: approve, limit: {at_most: 25%, group: \"vm.tags['role']\"}}")["limit"]
    assert (limit["percent"], limit["group"]["source"]) == (25, "vm.tags['role']")
    assert (limit["group"]["line"], limit["group"]["column"]) == (4, 55)
    assert limit["group"]["form"][1] == "string"


def test_without_a_limit_the_artifact_is_as_before(tmp_path: Path) -> None:
    assert "limit" not in match(tmp_path, "{output: approve}")


def test_ready_group_needs_no_preparation(tmp_path: Path) -> None:
    assert match(tmp_path, "{output: approve, group: ready}")["group"] == "ready"
    assert match(tmp_path, "{output: hold, prepare: [{run: [x]}], limit: 1}")["limit"] == {"at_most": 1}


@pytest.mark.parametrize(
    ("text", "code", "at", "says"),
    [
        ("{output: approve, limit: 0}", "out-of-range", "0", "write 'output: hold'"),
        ("{output: approve, limit: -1}", "out-of-range", "-1", "between 1 and 100000"),
        ("{output: approve, limit: 100001}", "out-of-range", "100001", "leave it out for no limit"),
        ('{output: approve, limit: "1"}', "malformed", '"1"', "write 1"),
        ("{output: approve, limit: 1.5}", "wrong-type", "1.5", "write 1, which is a whole number"),
        ("{output: approve, limit: 0.25}", "wrong-type", "0.25", "write 25% for a share"),
        ("{output: approve, limit: 0%}", "malformed", "0%", "write 'output: hold'"),
        ("{output: approve, limit: 200%}", "malformed", "200%", "a share is at most 100%"),
        ("{output: approve, limit: 25 %}", "malformed", "25 %", "write 25%"),
        ("{output: approve, limit: 25.5%}", "malformed", "25.5%", "write 25%, which is a whole number"),
        ("{output: approve, limit: 3 VMs}", "malformed", "3 VMs", "write 3"),
        ("{output: approve, limit: true}", "wrong-type", "true", "write 1 for one VM at a time"),
        ("{output: approve, limit: [1]}", "wrong-type", "[1]", "not a list"),
        ("{output: approve, limit: none}", "malformed", "none", "leave it out for no limit"),
        ("{output: approve, limit: }", "missing-value", "limit", "'limit' has no value"),
        ("{output: approve, limit: {slots: 1}}", "unknown-key", "slots", "did you mean 'at_most'?"),
        ("{output: approve, limit: {max: 1}}", "unknown-key", "max", "did you mean 'at_most'?"),
        ("{output: approve, limit: {}}", "missing-key", "{}", "add a line such as 'at_most: 1'"),
        ("{output: approve, limit: {group: vm.name}}", "missing-key", "{group", "'at_most' is missing in 'limit'"),
        ("{output: approve, limit: {at_most: 0}}", "out-of-range", "0", "write 'output: hold'"),
        ('{output: approve, limit: {at_most: "2"}}', "malformed", '"2"', "a share such as 25%, not"),
        ("{output: approve, limit: {at_most: 1, group: vm.scaleset}}", "unknown-field", "vm.sc", "scale_set?"),
        ("{output: approve, limit: {at_most: 1, group: age}}", "wrong-result-type", "age", "must be string"),
        ("{output: approve, limit: {at_most: 1, group: 5}}", "wrong-result-type", "5", "write string(5)"),
        ("{output: approve, limit: {at_most: 1, group: web-tier}}", "undeclared-name", "web-", "\"'web-tier'\""),
        ("{output: approve, limit: {at_most: 1, group: }}", "missing-value", "group", "'group' has no value"),
        ("{output: hold, limit: 1}", "no-effect", "limit", "nothing is prepared or approved here"),
        ("{rule: {match: [{output: hold}]}, limit: 1}", "not-here", "limit", "no place beside 'rule'"),
    ],
)
def test_each_mistake_has_code_place_and_remedy(tmp_path: Path, text: str, code: str, at: str, says: str) -> None:
    line = f"    - {text}"
    (finding,) = compiled(tmp_path, HEAD + line + "\n").findings
    assert (finding.code, finding.line, finding.column) == (code, 4, line.rindex(at) + 1)
    assert says in f"{finding.message} {finding.suggestion}"
    assert finding.severity == ("warning" if code == "no-effect" else "error")
