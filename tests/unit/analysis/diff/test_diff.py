# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy diff`` reports every event whose decision changes, and no other; the engine confirms each."""

from __future__ import annotations

import io
import json
import random
import subprocess
from pathlib import Path

import jsonschema
import pytest
from forewarn.analysis.diff.diff import Difference, compare
from forewarn.analysis.diff.kinds import ALIKE, INCOMPARABLE, LESS, MORE, NO_CHANGE, UNPROVEN
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import read_together
from forewarn.analysis.proof import Proof
from forewarn.analysis.report.decisions import SpaceDecisions, changed_classes
from forewarn.cli.main import main
from forewarn.cli.output.console import Console
from forewarn.cli.policy.diff_report import as_json, show
from forewarn.compiler.policies import load_policies
from tools.fixtures.policy_files import DIRECTORY, loaded
from tools.generators.random_events import case
from tools.judges.event_classes import EventClasses
from tools.judges.sarif import SARIF

BRIEF = """name: p
rule:
  match:
    - id: brief
      condition: event.EventType == 'Freeze' && event.DurationInSeconds >= 0 && event.DurationInSeconds < {most}
      output: approve{more}
    - {{id: rest, output: hold}}
"""
DRAIN = "\n      prepare: [{run: [/bin/drain]}]"
UNDRAIN = DRAIN + "\n      recover: [{run: [/bin/undrain]}]"


def difference(directory: Path, old: str, new: str) -> Difference:
    return compare(loaded(directory, old), loaded(directory, new))


def brief(most: int = 9, more: str = "") -> str:
    return BRIEF.format(most=most, more=more)


LIMITED = """name: p
params: [{{name: limit, type: {kind}, {limits}}}]
rule:
  match:
    - {{id: brief, condition: "{condition}", output: approve}}
    - {{id: rest, output: hold}}
"""
SECONDS = "event.DurationInSeconds >= 0 && event.DurationInSeconds < params.limit"


@pytest.mark.parametrize(
    ("kind", "condition", "old", "new", "verdict"),
    [
        ("int", SECONDS, "default: 9, min: 0, max: 60", "default: 9, min: 0, max: 900", MORE),
        ("int", SECONDS, "default: 9, min: 0, max: 900", "default: 9, min: 0, max: 60", LESS),
        ("int", SECONDS, "default: 9, enum: [9, 10]", "default: 9, enum: [9, 900]", INCOMPARABLE),
        ("int", SECONDS, "default: 9, enum: [9, 10]", "default: 9, enum: [9, 10, 11]", MORE),
        ("int", SECONDS, "default: 9, enum: [9, 10]", "default: 9, min: 9, max: 10", NO_CHANGE),
        ("int", SECONDS, "default: 9, min: 0, max: 60", "default: 9", MORE),
        ("int", SECONDS, "default: 9, min: 0, max: 60", "default: 10, min: 0, max: 60", MORE),
        ("int", SECONDS, "default: 9, min: 0, max: 60", "default: 5, min: 0, max: 90", INCOMPARABLE),
        ("int", SECONDS, "default: 9", "default: 10", MORE),
        ("int", SECONDS, "min: 0, max: 60", "min: 0, max: 50", LESS),
        ("duration", "notice < params.limit", "default: 5m, max: 10m", "default: 5m, max: 20m", MORE),
        ("double", "params.limit > 0.5", "default: 0.1, max: 0.5", "default: 0.1, max: 1.0", MORE),
        ("double", "params.limit > 0.5", "default: 0.1, max: 0.3", "default: 0.1, max: 0.5", ALIKE),
        ("bool", "params.limit", "default: false, enum: [false]", "default: false", MORE),
        ("string", "params.limit == 'a'", "default: b, enum: [b, c]", "default: b", MORE),
        ("string", "event.EventType == params.limit", "default: Freeze, enum: [Freeze]", "default: Freeze", MORE),
        ("int", "event.EventType == 'Freeze'", "default: 1, max: 5", "default: 1, max: 6", MORE),
    ],
)
def test_other_limits_of_a_parameter_are_a_change(
    tmp_path: Path, kind: str, condition: str, old: str, new: str, verdict: str
) -> None:
    texts = [LIMITED.format(kind=kind, condition=condition, limits=limits) for limits in (old, new)]
    found = difference(tmp_path, *texts)
    assert found.verdict == verdict
    assert all(part.certain for change in found.changes for part in change.parts)


