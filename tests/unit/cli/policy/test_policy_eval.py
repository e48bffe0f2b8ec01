# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy eval``: values of every type, the values of their parts, errors with a caret, and bad usage."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tools.fixtures.events import MIGRATION
from tools.sites.commands import in_process

POLICY = """\
name: p
params:
  - {name: limit, type: int, default: 9, min: 0, max: 60}
  - {name: pause, type: duration, default: 90s}
extra_values: {EventType: [Hibernate]}
rule:
  variables:
    - name: brief
      expression: event.DurationInSeconds >= 0 && event.DurationInSeconds < params.limit
    - name: freezes
      expression: events.filter(one, one.EventType == "Freeze")
  match:
    - id: nested
      condition: variables.brief
      rule:
        variables:
          - {name: inner, expression: variables.freezes.size()}
          - {name: twice, expression: "1"}
        match:
          - output: approve
    - id: other
      condition: leader
      rule:
        variables:
          - {name: twice, expression: "2"}
          - {name: more, expression: variables.twice + 1}
        match:
          - output: hold
"""
DURATION = "event.DurationInSeconds"
evaluate_at = partial(in_process, "policy", "eval", "--now", "2022-04-11T22:20:00Z")


def evaluate(expression: str, *more: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return evaluate_at(expression, *more, stdin=stdin)


def value(expression: str, *more: object, stdin: str = "") -> str:
    result = evaluate(expression, *more, stdin=stdin)
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout.splitlines()[0]


def evaluations(expression: str, *more: object, stdin: str = "") -> Any:
    """Return the evaluations of the JSON object."""
    return json.loads(evaluate(expression, *more, "--json", stdin=stdin).stdout)["evaluations"]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "p.yml").write_text(POLICY)
    return tmp_path / "p.yml"


@pytest.mark.parametrize(
    ("expression", "text", "data"),
    [
        ("1 + 1", "2", 2),
        ("2u * 3u", "6", 6),
        ("9223372036854775807", "9223372036854775807", "9223372036854775807"),
        ("0.5", "0.5", 0.5),
        ("1.0 / 0.0", "inf", "inf"),
        ("true || false", "true", True),
        ("'a\\n' + 'ü'", '"a\\nü"', "a\nü"),
        ("b'\\x00a'", 'b"\\u0000a"', "\x00a"),
        ("null", "null", None),
        ("duration('90s')", "90s", "90s"),
        ("now", "2022-04-11T22:20:00Z", "2022-04-11T22:20:00Z"),
        ("[1, 2].map(x, duration(string(x) + 's'))", "[1s, 2s]", ["1s", "2s"]),
        ("{'a': [now]}", '{"a": [2022-04-11T22:20:00Z]}', {"a": ["2022-04-11T22:20:00Z"]}),
        ("{1: true}", "{1: true}", {"1": True}),
        ("[]", "[]", []),
        ("[dyn(1), dyn('a'), dyn(now)]", '[1, "a", 2022-04-11T22:20:00Z]', [1, "a", "2022-04-11T22:20:00Z"]),
        ("{'a': dyn(b'b')}", '{"a": b"b"}', {"a": "b"}),
        ("[optional.of(duration('1s'))]", "[optional.of(1s)]", [["1s"]]),
        ("optional.none()", "optional.none()", []),
        (
            "vm",
            '{name: "web_0", zone: "2", tags: {"role": "web"}}',
            {"name": "web_0", "zone": "2", "tags": {"role": "web"}},
        ),
    ],
)
def test_values_of_every_type(expression: str, text: str, data: Any) -> None:
    facts = ("--vm-name", "web_0", "--vm", "zone=2", "--vm", "tags.role=web")
    assert value(expression, *facts) == text
    written = json.loads(evaluate(expression, *facts, "--json").stdout)
    assert written["forewarn"] == {"schema": "evaluation", "version": 1}
    assert written["now"] == "2022-04-11T22:20:00+00:00"
    (one,) = written["evaluations"]
    assert (one["event"], one["value"], one["error"]) == (None, data, None)


def test_a_long_value_is_not_cut_off() -> None:
    text = "x" * 1000
    assert value(f"'{text}'") == f'"{text}"'
    assert value(f"[b'{text}']") == f'[b"{text}"]'


def test_an_event_and_the_values_of_the_parts() -> None:
    condition = 'event.EventType == "Freeze" && event.DurationInSeconds < 9'
    given = ("--event", "EventType=Freeze,DurationInSeconds=5")
    result = evaluate(condition, *given)
    assert result.returncode == 0
    assert result.stdout == (
        'true\n  event.EventType = "Freeze"\n  event.EventType == "Freeze" = true\n'
        "  event.DurationInSeconds = 5\n  event.DurationInSeconds < 9 = true\n"
    )
    (one,) = evaluations(condition, *given)
    assert one["event"]["DurationInSeconds"] == 5
    assert one["values"][2] == {"expression": "event.DurationInSeconds", "value": "5"}


