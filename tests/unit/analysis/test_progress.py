# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an analysis tells those who wait for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from forewarn.analysis.coverage.coverage import find_gaps
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.query.implies import EQUIVALENT, exceptions
from forewarn.analysis.query.query import query
from forewarn.analysis.verify.verify import verify
from forewarn.cli.main import main
from forewarn.cli.policy.output.progress_line import ProgressLine
from forewarn.compiler.policies import load_policies
from forewarn.compiler.testing.policytest import run_tests
from forewarn.policy.artifact import Artifact

POLICIES = Path(__file__).parents[3] / "policies"


@cache
def shipped(name: str) -> Artifact:
    return load_policies([POLICIES / f"{name}.yml"])


def test_each_rule_is_named_once_and_in_order() -> None:
    told: list[tuple[str, int, int]] = []
    verify(shipped("web-tier"), progress=lambda *one: told.append(one))
    rules = [one for one in told if one[2]]
    assert rules == [("rules of web-tier", number, 5) for number in range(1, 6)]


def test_every_proof_says_how_far_it_is() -> None:
    told: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        assert done >= 0
        assert not total or done <= total
        told.append(what)

    compare(shipped("observe-only"), shipped("web-tier"), progress=progress)
    assert set(told) == {"pairs of rules that differ", "changes"}
    told.clear()
    query([shipped("web-tier")], "decision == approve", progress=progress)
    exceptions(EQUIVALENT, shipped("observe-only"), shipped("web-tier"), progress=progress)
    assert set(told) == {"whether there is such an event", "groups of events"}
    told.clear()
    find_gaps(run_tests([POLICIES / "observe-only.test.yml"]).tested, progress=progress)
    assert set(told) == {"outcomes"}


def test_commands_show_it_and_erase_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown, erased = [], []
    monkeypatch.setattr(ProgressLine, "show", lambda _self, text: shown.append(text()))
    monkeypatch.setattr(ProgressLine, "clear", lambda _self: erased.append(len(shown)))
    assert main(["policy", "verify", str(POLICIES / "web-tier.yml")]) == 0
    assert "proving: 3 of 5 rules of web-tier" in shown
    assert erased[-1] == len(shown)
    assert capsys.readouterr().err == ""


def test_errors_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yml").write_text(
        "name: p\nrule:\n  match:\n"
        "    - {id: a, condition: event.DurationInSeconds < 9, output: hold}\n"
        "    - {id: b, condition: event.DurationInSeconds < 5, output: hold}\n"
    )
    main(["policy", "verify", str(tmp_path / "p.yml")])
    output = capsys.readouterr().out
    assert output.index(" error ") < output.index(" warning ")