def test_value_refused_by_one_version_is_a_change(tmp_path: Path) -> None:
    texts = [LIMITED.format(kind="int", condition=SECONDS, limits=f"default: 9, min: 0, max: {m}") for m in (60, 900)]
    found = difference(tmp_path, *texts)
    (more, alike) = found.changes
    (part,) = [one for one in more.parts if "limit in 61..900" in one.when]
    assert part.case
    assert part.old
    assert part.new
    assert part.case["params"]["limit"] > 60
    assert (part.old["output"], part.new["output"]) == ("hold", "approve")
    assert "do not run with" in part.old["reason"]
    assert alike.what == "hold, for another reason: a parameter that is refused → the rules"
    assert found.assumptions == (
        "params.limit is anything that its declarations allow: at least 0 and at most 60 before, "
        "at least 0 and at most 900 after; with what one of them refuses, it approves nothing",
    )


def test_another_default_is_reported_beside_other_limits(tmp_path: Path) -> None:
    texts = [
        LIMITED.format(kind="int", condition=SECONDS, limits=f"default: {default}, min: 0, max: 60")
        for default in (9, 12)
    ]
    (change,) = difference(tmp_path, *texts).changes
    (part,) = change.parts
    assert part.when.startswith("params.limit is not given and ")
    assert "DurationInSeconds in 9..11" in part.when
    assert part.case
    assert "limit" not in part.case["params"]


def test_policies_may_declare_different_limits(tmp_path: Path) -> None:
    for name, most in (("a", 60), ("b", 90)):
        text = LIMITED.format(kind="int", condition=SECONDS, limits=f"default: 9, max: {most}")
        (tmp_path / f"{name}.yml").write_text(text.replace("name: p", f"name: {name}", 1))
    together = load_policies([tmp_path / "a.yml", tmp_path / "b.yml"])
    (assumption,) = Proof([together]).params.assumptions
    assert assumption == "params.limit is anything that all of its declarations allow: at most 60; at most 90"


def test_change_behind_a_timed_rule_is_shown(tmp_path: Path) -> None:
    night = "  match:\n    - {id: night, condition: now.getHours() < 5, output: hold}\n"
    changed = difference(tmp_path, *(brief(most).replace("  match:\n", night) for most in (9, 15)))
    assert changed.verdict == MORE
    assert [part.certain for change in changed.changes for part in change.parts] == [True]


def test_a_wider_limit_is_reported_as_one_cube(tmp_path: Path) -> None:
    found = difference(tmp_path, brief(9), brief(15))
    assert found.verdict == MORE
    (change,) = found.changes
    (part,) = change.parts
    assert (change.what, part.when) == ("hold → approve", "EventType = Freeze and DurationInSeconds in 9..14")
    assert part.case
    assert part.old
    assert part.new
    assert (part.old["output"], part.new["output"]) == ("hold", "approve")
    assert 9 <= part.case["event"]["DurationInSeconds"] <= 14
    assert part.usual
    assert part.certain


