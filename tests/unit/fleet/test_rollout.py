# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a rollout in a terminal: policies, changes and failures, by result and not by host."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from forewarn.fleet.rollout import DONE, FAILED, NOT_BEGUN, NOT_REACHED, host_rollout, rollout_lines, trouble_text
from tools.suite.sizes import SEED

OLD, NEW = (
    {"policies": ["web"], "policy": f"sha256:{letter * 64}", "source": {"ref": ref, "commit": letter * 40}}
    for ref, letter in (("v14", "a"), ("v15", "b"))
)
COMPARED = {"before": OLD, "after": NEW, "changes": ["approve → hold, when EventType = Reboot (less-permissive)"]}
OF_STATE: dict[str, dict[str, Any]] = {
    DONE: {
        "__forewarn_outcome": {"state": "done"},
        "__forewarn_compared": COMPARED,
        "__forewarn_status": {"stdout": json.dumps({"runner": NEW})},
    },
    FAILED: {"__forewarn_outcome": {"state": "failed", "why": "No root.\nNothing was changed."}},
    NOT_REACHED: {
        "__forewarn_outcome": {"state": "begun"},
        "__forewarn_asked": {"unreachable": True, "msg": "ssh: connect to host x port 22: No route to host"},
    },
    NOT_BEGUN: {"__forewarn_compared": COMPARED},
}


def lines(hosts: dict[str, dict[str, Any]], *, rehearsed: bool = False) -> list[str]:
    return [line.text for line in rollout_lines([host_rollout(*one, rehearsed) for one in hosts.items()], rehearsed)]


def test_each_result_is_an_entry_with_its_hosts() -> None:
    hosts = {f"web_{number}": OF_STATE[state] for number, state in enumerate([DONE, DONE, *OF_STATE])}
    assert lines(hosts) == [
        "POLICIES",
        "  web v15 (bbbbbbbbbbbb) bbbbbbbbbbbb  3 hosts: web_0, web_1, web_2",
        "    before: web v14 (aaaaaaaaaaaa) aaaaaaaaaaaa",
        "    approve → hold, when EventType = Reboot (less-permissive)",
        "FAILED: 1 host",
        "  web_3",
        "    No root.",
        "NOT REACHED: 1 host",
        "  web_4",
        "    not reached: No route to host (ssh, port 22)",
        "NOT BEGUN: 1 host",
        "  web_5",
        "",
        "6 hosts: 3 done, 1 failed, 1 not reached, 1 not begun",
    ]


def test_reported_policy_counts_except_in_a_rehearsal() -> None:
    hosts = {"web_0": {**OF_STATE[DONE], "__forewarn_status": {"stdout": json.dumps({"runner": OLD})}}}
    assert "web v14" in lines(hosts)[1], "after a rollout that went back, for example"
    assert lines(hosts, rehearsed=True)[:2] == [
        "POLICIES, if this were no rehearsal",
        "  web v15 (bbbbbbbbbbbb) bbbbbbbbbbbb  1 host: web_0",
    ]


def test_parameters_lost_settings_and_doubts_are_changes() -> None:
    compared = {"before": NEW, "after": NEW, "params": ["a", "b"], "dropped": ["forewarn_sink_url"], "doubt": "no z3"}
    shown = lines({"web_0": {**OF_STATE[DONE], "__forewarn_compared": compared}})
    assert shown[2:6] == [
        "    before: web v15 (bbbbbbbbbbbb) bbbbbbbbbbbb",
        "    other values of parameters: a, b",
        "    no longer set: forewarn_sink_url",
        "    perhaps other changes: no z3",
    ]
    unchanged = lines({"web_0": {**OF_STATE[DONE], "__forewarn_compared": {"before": NEW, "after": NEW}}})
    assert unchanged[2] == "    as before"


def test_a_new_host_has_nothing_before() -> None:
    shown = lines({"web_0": {**OF_STATE[DONE], "__forewarn_compared": {"before": None, "after": NEW}}})
    assert shown[2] == "    before: none that is known"


@pytest.mark.parametrize("number", range(20))
def test_many_hosts_are_summed_up_in_few_lines(number: int) -> None:
    random = Random(SEED * 20 + number)
    states = {f"web_{host}": random.choice(list(OF_STATE)[: 1 + number % 4]) for host in range(300)}
    rollouts = [host_rollout(host, OF_STATE[state], rehearsed=False) for host, state in states.items()]
    shown = [line.text for line in rollout_lines(rollouts, rehearsed=False)]
    assert len(shown) <= 14
    assert max(map(len, shown)) < 200
    for state in OF_STATE:
        count = sum(one == state for one in states.values())
        assert f"{count} {state}" in shown[-1]
    assert bool(trouble_text(rollouts)) == any(state != DONE for state in states.values())


def test_what_hosts_say_cannot_change_the_terminal() -> None:
    wild = {"state": "failed", "why": "a\x1b[31mb\u202e\x07"}
    shown = "".join(lines({"web\x1b[2J": {"__forewarn_outcome": wild}}))
    assert shown.isprintable()
