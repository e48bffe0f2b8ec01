# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy query`` and ``policy diff --forbid``: the events for which an expression holds, judged by the engine."""

from __future__ import annotations

import io
import itertools
import json
import random
import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.query.answers import NONE, NOT_PROVEN, SOME
from forewarn.analysis.query.query import query
from forewarn.cli.main import main
from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.events import LATEST_API_VERSION, Vm, format_time, parse_document
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import DIRECTORY, HEAD, SHIPPED, loaded, written
from tools.suite.sizes import SEED

NOW = datetime(2026, 6, 15, 12, tzinfo=timezone.utc)
WEB = str(DIRECTORY / "web-tier.yml")
BRIEF = (
    HEAD
    + "    - {id: brief, condition: event.DurationInSeconds < %s, output: approve}\n    - {id: rest, output: hold}\n"
)
ODD = HEAD + "    - {id: odd, condition: event.Description.size() * event.Description.size() == 3, output: approve}\n"
# Each question in CEL, and the same in Python, about an event and its decision.
QUESTIONS: dict[str, Callable[[Mapping[str, Any], Decision], bool]] = {
    "decision == approve": lambda _event, one: one.output == "approve",
    'decision == approve && event.EventType == "Reboot"': (
        lambda event, one: one.output == "approve" and event["EventType"] == "Reboot"
    ),
    'decision == approve && event.EventStatus == "Started"': (
        lambda event, one: one.output == "approve" and event["EventStatus"] == "Started"
    ),
    "decision == hold && event.DurationInSeconds == 8": (
        lambda event, one: one.output == "hold" and event["DurationInSeconds"] == 8
    ),
    "decision == approve && !prepare": lambda _event, one: one.output == "approve" and not one.prepare,
    "prepare && decision == hold": lambda _event, one: bool(one.prepare) and one.output == "hold",
    "prepare && size(event.Resources) > 1": lambda event, one: bool(one.prepare) and len(event["Resources"]) > 1,
    'event.EventType == "Preempt" && prepare == (decision == approve)': (
        lambda event, one: event["EventType"] == "Preempt" and bool(one.prepare) == (one.output == "approve")
    ),
}


def decided(artifact: Artifact, chance: random.Random) -> Iterator[tuple[Mapping[str, Any], Decision]]:
    """Yield events of every kind, and what the engine decides."""
    policies = PolicySet(artifact)
    kinds = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Hibernate")
    durations = (-1, 0, 5, 8, 9, 60, 900)
    for kind, status, duration in itertools.product(kinds, ("Scheduled", "Started"), durations):
        event = {
            "EventId": "E",
            "EventType": kind,
            "EventStatus": status,
            "ResourceType": "VirtualMachine",
            "Resources": chance.choice((["a"], ["a", "b"], ["b", "a"], ["b"])),
            "NotBefore": "" if status == "Started" else format_time(NOW + timedelta(seconds=chance.randrange(0, 3600))),
            "EventSource": chance.choice(("User", "Platform")),
            "DurationInSeconds": duration,
        }
        document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), LATEST_API_VERSION)
        (decision,) = policies.decide(document, Facts(NOW, Vm(name="a")))
        yield event, decision


@cache
def shipped(path: Path) -> tuple[Artifact, list[tuple[Mapping[str, Any], Decision]]]:
    """Return a policy, and what the engine decides of events of every kind."""
    artifact = load_policies([path])
    return artifact, list(decided(artifact, random.Random(SEED)))


# At size small a third of the pairs, with another seed another third: each question is asked of some policy.
PAIRS = [
    pytest.param(one, path, id=f"{one}-{path.stem}", marks=() if (row + column + SEED) % 3 == 0 else pytest.mark.full)
    for row, one in enumerate(QUESTIONS)
    for column, path in enumerate(SHIPPED)
]


@pytest.mark.parametrize(("expression", "path"), PAIRS)
def test_no_event_contradicts_an_answer(expression: str, path: Path) -> None:
    (artifact, events), holds = shipped(path), QUESTIONS[expression]
    found = query([artifact], expression)
    assert found.verdict in (NONE, SOME)
    assert bool(found.groups) == (found.verdict == SOME)
    for group in found.groups:
        assert group.case is not None
        document = parse_document(
            json.dumps({"DocumentIncarnation": 1, "Events": [group.case["event"]]}), LATEST_API_VERSION
        )
        vm = {name: value for name, value in group.case["vm"].items() if name != "tags"}
        now, seen = (datetime.fromisoformat(group.case[name].replace("Z", "+00:00")) for name in ("now", "first_seen"))
        facts = Facts(now, Vm(**vm), {one.key: seen for one in document.events})
        (decision,) = PolicySet(artifact, group.case["params"]).decide(document, facts)
        assert holds(group.case["event"], decision)
        assert decision.output == group.decisions[0]["output"]
    met = [event for event, decision in events if holds(event, decision)]
    assert not met or found.verdict == SOME, met[0]


def test_each_verdict_is_given_by_some_question(tmp_path: Path) -> None:
    artifact = loaded(tmp_path, Path(WEB).read_text())
    assert {query([artifact], one).verdict for one in QUESTIONS} == {NONE, SOME}