def test_parameter_limit_is_reported_as_a_comparison(tmp_path: Path) -> None:
    params = "params: [{name: most, type: int, default: 9, min: 0, max: 60}]\n"
    new = brief(9).replace("name: p\n", "name: p\n" + params).replace("< 9", "< params.most")
    found = difference(tmp_path, brief(0), new)
    assert {part.when for change in found.changes for part in change.parts} >= {
        "EventType = Freeze and DurationInSeconds in 0..60 and DurationInSeconds < params.most",
    }


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (brief(15), brief(9), LESS),
        (brief(), brief(), NO_CHANGE),
        (brief(), brief().replace("id: brief", "id: short"), ALIKE),
        (brief(), brief().replace("'Freeze'", "'Reboot'"), INCOMPARABLE),
        (brief(), brief(9, DRAIN), LESS),
        (brief(9, DRAIN), brief(), MORE),
        (brief(9, DRAIN), brief(9, DRAIN.replace("drain", "empty")), INCOMPARABLE),
        (brief(9, DRAIN), brief(9, DRAIN + "\n      on_failure: approve"), MORE),
        (brief(9, DRAIN), brief(9, DRAIN + "\n      group: independent"), MORE),
        (brief(9, DRAIN), brief(9, DRAIN + "\n      prepare_within: 15m"), LESS),
        (brief(9, DRAIN + "\n      prepare_within: 15m"), brief(9, DRAIN + "\n      prepare_within: 20m"), MORE),
        (brief(9, DRAIN), brief(9, DRAIN.replace("]}", "], retry: never}")), INCOMPARABLE),
        (brief(9, UNDRAIN), brief(9, UNDRAIN + "\n      recover_when: started"), ALIKE),
        (brief(9, "\n      approver: any"), brief(), LESS),
        (brief(), brief(9, "\n      approver: witness"), MORE),
        (brief(), brief(9, "\n      notify: [{run: [/bin/tell]}]"), ALIKE),
    ],
)
def test_verdicts(old: str, new: str, verdict: str, tmp_path: Path) -> None:
    assert difference(tmp_path, old, new).verdict == verdict


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            DRAIN,
            DRAIN + "\n      prepare_within: 15m",
            "prepare: /bin/drain (60 s) → /bin/drain (60 s) [within 900 s]",
        ),
        (
            DRAIN,
            DRAIN.replace("]}", "], retry: never}"),
            "prepare: /bin/drain (60 s) → /bin/drain (60 s, once)",
        ),
        (
            DRAIN,
            DRAIN.replace("]}", "], retry: {attempts: 5, delay: 2s, max_delay: 1m}}"),
            "prepare: /bin/drain (60 s) → /bin/drain (60 s, at most 5 times, again after 2 s, pauses of at most 60 s)",
        ),
        (
            UNDRAIN.replace("undrain]", "undrain], retry: {delay: 1s}"),
            UNDRAIN.replace("undrain]", "undrain], retry: {delay: 2s}"),
            "recover: /bin/undrain (60 s, again after 1 s) → /bin/undrain (60 s, again after 2 s)",
        ),
        (
            UNDRAIN,
            UNDRAIN + "\n      recover_when: started",
            "recover: /bin/undrain (60 s) → /bin/undrain (60 s) [when started]",
        ),
    ],
)
def test_when_hooks_run_is_reported(old: str, new: str, what: str, tmp_path: Path) -> None:
    assert [change.what for change in difference(tmp_path, brief(9, old), brief(9, new)).changes] == [what]


def test_random_events_change_exactly_where_the_difference_says(tmp_path: Path) -> None:
    old = load_policies([DIRECTORY / "azure-sample.yml"])
    new = load_policies([DIRECTORY / "web-tier.yml"])
    before, after = read_together([old, new])
    (space,) = before.spaces()
    outputs = 0
    for what, effect, classes in changed_classes(SpaceDecisions(before, space), SpaceDecisions(after, space)):
        assert effect
        if "approve →" in what or "→ approve" in what:
            outputs |= classes
    engines, chance = (Engine(before.artifact, {}), Engine(after.artifact, {})), random.Random(3)
    types = {name: entry["type"] for name, entry in before.symbols.params.items()}
    located = EventClasses(before, space)
    changed = 0
    for _ in range(1_500):
        event, document, facts, params = case(space, types, chance)
        number = located.locate(event, facts, params, ())
        assert number is not None
        seen = space.witness(number)._replace(document=document, facts=facts, params=params)
        first, second = (prover.decide(seen).output for prover in engines)
        assert (first != second) == bool(outputs >> number & 1)
        changed += first != second
    assert changed > 50


def run(*command: str, cwd: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *command], cwd=cwd, check=True, capture_output=True)


