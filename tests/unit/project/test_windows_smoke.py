# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smoke test for a real Windows, as far as it can be judged here: its policy, and what it must never do."""

from __future__ import annotations

import json
import re
from pathlib import Path

from forewarn.compiler.policies import compile_policies
from forewarn.policy.artifact import load


def test_its_artifact_is_that_of_its_policy(repository: Path) -> None:
    """A VM has no compiler. Compile it again: forewarn policy compile smoke-policy.yml -o smoke-policy.json"""
    place = repository / "tests" / "windows"
    kept = json.loads((place / "smoke-policy.json").read_text())
    load(kept)
    compiled = compile_policies([place / "smoke-policy.yml"]).artifact
    assert compiled is not None
    assert [policy["rule"] for policy in kept["policies"]] == [policy["rule"] for policy in compiled["policies"]]


def test_it_asks_nobody_but_the_emulator(repository: Path) -> None:
    script = (repository / "tests" / "windows" / "smoke.ps1").read_text()
    assert "169.254" not in script
    assert {*re.findall(r"http://[\w.\\]+", script)} == {"http://127.0.0.1", "http://127\\.0\\.0\\.1"}
    assert "$env:FOREWARN_ENDPOINT = 'http://127.0.0.1:9'" in script


def test_it_removes_what_it_made(repository: Path) -> None:
    """Its service and its directory are its own, never those of a runner that is installed."""
    script = (repository / "tests" / "windows" / "smoke.ps1").read_text()
    assert re.search(r"finally \{\s+Remove-All\s+\}", script)
    assert "$name = 'forewarn-smoke'" in script
    assert not re.search(r"(Stop-Service|Start-Service|New-Service|delete) '?forewarn\b", script)
