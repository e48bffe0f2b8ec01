# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether all went as it should: the records of the emulator and the journals, compared with what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from acts import OUTAGE_SECONDS, Acts, Expectation
from journals import check_journals, check_kills, prepared
from stage import Stage

HEADER = ("EVENT", "RULE", "DECISION", "PREPARED", "APPROVED BY", "AFTER", "STARTED BY", "OK")


def judge(acts: Acts) -> tuple[list[list[str]], list[str]]:
    """Return a row of the table for each event, and a sentence for each difference from what should be."""
    stage = acts.stage
    events = {event["event_id"]: event for event in stage.emulator.state()["events"]}
    requests = stage.emulator.requests()
    histories = {vm: stage.history(vm) for vm in acts.runners}
    rows, differences = [], []
    for expected in acts.expected:
        event = events[expected.event_id]
        decisions = {vm: _decisions(acts, expected, vm) for vm in expected.eligibilities}
        found = [
            *_check_event(expected, event),
            *_check_approvals(expected, requests),
            *_check_decisions(expected, decisions),
            *check_journals(expected, event, requests, histories),
        ]
        differences += [f"{expected.title}: {text}" for text in found]
        rows.append(_row(expected, event, prepared(expected, histories), decisions, not found))
    missing = events.keys() - {expected.event_id for expected in acts.expected}
    differences += [f"the emulator has an event that nobody scheduled: {event_id}" for event_id in missing]
    differences += [*_check_outage(stage, requests), *_check_endings(acts)]
    differences += [*_check_hooks(acts), *check_kills(acts.kills, histories)]
    return rows, differences


def _check_event(expected: Expectation, event: Mapping[str, Any]) -> list[str]:
    """Compare the emulator's record of the event."""
    found = []
    facts = {
        "status": (event["status"], expected.status),
        "started by": (event["started_by"], expected.started_by),
        "approved by": (sorted({approval["vm"] for approval in event["approvals"]}), _listed(expected.approved_by)),
    }
    for what, (was, should_be) in facts.items():
        if was != should_be:
            found.append(f"{what} {was}, not {should_be}")
    seconds = _latency(event)
    if seconds is not None and seconds > expected.within:
        found.append(f"approved after {seconds:.1f} s, not within {expected.within:g} s")
    if event["started"] is not None:
        early = round(event["started"]["wall"], 3) < event["not_before"]
        if early != (expected.started_by == "approval"):
            found.append(f"it started {'before' if early else 'after'} NotBefore")
    return found


def _check_approvals(expected: Expectation, requests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare the approvals as they arrived: from one VM, once, and taken."""
    sent = [(entry["vm"], entry["status"]) for entry in requests if expected.event_id in entry["event_ids"]]
    should_be = [(vm, 200) for vm in _listed(expected.approved_by)]
    return [] if sent == should_be else [f"approvals that arrived: {sent}, not {should_be}"]


def _check_decisions(expected: Expectation, decisions: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Compare what each VM decided before the event started."""
    found = []
    for vm, said in decisions.items():
        if not said:
            found.append(f"{vm} said nothing")
        found += [
            f"{vm} said {decision['output']}, {decision['rule']}, not {expected.output}, {expected.rule}"
            for decision in said
            if (decision["output"], decision["rule"]) != (expected.output, expected.rule)
        ]
        eligibilities = [decision["eligibility"] for decision in said]
        # A restarted runner logs its decision again.
        distinct = [here for before, here in pairwise([None, *eligibilities]) if here != before]
        if said and distinct != list(expected.eligibilities[vm]):
            found.append(f"{vm} concluded {', '.join(distinct)}, not {', '.join(expected.eligibilities[vm])}")
    return found


def _check_outage(stage: Stage, requests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Check that requests were refused only in the outage, and that the runner backed off during it."""
    found = [
        f"{entry['method']} of {entry['vm']} was answered {entry['status']}"
        for entry in requests
        if entry["status"] not in (200, 304) and (entry["status"], entry["vm"]) != (410, "web_0")
    ]
    polls = [entry for entry in requests if entry["vm"] == "web_0" and entry["method"] == "GET"]
    failed = [place for place, entry in enumerate(polls) if entry["status"] == 410]
    if not 2 <= len(failed) <= OUTAGE_SECONDS:
        found.append(f"in the outage web_0 asked {len(failed)} times")
    else:
        times = [entry["received"]["monotonic"] for entry in polls[failed[0] : failed[-1] + 2]]
        pauses = [late - early for early, late in pairwise(times)]
        if pauses[-1] < pauses[0] + 0.5:
            found.append(f"in the outage web_0 did not ask less and less often, but after {pauses} s")
    for name in ("poll-failed", "poll-recovered"):
        count = len(stage.said("web_0", name))
        if count != 1:
            found.append(f"web_0 logged {name} {count} times, not once")
    return found


def _check_endings(acts: Acts) -> list[str]:
    """Check that the runners know how each event ended: a cancelled one did not take place."""
    return [
        f"{expected.title}: {vm} says {gone['outcome']}, not {expected.status.lower()}"
        for expected in acts.expected
        for vm in expected.resources
        for gone in acts.stage.said(vm, "event-gone", expected.event_id)
        if gone["outcome"] != expected.status.lower()
    ]


def _check_hooks(acts: Acts) -> list[str]:
    """Check what the hooks have left behind: all VMs in the pool, no users, and no processes."""
    found = []
    if acts.pool.members() != sorted(acts.runners):
        found.append(f"in the pool there are {', '.join(acts.pool.members()) or 'none'}, not {', '.join(acts.runners)}")
    if acts.pool.users():
        found.append(f"a drain has not waited for {', '.join(user.name for user in acts.pool.users())}")
    for vm in acts.runners:
        count = len(acts.stage.said(vm, "hook-left-over"))
        if count != acts.kills[vm]:
            found.append(f"{vm} found {count} hooks that outlived the runner, not {acts.kills[vm]}")
    return found


def _decisions(acts: Acts, expected: Expectation, vm: str) -> list[dict[str, Any]]:
    """Return what a VM decided about an event before it started, by its runner or ad hoc."""
    said = [
        decision
        for decision in acts.stage.said(vm, "decision", expected.event_id)
        # A poll between NotBefore and the start is a matter of chance.
        if decision["status"] != "Started" and decision["eligibility"] != "no-time-left"
    ]
    adhoc = acts.adhoc_decisions.get((expected.event_id, vm))
    if said or adhoc is None:
        return said
    return [{**adhoc, "eligibility": adhoc["eligibility"]["code"]}]


def _row(
    expected: Expectation,
    event: Mapping[str, Any],
    preparation: str,
    decisions: Mapping[str, Sequence[Mapping[str, Any]]],
    good: bool,
) -> list[str]:
    said: Mapping[str, Any] = next((decision for made in decisions.values() for decision in made), {})
    seconds = _latency(event)
    return [
        expected.title,
        str(said.get("rule", "-")),
        str(said.get("output", "-")),
        preparation,
        ", ".join(sorted({approval["vm"] for approval in event["approvals"]})) or "-",
        "-" if seconds is None else f"{seconds:.2f} s",
        event["started_by"] or "-",
        "yes" if good else "no",
    ]


def _latency(event: Mapping[str, Any]) -> float | None:
    """Return the real seconds from the event's appearance to the arrival of its approval."""
    if not event["approvals"]:
        return None
    first = event["approvals"][0]
    visible: float = event["visible_since"][first["vm"]]["monotonic"]
    return float(first["at"]["monotonic"]) - visible


def _listed(vm: str | None) -> list[str]:
    return [] if vm is None else [vm]