def test_revisions_in_git(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    run("init", "-q", ".", cwd=tmp_path)
    (policies / "p.yml").write_text(brief(9))
    run("add", ".", cwd=tmp_path)
    run("commit", "-q", "-m", "one", cwd=tmp_path)
    (policies / "p.yml").write_text(brief(15))
    monkeypatch.chdir(tmp_path)
    assert main(["policy", "diff", "git:HEAD:policies", "policies"]) == 1
    assert "DurationInSeconds in 9..14" in capsys.readouterr().out
    assert main(["policy", "diff", "git:HEAD:policies/p.yml", "policies", "--fail-on", "none"]) == 0
    assert main(["policy", "diff", "policies", "git:HEAD:policies"]) == 0  # less permissive
    assert main(["policy", "diff", "policies", "git:HEAD:policies", "--fail-on", "any"]) == 1
    capsys.readouterr()
    for place in ("git:nowhere:policies", "git:HEAD:nothing", "git:HEAD", "git:--help:x"):
        assert main(["policy", "diff", place, "policies"]) == 2
        assert place in capsys.readouterr().err


def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yml", tmp_path / "new.yml"
    old.write_text(brief(9))
    new.write_text(brief(15))
    command = ["policy", "diff", str(old), str(new), "--format"]
    assert main([*command, "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "more-permissive"
    assert data["changes"][0]["decided_by"]["rule"] == "brief"
    assert data["changes"][0]["events"][0]["when"].endswith("9..14")
    assert main([*command, "markdown"]) == 1
    assert (
        "| hold → approve | more-permissive | EventType = Freeze and DurationInSeconds in 9..14 |"
        in capsys.readouterr().out
    )
    assert main([*command, "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert (result["level"], result["ruleId"]) == ("error", "approved")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "approved"
    assert result["properties"] == {"effect": "more-permissive", "kinds": ["approved"]}
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (new.as_uri(), 4)


def test_sarif_names_files_as_annotations_need_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("old", 9), ("new ones", 15)):
        (tmp_path / name / "web").mkdir(parents=True)
        (tmp_path / name / "web" / "p.yml").write_text(brief(most))
    monkeypatch.chdir(tmp_path)
    for place in ("new ones", "new ones/web/p.yml", str(tmp_path / "new ones" / "web")):
        assert main(["policy", "diff", "old", place, "--format", "sarif"]) == 1
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == "new%20ones/web/p.yml"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{run: [start, web.service]}", "{unit: web.service, action: start}"),
        ("{run: [unit, start, web.service]}", "{unit: web.service, action: start}"),
        ("{run: [/bin/a, b c]}", "{run: [/bin/a, b, c]}"),
        ("{run: [/bin/a, '1']}", "{run: [/bin/a, 1.0]}"),
    ],
)
def test_hooks_that_read_alike_are_two(tmp_path: Path, old: str, new: str) -> None:
    (change,) = difference(tmp_path, *(brief(9, f"\n      prepare: [{one}]") for one in (old, new))).changes
    assert len(set(change.what.removeprefix("prepare: ").split(" → "))) == 2


# The solver does not understand what is compared with the text, and no event can show that it is another.
_NEVER = "params.words.sort().map(one, one + 'x') == params.words"
_PERHAPS = """name: p
params: [{{name: words, type: list(string), default: [a]}}]
rule:
  match:
    - {{id: odd, condition: {condition}, output: {output}}}
    - {{id: sure, condition: event.EventType == "Freeze", output: {sure}}}
    - {{id: rest, output: {rest}}}
"""


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (("hold", "hold", "hold"), ("approve", "hold", "hold"), UNPROVEN),
        (("approve", "hold", "approve"), ("hold", "hold", "approve"), UNPROVEN),
        (("approve", "hold", "hold"), ("hold", "approve", "hold"), UNPROVEN),
        (("hold", "hold", "hold"), ("hold", "approve", "hold"), MORE),
    ],
)
def test_verdict_rests_on_events_the_engine_decides(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], verdict: str
) -> None:
    old, new = (
        _PERHAPS.format(condition=json.dumps(_NEVER), output=output, sure=sure, rest=rest)
        for output, sure, rest in (before, after)
    )
    found = difference(tmp_path, old, new)
    assert found.verdict == verdict
    assert bool(found.unproven) == (verdict == UNPROVEN)
    for change in found.changes:
        for part in change.parts:
            known = (part.case, part.old, part.new)
            assert (part.why == "") == part.certain == all(known) == any(known)
    stream = io.StringIO()
    show(found, Console(stream, {}))
    doubtful = [change for change in found.changes if not change.certain]
    assert stream.getvalue().count("for example") == sum(part.certain for one in found.changes for part in one.parts)
    assert stream.getvalue().count("perhaps ") == len(doubtful)
    assert as_json(found)["unproven"] == found.unproven
    if verdict == UNPROVEN:
        assert "not understood" not in found.unproven
        assert f"not proven: {found.unproven}" in stream.getvalue()
