# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A parameter as the pattern of matches(): the same as the literal, and refused wherever it is not a pattern."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest
from forewarn.analysis.verify.verify import verify
from forewarn.errors import InputError
from forewarn.events import Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import listed
from tools.fixtures.policy_files import compiled, loaded

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
PATTERNS = ("^web-[0-9]+$", "", "a|b", "(?i)WEB", r"\d{2}", "[^-]$", "^$", "web-1.?")
NAMES = ("web-1", "web-12", "WEB-1", "db", "")
NONE = ("web-[0-9", "(", "a**", r"\p{L}", "(?=a)", "a{2000}")


def policy(default: str | None = "^web-", *lines: str) -> str:
    more = "" if default is None else f", default: {json.dumps(default)}"
    return "\n".join(
        (
            "name: p",
            "params:",
            f"  - {{name: names, type: string{more}}}",
            *lines,
            "rule:",
            "  match:",
            "    - {id: one, condition: vm.name.matches(params.names), output: approve}",
            "    - {id: other, output: hold}",
            "",
        )
    )


def decided(policies: PolicySet, name: str) -> str:
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [listed("A")]}), "2020-07-01")
    (decision,) = policies.decide(document, Facts(NOW, Vm(name), {}))
    return decision.output


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_matches_as_the_literal_does(tmp_path: Path, pattern: str) -> None:
    for artifact in (loaded(tmp_path, policy()), loaded(tmp_path, policy(None))):
        policies = PolicySet(artifact, {"names": pattern})
        for name in NAMES:
            wanted = re.search(pattern, name) is not None
            assert decided(policies, name) == ("approve" if wanted else "hold")


@pytest.mark.parametrize("pattern", NONE)
def test_given_value_that_is_no_pattern_is_refused(tmp_path: Path, pattern: str) -> None:
    artifact = loaded(tmp_path, policy())
    with pytest.raises(InputError, match="parameter names of policy p: is not a pattern that matches"):
        PolicySet(artifact, {"names": pattern})
    with pytest.raises(InputError, match=r"parameter names.* is not a pattern that matches"):
        verify(artifact, {"names": pattern})


@pytest.mark.parametrize("pattern", NONE)
def test_default_that_is_no_pattern_is_a_finding(tmp_path: Path, pattern: str) -> None:
    (finding,) = compiled(tmp_path, policy(pattern)).findings
    assert (finding.code, finding.line, finding.column) == ("param-value", 3, 42)
    assert "is not a pattern that matches() takes" in finding.message


def test_enum_value_that_is_no_pattern_is_found(tmp_path: Path) -> None:
    text = policy().replace('"^web-"}', '"^web-", enum: ["^web-", "("]}')
    (finding,) = compiled(tmp_path, text).findings
    assert (finding.code, finding.line) == ("param-value", 3)


def test_parameter_used_as_text_may_have_any_value(tmp_path: Path) -> None:
    text = policy("(").replace("vm.name.matches(params.names)", "vm.name == params.names")
    assert compiled(tmp_path, text).findings == []
    assert decided(PolicySet(loaded(tmp_path, text)), "(") == "approve"


@pytest.mark.parametrize("expression", ["vm.name", "params.names + ''", "params.list[0]"])
def test_any_other_pattern_is_refused(tmp_path: Path, expression: str) -> None:
    text = policy("a", "  - {name: list, type: list(string), default: []}")
    text = text.replace("matches(params.names)", f"matches({expression})").replace("condition: ", 'condition: "')
    text = text.replace("), output: approve", ')", output: approve')
    (finding,) = compiled(tmp_path, text).findings
    assert finding.code == "unsupported"
    assert finding.suggestion == "write 'pattern', or params.NAME"


def test_the_solver_says_what_it_does_not_know(tmp_path: Path) -> None:
    """Any pattern may be given: nothing about it is proven. One that is given is understood."""
    artifact = loaded(tmp_path, policy())
    open_ = verify(artifact)
    assert "params.names is any pattern" in open_.assumptions
    assert any("matches(params.names)" in part for part in open_.not_understood)
    assert not verify(artifact, {"names": "^web-$"}).not_understood
