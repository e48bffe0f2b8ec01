# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies with groups and limits, alone and together: the engine decides as an independent oracle does."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from forewarn.errors import ForewarnError
from forewarn.events import Vm, parse_document, parse_time
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import loaded
from tools.generators.drawn_policies import limit
from tools.judges.cel_oracles import CelPython
from tools.judges.policy_oracle import Answer, Limit, Oracle, together
from tools.suite.sizes import SIZE, seeds

EACH = 60  # policies of one seed
NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
CONDITIONS = (
    *("event.EventType == 'Freeze'", "event.DurationInSeconds < 9", "leader", "affects_me", "vm.zone == '1'"),
    *("has(vm.scale_set) && vm.scale_set != ''", "vm.tags['role'] == 'web'", "event.EventSource == 'User'", "true"),
)
PREPARES = [{"run": ["/bin/drain"]}]
NAMES = (  # what cel-python evaluates, too
    *("'web'", "vm.scale_set", "vm.tags['role']", "vm.zone", "event.EventSource", "event.Description", "''"),
    *("has(vm.zone) ? vm.zone : 'none'", "leader ? 'first' : vm.name", "vm.name + '/' + event.EventType"),
)


def matches(random: Random, depth: int) -> list[dict[str, Any]]:
    found = []
    for number in range(random.randint(1, 3)):
        match: dict[str, Any] = {"id": f"m{number}"}
        if random.random() < 0.8:
            match["condition"] = random.choice(CONDITIONS)
        if depth and random.random() < 0.3:
            match["rule"] = {"match": matches(random, depth - 1)}
        else:
            match["output"] = random.choice(("approve", "approve", "approve", "hold"))
            group = random.choice(("hold", "ready", "independent"))
            keys = {"group": group, "limit": limit(random, NAMES), "prepare": PREPARES}
            match.update({key: value for key, value in keys.items() if random.random() < 0.4})
        found.append(match)
    return found


def case(random: Random) -> dict[str, Any]:
    event = {
        "EventId": "e",
        "EventType": random.choice(("Freeze", "Reboot")),
        "EventStatus": "Scheduled",
        "ResourceType": "VirtualMachine",
        "Resources": random.choice((["vm_0"], ["vm_0", "vm_1"], ["vm_1", "VM_0"])),
        "NotBefore": "2026-01-31T12:15:00Z",
        "EventSource": random.choice(("User", "Platform")),
        "Description": random.choice(("", "x")),
        "DurationInSeconds": random.choice((-1, 5, 30)),
    }
    facts = {
        "name": random.choice(("vm_0", "vm_1")),
        **{
            name: value
            for name in ("scale_set", "zone")
            if (value := random.choice((None, "", "1", "blue"))) is not None
        },
        "tags": random.choice(({}, {"role": "web"}, {"role": ""})),
    }
    return {
        "event": event,
        "now": "2026-01-31T12:00:00Z",
        "first_seen": "2026-01-31T11:59:00Z",
        "vm": facts,
        "params": {},
    }


def decided(policies: PolicySet, given: dict[str, Any]) -> Decision:
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [given["event"]]}))
    first_seen = {document.events[0].key: NOW - timedelta(minutes=1)}
    (decision,) = policies.decide(document, Facts(parse_time(given["now"]), Vm(**given["vm"]), first_seen))
    return decision


def said(decision: Decision) -> list[tuple[str, str | None, bool, str, Limit | None]]:
    """Return each verdict as the oracle has it: output, rule, whether it failed, group and limit."""
    return [
        (
            one.output,
            one.rule,
            one.error is not None,
            one.group,
            None if one.limit is None else Limit(one.limit._replace(group=None).text, one.limit.group),
        )
        for one in decision.verdicts
    ]


def told(answer: Answer) -> tuple[str, str | None, bool, str, Limit | None]:
    failed = answer.how in ("error", "explanation", "limit")
    return answer.output, answer.rule, failed, answer.group, answer.limit


@pytest.mark.parametrize("seed", seeds(SIZE.group_policies // EACH))
def test_groups_and_limits_are_those_of_the_oracle(seed: int, tmp_path: Path) -> None:
    random, seen = Random(f"groups {seed}"), Counter[str]()
    cases = [case(random) for _ in range(40)]
    while seen["policies"] < EACH:
        texts = [
            yaml.safe_dump({"name": f"p{number}", "rule": {"match": matches(random, 1)}}, width=10_000)
            for number in range(random.choice((1, 2, 3)))
        ]
        try:
            policies = PolicySet(loaded(tmp_path, *texts))
        except ForewarnError:  # for example a rule after one that always decides
            seen["refused"] += 1
            continue
        seen["policies"] += 1
        oracles = [Oracle(tmp_path / f"p{number or ''}.yml", CelPython) for number in range(len(texts))]
        for given in cases:
            decision, answers = decided(policies, given), [oracle.decide(given) for oracle in oracles]
            assert said(decision) == list(map(told, answers)), (texts, given)
            limits = tuple(Limit(one._replace(group=None).text, one.group) for one in decision.limits)
            assert (decision.group, limits) == together(answers), (texts, given)
            seen[decision.group] += 1
            seen["several limits"] += len(limits) > 1
            seen["without a group"] += any(one.how == "limit" for one in answers)
    assert min(seen["hold"], seen["ready"], seen["without a group"]) > 30, seen
    # Cases of one policy are alike: of what few policies have, there may be few.
    assert min(seen["independent"], seen["several limits"]) > 0, seen
