# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy diff`` names the kind of every change, in every format, and fails on those that ``--fail-on`` asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.diff.diff import Difference, compare
from forewarn.analysis.diff.kinds import (
    ALIKE,
    FAIL_ON,
    FEWER,
    INCOMPARABLE,
    KINDS,
    LESS,
    MORE,
    NO_CHANGE,
    fails,
    joint_effect,
)
from forewarn.cli.main import main
from forewarn.cli.policy import diff as policy_diff
from forewarn.policy.artifact import Artifact

ROOT = Path(__file__).parents[4]
TEXT = """name: p
params: [{{name: n, type: int, default: 30, min: 0, max: {most}}}]
invariants: [{invariants}]
rule:
  match:
    - id: brief
      condition: event.EventType == 'Freeze' && (event.DurationInSeconds < 9 || params.n == 30)
      output: approve
      explanation: "'{why}'"
      prepare: [{prepare}]
{rest}
"""
CLAIM = "{name: never, expression: decision == hold || event.EventType != 'Terminate'}"
REST = "    - {id: rest, output: hold}"
BASE = {"most": "60", "invariants": CLAIM, "why": "a", "prepare": "{run: [/bin/a, --fast --now]}", "rest": REST}
HTTP = "{{http: 'https://a.example', bearer: {{credential: {}}}}}"


def diff(directory: Path, old: dict[str, str], new: dict[str, str], *options: str) -> int:
    for name, changes in (("old", old), ("new", new)):
        (directory / name).mkdir(exist_ok=True)
        (directory / name / "p.yml").write_text(TEXT.format(**{**BASE, **changes}))
    return main(["policy", "diff", str(directory / "old"), str(directory / "new"), *options])


def proven_once(function: Callable[..., Difference]) -> Callable[..., Difference]:
    """Return a ``compare`` that compares two artifacts once: options say only what becomes of the difference."""
    known: dict[tuple[str, str], Difference] = {}

    def comparing(old: Artifact, new: Artifact, *rest: Any) -> Difference:
        key = (old.digest, new.digest)
        if key not in known:
            known[key] = function(old, new, *rest)
        return known[key]

    return comparing


# Each was "no change" once, or had no word of its own: old, new, kinds, verdict, exit code.
NAMED = [
    ({}, {"most": "61"}, {"approved", "rule", "parameter-range"}, MORE, 1),  # where the old version does not run
    ({}, {"prepare": "{run: [/bin/a, --fast, --now]}"}, {"hooks-changed"}, INCOMPARABLE, 1),
    ({"prepare": HTTP.format("x")}, {"prepare": HTTP.format("y")}, {"hooks-changed"}, INCOMPARABLE, 1),
    ({}, {"invariants": ""}, {"invariant-deleted"}, FEWER, 0),
    ({}, {"why": "b"}, {"explanation"}, ALIKE, 0),
    ({}, {"rest": ""}, {"abstains"}, MORE, 1),
    ({"rest": ""}, {}, {"no-longer-abstains"}, LESS, 0),
    ({}, {"prepare": ""}, {"preparation-lost"}, MORE, 1),
    ({}, {"prepare": "", "invariants": ""}, {"preparation-lost", "invariant-deleted"}, MORE, 1),
    ({}, {"why": "b", "invariants": ""}, {"explanation", "invariant-deleted"}, FEWER, 0),
    ({}, {}, set(), NO_CHANGE, 0),
]