def test_words_say_whether_all_events_are_meant(tmp_path: Path) -> None:
    artifact = loaded(tmp_path, BRIEF % 9)
    (group,) = query([artifact], "decision == approve && event.EventType == 'Reboot'").groups
    assert (group.when, group.all) == ("EventType = Reboot and DurationInSeconds in -1 (unknown), 0..8", True)
    text = (BRIEF % 9).replace("event.D", "now.getSeconds() == 1 && event.D")
    (group,) = query([loaded(tmp_path, text)], "decision == approve").groups
    assert not group.all


def test_what_is_not_understood_is_not_proven(tmp_path: Path) -> None:
    found = query([loaded(tmp_path, ODD)], "decision == approve")
    assert found.verdict == NOT_PROVEN
    assert found.why
    assert all(group.case is None for group in found.groups)


def test_parameters_are_given_or_vary(tmp_path: Path) -> None:
    artifact = loaded(tmp_path, Path(WEB).read_text())
    expression = "decision == approve && !prepare && event.DurationInSeconds >= params.tolerable_freeze"
    assert query([artifact], expression).verdict == NONE
    longer = "decision == approve && !prepare && event.DurationInSeconds > 8"
    assert query([artifact], longer).verdict == SOME
    assert query([artifact], longer, {"tolerable_freeze": 9}).verdict == NONE


def test_events_without_a_value_are_named(tmp_path: Path) -> None:
    artifact = loaded(tmp_path, BRIEF % 9)
    expression = "decision == hold && event.NotBefore > now"
    found = query([artifact], expression)
    assert found.no_value == "NotBefore is blank"
    assert query([artifact], f"has(event.NotBefore) && {expression}").no_value == ""


@pytest.mark.parametrize(
    ("old", "new", "expression", "verdict"),
    [
        (9, 15, "was == hold && decision == approve", SOME),
        (9, 15, "was == approve && decision == hold", NONE),
        (15, 9, "was == hold && decision == approve", NONE),
        (9, 15, "was != decision && event.DurationInSeconds == 14", SOME),
        (9, 15, "was != decision && event.DurationInSeconds == 15", NONE),
        (9, 9, "was != decision", NONE),
    ],
)
def test_a_change_is_forbidden(old: int, new: int, expression: str, verdict: str, tmp_path: Path) -> None:
    versions = [loaded(tmp_path, BRIEF % old), loaded(tmp_path, BRIEF % new)]
    found = query(versions, expression)
    assert found.verdict == verdict
    for group in found.groups:
        assert {one["output"] for one in group.decisions} == {"approve", "hold"}
        assert "DurationInSeconds" in group.when


@pytest.mark.parametrize(
    ("expression", "change", "message"),
    [
        ("decision == aprove", False, "  |             ^^^^^^"),
        ("was == hold", False, "there is no variable was"),
        ("decision", False, "this must be bool"),
        ("was == hold && now == approve", True, "the new decision is called 'decision'"),
    ],
)
def test_a_mistake_is_shown_with_a_caret(expression: str, change: bool, message: str, tmp_path: Path) -> None:
    artifact = loaded(tmp_path, BRIEF % 9)
    with pytest.raises(InputError) as caught:
        query([artifact, artifact] if change else [artifact], expression)
    assert message in caught.value.message
    assert "^" in caught.value.message


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 0), (("--expect", "some"), 0), (("--expect", "none"), 1)],
)
@pytest.mark.parametrize("some", [True, False])
def test_exit_codes(options: tuple[str, ...], code: int, some: bool, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "Reboot" if some else "Preempt"
    expected = code if some or not options else 1 - code
    expression = f'decision == approve && event.EventType == "{kind}"'
    assert main(["policy", "query", WEB, expression, *options]) == expected
    said = capsys.readouterr().out
    assert ("it is proven that the expression holds for none" in said) == (not some)
    assert main(["policy", "query", WEB, expression, *options, "--json"]) == expected
    content = json.loads(capsys.readouterr().out)
    assert content["forewarn"] == {"schema": "query", "version": 1}
    assert content["verdict"] == ("some" if some else "none")


def test_what_is_not_proven_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = written(tmp_path, ODD)
    assert main(["policy", "query", str(path), "decision == approve"]) == 1
    assert "not proven" in capsys.readouterr().out


def test_the_command_repeats_the_decision(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["policy", "query", WEB, "decision == approve && !prepare"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  repeat: ")]
    _echo, event, _pipe, _forewarn, *arguments = shlex.split(line.removeprefix("  repeat: "))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"][0]["policies"][0]["output"] == "approve"


@pytest.mark.parametrize("form", ["text", "json", "markdown", "sarif"])
def test_forbidden_changes_fail_in_every_format(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new").mkdir()
    (old,), (new,) = written(tmp_path, BRIEF % 9), written(tmp_path / "new", BRIEF % 15)
    command = ["policy", "diff", str(old), str(new), "--fail-on", "none", "--format", form]
    allowed, forbidden = "was == approve && decision == hold", "was == hold && decision == approve"
    assert main([*command, "--forbid", allowed]) == 0
    assert "forbidden:" not in capsys.readouterr().out
    assert main([*command, "--forbid", allowed, "--forbid", forbidden]) == 1
    said = capsys.readouterr().out
    assert "9..14" in said
    if form == "json":
        assert [one["verdict"] for one in json.loads(said)["forbidden"]] == ["none", "some"]
    elif form == "sarif":
        (run,) = json.loads(said)["runs"]
        (result,) = [one for one in run["results"] if one["ruleId"] == "forbidden-change"]
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "forbidden-change"
    else:
        assert "forbidden" in said.lower()
