# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet that is not there: what its hosts report, in groups, with events on some of them and trouble on others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

AT = datetime(2026, 11, 21, 16, 10, tzinfo=timezone.utc)
GROUPS = ("web", "db", "batch")
DRAIN = "run /usr/local/bin/drain --wait"
_TYPES = ("Reboot", "Redeploy", "Freeze", "Preempt", "Terminate", "Reboot")
_STATES = ("preparing", "prepared", "failed", "held", "approved", "started")
_WAITS = {
    "preparing": f"prepare hook {DRAIN}, for 9 s, at most 5 min",
    "prepared": "the leader; this VM takes over in 14 s",
    "failed": f"nothing: it is not approved, as prepare hook {DRAIN} failed: it ended with exit code 1: 214 s behind",
    "held": "nothing: held by web-tier, rule rest: no rule applies",
    "approved": "its start, approved 12 s ago",
    "started": "the event to end",
}


def iso(moment: datetime) -> str:
    """Return a time as forewarn writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def report(
    events: Sequence[Mapping[str, Any]] = (),
    problems: Sequence[str] = (),
    pause: Mapping[str, Any] | None = None,
    **runner: Any,
) -> dict[str, Any]:
    """Return the result of runner_report on a host."""
    content = {
        "forewarn": {"schema": "status", "version": 1},
        "runner": {
            "condition": "running",
            "text": "running since 2026-11-20T09:12:44Z (1 d 6 h)",
            "policy": "sha256:4558453758da1f546c970445ba0306af25d93689c97ef26c11ffb71b93e8b13",
            "version": "0.2.0",
            "policies": ["web-tier", "defaults"],
            "source": {
                "repository": "git@example.com:policies",
                "ref": "v1.4",
                "commit": "3f2a9c1d0e4b77aa",
                "paths": [],
            },
            **runner,
        },
        "service": {"state": "ok", "text": "ok, last good poll at most 2.5 s ago"},
        "pause": pause,
        "events": list(events),
        "problems": list(problems),
    }
    return {"changed": False, "stdout": json.dumps(content), "history": json.dumps({"events": []})}


def event(number: int, names: Sequence[str], state: str = "held", **fields: Any) -> dict[str, Any]:
    """Return an event as ``forewarn status --json`` has it: the ``number``-th, which affects these VMs."""
    left = 120.0 + 200 * number
    kind = _TYPES[number % len(_TYPES)]
    return {
        "life_id": number,
        "event_id": str(UUID(int=0xFEED << 100 | number)).upper(),
        "state": state,
        "open": True,
        "outcome": None,
        "drill": False,
        "event": {
            "EventType": kind,
            "EventStatus": "Scheduled",
            "EventSource": "Platform",
            "Resources": list(names),
            "NotBefore": (AT + timedelta(seconds=left)).strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "DurationInSeconds": 9,
            "Description": "Virtual machine is to be restarted because of maintenance of its host.",
        },
        "decision": {
            "output": "approve",
            "policy": "web-tier",
            "rule": "drain",
            "reason": f"a {kind} waits for the drain",
        },
        "first_seen": iso(AT - timedelta(seconds=300)),
        "approved_at": None,
        "started_at": iso(AT) if state == "started" else None,
        "gone_at": None,
        "starts": "started 0 s ago" if state == "started" else f"in {left / 60:.0f} min",
        "seconds_to_not_before": left,
        "waits_for": _WAITS.get(state, "-"),
        "failure": _WAITS["failed"].partition(", as ")[2] if state == "failed" else None,
        "hooks": [{"phase": "prepare", "hook": DRAIN, "status": "running"}],
        **fields,
    }


def fleet(hosts: int, events: int = 6, trouble: int = 3, past: int = 0) -> dict[str, dict[str, Any]]:
    """Return the results of a fleet in three groups. Every host lists every event; each event affects one or two VMs.

    ``past`` events, of as many hosts, are in each history.
    """
    names = [f"{GROUPS[number % len(GROUPS)]}_{number // len(GROUPS)}" for number in range(hosts)]
    affected = [names[number * 7 % hosts :][: 1 + number % 2] for number in range(events)] if hosts else []
    gone = [_past(number, names[number * 11 % hosts]) for number in range(past)] if hosts else []
    silent = ("not reached: No route to host (ssh, port 22)", "no runner: /usr/local/bin/forewarn is not installed")
    answers: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        if place >= hosts - trouble and place % 3:
            answers[name] = {"failed": True, "msg": silent[place % 3 - 1]}
            continue
        listed = []
        for number, its in enumerate(affected):
            state = _STATES[number % len(_STATES)] if name in its else "held"
            listed.append(event(number, its, state, failure=None) if name not in its else event(number, its, state))
        problems = [
            f"{one['event']['EventType']} {one['event_id']}: {one['failure']}" for one in listed if one["failure"]
        ]
        if place >= hosts - trouble:
            problems.append("the service does not answer: HTTP 410; last good poll 6 min ago")
        answers[name] = report(listed, problems, vm=name)
        answers[name]["history"] = json.dumps({"events": gone})
    return answers


def _past(number: int, name: str) -> dict[str, Any]:
    begin = AT - timedelta(hours=3 * number + 2)
    return event(
        1000 + number,
        [name],
        "done",
        open=False,
        outcome="finished",
        first_seen=iso(begin),
        approved_at=iso(begin + timedelta(seconds=40)),
        started_at=iso(begin + timedelta(minutes=15)),
        gone_at=iso(begin + timedelta(minutes=16)),
        impact={"paused_seconds": 4.8},
    )