@pytest.mark.parametrize(("old", "new", "kinds", "verdict", "code"), NAMED)
def test_kinds_verdict_and_exit_code(
    old: dict[str, str],
    new: dict[str, str],
    kinds: set[str],
    verdict: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_diff, "compare", proven_once(compare))
    assert diff(tmp_path, old, new, "--format", "json") == code
    data = json.loads(capsys.readouterr().out)
    assert data["forewarn"] == {"schema": "difference", "version": 1}
    found = set(data["kinds"])
    assert (found, data["verdict"]) == (kinds, verdict)
    reported = {kind for one in data["changes"] for kind in one["kinds"]} | {
        one["kind"] for one in data["declarations"]
    }
    assert reported == found
    assert diff(tmp_path, old, new, "--fail-on", "none") == 0
    assert diff(tmp_path, old, new, "--fail-on", "any") == bool(kinds)
    assert diff(tmp_path, old, new, "--fail-on", ",".join(KINDS)) == bool(kinds)
    for kind in found:
        assert diff(tmp_path, old, new, "--fail-on", f"group, {kind}") == 1
    others = [kind for kind in KINDS if kind not in found]
    assert diff(tmp_path, old, new, "--fail-on", ",".join(others)) == 0
    capsys.readouterr()
    for style in ("text", "markdown", "sarif"):
        diff(tmp_path, old, new, "--format", style)
        output = capsys.readouterr().out
        assert all(kind in output for kind in found)
        if style == "sarif":
            (run,) = json.loads(output)["runs"]
            assert {kind for result in run["results"] for kind in result["properties"]["kinds"]} == found
            assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(KINDS)
            for result in run["results"]:
                assert list(KINDS)[result["ruleIndex"]] == result["ruleId"]


def test_hold_to_abstain_says_what_it_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diff(tmp_path, {}, {"rest": ""})
    assert "held by p/rest → no rule applies (another policy may approve)" in capsys.readouterr().out


def test_the_page_has_the_declarations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, {}, {"invariants": ""}, "--html", "-") == 0
    page = capsys.readouterr().out
    assert "invariant never of p is gone" in page
    assert "policies promise less" in page


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("parameter-rang", "did you mean parameter-range?"),
        ("approved,zzz", "kinds of change, which --help lists"),
        ("none,approved", "'none' stands alone"),
        ("", "'' is no kind of change"),
    ],
)
def test_fail_on_refuses_other_words(words: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        diff(tmp_path, {}, {}, "--fail-on", words)
    assert exited.value.code == 2
    assert hint in " ".join(capsys.readouterr().err.split())


def test_help_lists_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["policy", "diff", "--help"])
    text = re.sub(r"-\s+", "-", capsys.readouterr().out)
    assert [kind for kind in KINDS if kind not in text] == []


@pytest.mark.parametrize(
    ("effects", "joint"),
    [
        ([], NO_CHANGE),
        ([ALIKE], ALIKE),
        ([ALIKE, FEWER], FEWER),
        ([FEWER, MORE], MORE),
        ([FEWER, LESS, ALIKE], LESS),
        ([MORE, LESS], INCOMPARABLE),
        ([LESS, INCOMPARABLE], INCOMPARABLE),
    ],
)
def test_the_effect_of_several_changes(effects: list[str], joint: str) -> None:
    assert joint_effect(effects) == joint


@pytest.mark.parametrize(
    ("wanted", "effects"),
    [
        ("more-permissive", {MORE, INCOMPARABLE}),
        ("less-permissive", {LESS, INCOMPARABLE}),
        ("fewer-promises", {FEWER}),
        ("any", {MORE, LESS, INCOMPARABLE, FEWER, ALIKE}),
        ("none", set()),
    ],
)
def test_the_words_of_fail_on(wanted: str, effects: set[str]) -> None:
    every = (MORE, LESS, INCOMPARABLE, FEWER, ALIKE)
    assert {effect for effect in every if fails([wanted], effect, ["rule"])} == effects
    assert wanted in FAIL_ON


def test_documentation_has_every_kind_with_its_effects() -> None:
    text = (ROOT / "docs" / "verify.md").read_text()
    table = text.partition("| Kind | Meaning | Effect |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (.+) \|$", table, re.MULTILINE)
    documented = [(name, means, tuple(re.findall("`([a-z-]+)`", effects))) for name, means, effects in rows]
    assert documented == [tuple(kind) for kind in KINDS.values()]
    (said,) = re.findall(r"By default, the command fails where an effect is\s([^.]+)\.", text)
    failing = {one for kind in KINDS.values() for one in kind.effects if fails(["more-permissive"], one, [kind.name])}
    assert set(re.findall("`([a-z-]+)`", said)) == failing