def test_the_fields_of_an_event() -> None:
    given = ("--vm-name", "web_0", "--event", "EventType=Reboot")
    assert value("notice", *given) == "900s"
    assert value("[affects_me, leader]", *given) == "[true, true]"
    assert value("event.EventStatus", *given) == '"Scheduled"'
    assert value("has(event.DurationInSeconds) || has(event.EventSource)", *given) == "false"
    assert value("notice", *given, "--event", "NotBefore=2022-04-11T22:30:00Z") == "600s"
    assert value("notice", *given, "--event", "NotBefore=Mon, 11 Apr 2022 22:26:58 GMT,EventSource=User") == "418s"
    assert (
        value("event.Resources", *given, "--event", "Resources=web_1, web_0,EventSource=User") == '["web_1", "web_0"]'
    )
    assert value("has(event.NotBefore)", *given, "--event", "EventStatus=Started") == "false"
    assert value("has(event.NotBefore)", *given, "--event", "NotBefore=null") == "false"
    assert value("age", *given, "--first-seen", "2022-04-11T22:19:00Z") == "60s"
    assert value("event.Description", *given, "--event", "Description=a=b, c") == '"a=b, c"'


def test_a_document_and_one_of_its_events(tmp_path: Path) -> None:
    other = {**MIGRATION, "EventId": "B", "EventType": "Reboot"}
    document = json.dumps({"DocumentIncarnation": 2, "Events": [MIGRATION, other]})
    result = evaluate("event.EventType", "--document", "-", stdin=document)
    assert result.stdout == (
        f'event {MIGRATION["EventId"]}  Freeze Scheduled\n"Freeze"\n\nevent B  Reboot Scheduled\n"Reboot"\n'
    )
    assert value("event.EventType", "--document", "-", "--event-id", "b", stdin=document) == '"Reboot"'
    assert value("events.map(one, one.EventId)[1]", "--document", "-", "--event-id", "b", stdin=document) == '"B"'
    (tmp_path / "event.json").write_text(json.dumps(MIGRATION))
    assert value(DURATION, "--document", tmp_path / "event.json") == "5"


def test_parameters_and_variables_of_a_policy(policy: Path) -> None:
    given = ("--policy", policy, "--event", "EventType=Freeze,DurationInSeconds=12")
    assert value("params.pause", *given) == "90s"
    assert value("variables.brief", *given) == "false"
    assert value("variables.brief", *given, "--param", "limit=15") == "true"
    assert value("variables.inner + variables.freezes.size()", *given) == "2"
    assert value('event.EventType == "Hibernate"', *given) == "false"
    assert "  params.limit = 9\n" in evaluate("variables.brief", *given).stdout
    assert value("variables.freezes", *given).startswith('[{EventId: "00000000-')


@pytest.mark.parametrize(
    ("expression", "more", "says"),
    [
        (
            f"{DURATION} < 9",
            ("--event", "EventType=Freeze"),
            f"no value: there is no DurationInSeconds\n  | {DURATION} < 9\n  | {'^' * len(DURATION)}\n",
        ),
        ("1 / size(vm.tags)", ("--vm", "tags={}"), "  | 1 / size(vm.tags)\n  | ^^^^^^^^^^^^^^^^^\n"),
        ("affects_me", ("--event", "EventType=Freeze"), "hint: Say which VM this is: --vm-name NAME."),
        ("event.EventType", (), "hint: Give an event: --event EventType=Freeze, or --document FILE."),
        ("notice", (), "hint: Give an event"),
        ("'ü' == vm.zone", (), "  | 'ü' == vm.zone\n  |        ^^^^^^^\n"),
    ],
)
def test_no_value(expression: str, more: tuple[str, ...], says: str) -> None:
    result = evaluate(expression, *more)
    assert (result.returncode, result.stderr) == (1, "")
    assert says in result.stdout
    assert evaluate(expression, *more, "--json").returncode == 1
    (one,) = evaluations(expression, *more)
    assert one["value"] is None
    assert one["error"]["message"] in result.stdout
    assert (one["error"]["expression"], one["error"]["variable"]) == (expression, None)


def test_a_variable_without_a_value_is_named(policy: Path) -> None:
    given = ("--policy", policy, "--event", "EventType=Freeze")
    result = evaluate("!variables.brief", *given)
    assert result.returncode == 1
    assert (
        "no value: there is no DurationInSeconds\n  in variables.brief:\n"
        f"  | {DURATION} >= 0 && {DURATION} < params.limit\n  | {'^' * len(DURATION)}\n"
    ) in result.stdout
    (one,) = evaluations("!variables.brief", *given)
    assert (one["error"]["variable"], one["error"]["start"], one["error"]["end"]) == ("brief", 0, 23)


def test_one_event_without_a_value_among_others() -> None:
    other = {**MIGRATION, "EventId": "B"}
    del other["DurationInSeconds"]
    result = evaluate(DURATION, "--document", "-", stdin=json.dumps([MIGRATION, other]))
    assert result.returncode == 1
    assert "\n5\n" in result.stdout
    assert "no value: " in result.stdout


