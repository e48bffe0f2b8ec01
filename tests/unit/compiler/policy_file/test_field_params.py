# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of the types EventType, EventSource and EventStatus: what the field can be, and nothing else."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from forewarn.analysis.verify.verify import verify
from forewarn.errors import InputError
from forewarn.events import EVENT_SOURCES, EVENT_STATUSES, EVENT_TYPE_SINCE, Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import listed
from tools.fixtures.policy_files import compiled, loaded

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
VALUES = {"EventType": tuple(EVENT_TYPE_SINCE), "EventSource": EVENT_SOURCES, "EventStatus": EVENT_STATUSES}
FIELDS = pytest.mark.parametrize("field", VALUES)


def policy(type_: str, default: object, condition: str, more: str = "") -> str:
    declared = f"{{name: one, type: {type_}, default: {json.dumps(default)}}}"
    rule = f"rule:\n  match:\n    - {{condition: {json.dumps(condition)}, output: approve}}\n    - {{output: hold}}\n"
    return f"name: p\n{more}params:\n  - {declared}\n{rule}"


@FIELDS
def test_every_field_value_is_accepted_and_compared(tmp_path: Path, field: str) -> None:
    for value in VALUES[field]:
        for type_, given, condition in (
            (field, value, f"event.{field} == params.one"),
            (f"list({field})", [value], f"event.{field} in params.one"),
        ):
            policies = PolicySet(loaded(tmp_path, policy(type_, given, condition)), {"one": given})
            for other in VALUES[field]:
                body = {"DocumentIncarnation": 1, "Events": [listed("A", **{field: other})]}
                document = parse_document(json.dumps(body), "2020-07-01")
                (decision,) = policies.decide(document, Facts(NOW, Vm("web_0"), {}))
                assert (decision.output == "approve") is (other == value)


@FIELDS
@pytest.mark.parametrize("wrong", ["user", "Usre", "", "freeze", "None"])
def test_any_other_text_is_refused(tmp_path: Path, field: str, wrong: str) -> None:
    for type_, default, given in ((field, VALUES[field][0], wrong), (f"list({field})", [], [VALUES[field][0], wrong])):
        condition = "true" if type_ == field else "'x' != ''"
        (finding,) = compiled(tmp_path, policy(type_, given, condition + " && leader")).findings
        assert (finding.code, finding.line) == ("param-value", 3)
        artifact = loaded(tmp_path, policy(type_, default, condition + " && leader"))
        with pytest.raises(InputError, match="parameter one of policy p"):
            PolicySet(artifact, {"one": given})


def test_the_hint_is_that_of_the_literal(tmp_path: Path) -> None:
    (finding,) = compiled(tmp_path, policy("EventSource", "user", "event.EventSource == params.one")).findings
    assert (finding.message, finding.suggestion) == (
        'the default "user" is not one of Platform, User',
        "did you mean User?",
    )


def test_expressions_know_what_it_can_be(tmp_path: Path) -> None:
    (finding,) = compiled(tmp_path, policy("EventSource", "User", "params.one == 'user'")).findings
    assert (finding.code, finding.suggestion) == ("unknown-value", "did you mean User?")


def test_extra_values_are_allowed_too(tmp_path: Path) -> None:
    more = "extra_values: {EventType: [Spot]}\n"
    assert compiled(tmp_path, policy("EventType", "Spot", "event.EventType == params.one", more)).findings == []


def test_limits_must_be_among_the_values(tmp_path: Path) -> None:
    text = policy("EventType", "Freeze", "event.EventType == params.one")
    text = text.replace('"Freeze"}', '"Freeze", enum: [Freeze, rebot]}')
    (finding,) = compiled(tmp_path, text).findings
    assert (finding.code, finding.suggestion) == ("param-value", "did you mean Reboot?")


def test_the_prover_knows_the_values(tmp_path: Path) -> None:
    """It is proven of every value that a host may be given, and of no other."""
    text = policy("EventSource", "User", "event.EventSource == params.one && affects_me")
    text += "invariants:\n  - {name: known, expression: \"params.one in ['User', 'Platform']\"}\n"
    found = verify(loaded(tmp_path, text))
    assert not [one for one in found.findings if one.code == "invariant-can-fail"], found.findings
    assert any("Platform" in assumed and "User" in assumed for assumed in found.assumptions)
