# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the task scheduled_events returns, as the state of a host: whatever it returns, and whatever is missing."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.events import Event, Vm, parse_time
from forewarn.fleet.adhoc import adhoc_state
from forewarn.fleet.table import table

NOW = parse_time("2026-05-04T12:00:00Z")


def result(status: str = "Scheduled", **more: Any) -> dict[str, Any]:
    """Return what the task returns about one event, in the shape that the task itself gives it."""
    from forewarn.adhoc.task import describe_event

    event = Event(
        event_id="A1",
        event_type="Reboot",
        resource_type="VirtualMachine",
        resources=("web_0", "web_1"),
        event_status=status,
        not_before=None if status == "Started" else parse_time("2026-05-04T12:10:00Z"),
        description="d",
        event_source="Platform",
        duration_in_seconds=9,
    )
    vm = Vm(name="web_1")
    return {
        "read_at": "2026-05-04T12:00:00Z",
        "events": [describe_event(event, vm.name, NOW)],
        "vm": {"name": vm.name},
        "problems": [],
        "vm_problems": [],
        "approved": [],
        **more,
    }


def shown(answer: dict[str, Any], check_mode: bool = False) -> str:
    return "\n".join(line.text for line in table([adhoc_state("h", answer, check_mode)]))


def decision(output: str, code: str) -> dict[str, Any]:
    its = {"code": code, "reason": "web_0 leads"}
    return {"event_id": "A1", "output": output, "policy": "p", "rule": "r", "reason": "why", "eligibility": its}


def test_event_is_shown_as_by_a_runner() -> None:
    text = shown(result())
    assert "  Reboot in 10 min (not before 2026-05-04 12:10:00 UTC), from Platform, lasts 9 s, A1" in text
    assert "    h (web_1)  scheduled" in text
    assert "    web_0      -          not among the hosts of this run" in text
    assert "decided" not in text
    assert "POLICIES" not in text
    assert "  Reboot under way, from Platform" in shown(result("Started"))


@pytest.mark.parametrize(
    ("more", "check_mode", "state"),
    [
        ({"decisions": [decision("hold", "refused-by-policy")]}, False, "held"),
        ({"decisions": [decision("approve", "not-the-leader")]}, False, "not-the-leader  web_0 leads"),
        ({"decisions": [decision("approve", "approve")], "approved": ["A1"]}, False, "approved"),
        ({"decisions": [decision("approve", "approve")], "approved": ["A1"]}, True, "would be approved"),
        ({"decisions": [decision("approve", "approve")]}, False, "approve"),
    ],
)
def test_what_is_decided_and_done_is_its_state(more: dict[str, Any], check_mode: bool, state: str) -> None:
    text = shown(result(**more), check_mode)
    assert f"    h (web_1)  {state}\n" in text
    assert " by p, rule r: why" in text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"unreachable": True, "msg": "ssh: connect to host h port 22: No route to host"}, "not reached: No route to"),
        ({"failed": True, "msg": "HTTP 403.\nCheck it."}, "HTTP 403."),
        (
            {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "sh: python: not found\n"},
            "sh: python: not found",
        ),
        ({"censored": "hidden"}, "no events in the result"),
        ({}, "no events in the result"),
        (result(problems=["EventType is 5"]), "the document cannot be read in full: EventType is 5"),
        (result(vm_problems=["the name of this VM is unknown"]), "the name of this VM is unknown"),
    ],
)
def test_what_is_wrong_is_trouble(answer: dict[str, Any], sentence: str) -> None:
    text = shown(answer)
    assert f"  h  {sentence}" in text
    assert "1 host, 1 with trouble" in text


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, [5], [{}], True, 10**400])
@pytest.mark.parametrize("name", ["events", "decisions", "approved", "vm", "problems", "vm_problems", "read_at", "msg"])
def test_no_value_makes_it_fail(name: str, value: object) -> None:
    given: dict[str, Any] = {name: value}
    for answer in (result(**given), {"failed": True, **given}):
        assert "1 host, " in shown(answer)
    for field in result()["events"][0]:
        its = result()
        its["events"][0][field] = value
        assert "1 host, " in shown(its)
