# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable of a nested rule that has the name of an outer one: judged by a policy in which every name differs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.diff.kinds import NO_CHANGE
from forewarn.compiler.testing.second_opinion import SecondOpinion
from forewarn.events import EVENT_TYPE_SINCE, Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import listed
from tools.fixtures.policy_files import loaded

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAMES = ("a", "b")


class Policies:
    """Two policies that mean the same: ``hiding`` reuses names, in ``plain`` each variable has one of its own."""

    def __init__(self, seed: int) -> None:
        self._random, self._count = Random(seed), 0
        hiding, plain = self._rule({}, 3)
        self.hiding = yaml.safe_dump({"name": "p", "rule": hiding})
        self.plain = yaml.safe_dump({"name": "p", "rule": plain})

    def _rule(self, visible: dict[str, str], depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
        hidden: list[dict[str, Any]] = []
        plain: list[dict[str, Any]] = []
        inside = dict(visible)
        for name in self._random.sample(NAMES, self._random.randint(0, 2)):
            value = str(self._random.randint(0, 3))
            read = self._random.choice([*inside, ""])
            self._count += 1
            own = f"v{self._count}"
            hidden.append({"name": name, "expression": f"variables.{read} + {value}" if read else value})
            plain.append({"name": own, "expression": f"variables.{inside[read]} + {value}" if read else value})
            inside[name] = own
        matches = [self._match(inside, depth - 1) for _number in range(self._random.randint(1, 3))]
        return (
            {"variables": hidden, "match": [one for one, _other in matches]},
            {"variables": plain, "match": [other for _one, other in matches]},
        )

    def _match(self, visible: dict[str, str], depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
        kind = self._random.choice(list(EVENT_TYPE_SINCE))
        condition, same = f"event.EventType == '{kind}'", f"event.EventType == '{kind}'"
        if visible and self._random.random() < 0.8:
            name, number = self._random.choice([*visible]), self._random.randint(0, 5)
            condition, same = f"variables.{name} >= {number}", f"variables.{visible[name]} >= {number}"
        if depth and self._random.random() < 0.6:
            one, other = self._rule(visible, depth)
            return {"condition": condition, "rule": one}, {"condition": same, "rule": other}
        output = self._random.choice(("approve", "hold"))
        return {"condition": condition, "output": output}, {"condition": same, "output": f"'{output}'"}


@pytest.mark.parametrize("seed", range(40))
def test_shadowing_name_behaves_like_a_unique_one(tmp_path: Path, seed: int) -> None:
    policies = Policies(seed)
    (tmp_path / "plain").mkdir()
    hiding, plain = loaded(tmp_path, policies.hiding), loaded(tmp_path / "plain", policies.plain)
    opinion, facts = SecondOpinion(hiding), Facts(NOW, Vm("web_0"), {})
    for kind in EVENT_TYPE_SINCE:
        body = {"DocumentIncarnation": 1, "Events": [listed("A", EventType=kind)]}
        document = parse_document(json.dumps(body), "2020-07-01")
        (one,), (other,) = (PolicySet(each).decide(document, facts) for each in (hiding, plain))
        assert (one.output, one.rule) == (other.output, other.rule)
        rules = [] if one.rule is None else [one.rule]
        assert list(opinion.differences("p", rules, document.events[0], document, facts, {})) == []
    assert compare(hiding, plain).verdict == NO_CHANGE


def test_decision_values_have_the_written_names(tmp_path: Path) -> None:
    text = (
        "name: p\nrule:\n  variables: [{name: a, expression: '1'}]\n  match:\n"
        "    - id: inner\n      rule:\n        variables: [{name: a, expression: variables.a + 6}]\n        match:\n"
        "          - {condition: variables.a == 7, output: approve}\n"
    )
    body = {"DocumentIncarnation": 1, "Events": [listed("A")]}
    document = parse_document(json.dumps(body), "2020-07-01")
    (decision,) = PolicySet(loaded(tmp_path, text)).decide(document, Facts(NOW, Vm("web_0"), {}))
    assert decision.output == "approve"
    assert ("variables.a", "7") in list(decision.values)
    assert ("variables.a", "1") in list(decision.values)