def test_mistakes_have_a_caret() -> None:
    source = 'event.EventTyp == "Freeze" && event.DurationInSecond < 9'
    result = evaluate(source)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: the expression has mistakes:\n"
        "expression:1:1: error unknown-field event has no field EventTyp\n"
        f"  | {source}\n  | ^^^^^^^^^^^^^^\n  hint: did you mean EventType?\n"
        "expression:1:31: error unknown-field event has no field DurationInSecond\n"
        f"  | {source}\n  | {' ' * 30}^^^^^^^^^^^^^^^^^^^^^^\n  hint: did you mean DurationInSeconds?\n"
    )


def test_a_warning_is_shown_beside_the_value() -> None:
    result = evaluate("vm.name in event.Resources", "--vm-name", "VM_0", "--event", "EventType=Freeze,Resources=vm_0")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "false")
    assert "warning case-sensitive" in result.stderr


def test_document_problems_are_shown_with_the_value() -> None:
    document = {"DocumentIncarnation": 1, "Events": [MIGRATION, {"EventType": "Freeze"}]}
    result = evaluate("event.EventType", "--document", "-", stdin=json.dumps(document))
    assert result.stdout.splitlines()[0] == '"Freeze"'
    assert "warning: Events[1] has no usable EventId" in result.stderr


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--event", "EvenType=Freeze"], "an event has no field EvenType"),
        (["--event", "EvenType=Freeze"], "Did you mean EventType?"),
        (["--event", "EventType=Freeze,x=1"], "an event has no field x"),
        (["--event", "Freeze"], "there is no '=' after a name"),
        (["--event", "DurationInSeconds=5s"], "DurationInSeconds is a whole number"),
        (["--event", "NotBefore=soon"], "--event: "),
        (["--event", "EventType=A", "--event", "EventType=B"], "EventType is given twice"),
        (["--event", "EventType=A", "--document", "x"], "not allowed with"),
        (["--event", "EventId=null,EventType=A"], "--event: "),
        (["--event-id", "x"], "--event-id chooses an event of a document"),
        (["--document", "none.json"], "none.json: No such file or directory"),
        (["--document", "-"], "-: not JSON"),
        (["--param", "a=1"], "--param is for the parameters of a policy"),
        (["--policy", "none.yml"], "none.yml: no such file or directory"),
        (["--policy", "{policies}"], "policies: 10 policies."),
        (["--policy", "{policies}/web-tier.yml", "--param", "limit=1"], "no policy declares a parameter limit"),
        (["--policy", "{policies}/web-tier.yml", "--param", "tolerable_freeze=x"], "not of type int"),
        (["--policy", "{policies}/web-tier.yml", "--param", "tolerable_freeze=99"], "is more than 60"),
        (["--now", "today"], "--now today: not a time"),
        (["--vm", "nam=x"], "there is no such fact"),
    ],
)
def test_bad_usage(more: list[str], says: str, repository: Path) -> None:
    arguments = [one.replace("{policies}", str(repository / "policies")) for one in more]
    result = evaluate("true", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert "Traceback" not in result.stderr


TOKENS = """event . EventType DurationInSeconds NotBefore Resources events now notice vm tags [ ] ( ) { } , : ? + - / %
    == < && || ! in has size map filter x 1 2u 0.5 'a' null true timestamp int string split // = Freeze"""
WORDS = [*TOKENS.split(), "duration('1s')", r"b'\xff'", r"'é\n'", "\n", "\0"]


@given(st.text(min_size=1) | st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join))
def test_any_expression_ends_in_a_known_exit_code(expression: str) -> None:
    for more in ((), ("--json",)):
        result = evaluate("--event", "EventType=Freeze,DurationInSeconds=5", *more, "--", expression)
        assert result.returncode in (0, 1, 2), result.stderr
        assert (result.stdout == "") == (result.returncode == 2)


@given(st.text(min_size=1) | st.lists(st.sampled_from(WORDS), min_size=1).map("".join))
def test_any_event_is_one_or_refused(event: str) -> None:
    assume(event != "--")  # which argparse of Python 3.11 removes, and then misses
    result = evaluate("event.EventType", f"--event={event}")
    assert result.returncode in (0, 1, 2), result.stderr
    assert "Traceback" not in result.stderr


def test_a_variable_that_means_two_things(policy: Path) -> None:
    result = evaluate("variables.twice", "--policy", policy)
    assert (result.returncode, result.stdout) == (2, "")
    assert "variables.twice is declared in line 18 and line 25 of p.yml, in several nested rules" in result.stderr
    assert evaluate("variables.more", "--policy", policy).returncode == 2
    assert value("1", "--policy", policy) == "1"


def test_a_policy_with_mistakes(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(POLICY.replace("params.limit", "params.limt"))
    result = evaluate("1", "--policy", tmp_path / "p.yml")
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean limit?" in result.stderr
