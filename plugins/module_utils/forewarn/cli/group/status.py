# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group status``: who holds a slot, who waits, and how far the VMs of each event are."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from ...runner.groups import barrier, documents, semaphore
from ...runner.groups.documents import SharedDocumentError
from ...runner.groups.semaphore import Semaphore
from ..output.console import write_result
from ..output.page import Page
from .common import Group, add_group_arguments, open_group, read_semaphore

MOST_EVENTS, MOST_SECONDS = 200, 10.0  # for so many events, and for so long, barriers are read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    parser.epilog = "It changes nothing. Exit codes: 0 if the store answers, 2 for bad usage, 3 if it does not."


def run(args: argparse.Namespace) -> int:
    """Read the store and show what it has."""
    with open_group(args) as group:
        report = examine(group)
    _show(Page(write_result(args.json, "group-status", report)), report)
    return 0


def examine(group: Group) -> dict[str, Any]:
    """Return what the store has of a group. Raises StoreFault, and SharedDocumentError about the semaphore."""
    document = read_semaphore(group)  # also opens the connection and logs in, which the time below is not about
    began = time.monotonic()
    keys = group.store.list(documents.events_prefix(group.name))
    took = time.monotonic() - began
    events: list[dict[str, Any]] = []
    shown = 0
    for key in keys[:MOST_EVENTS]:
        if time.monotonic() - began > MOST_SECONDS:
            break
        events += _event(group, key)
        shown += 1
    return {
        "group": group.name,
        "store": group.store.name,
        "answer_seconds": round(took, 4),
        "members": list(group.settings.members) if group.name == group.settings.name else [],
        "semaphore": None if document is None else _semaphore(document),
        "events": events,
        "events_not_shown": len(keys) - shown,
    }


def _semaphore(document: Semaphore) -> dict[str, Any]:
    slots = [
        {
            "vm": vm,
            "event": key,
            "what": slot.what,
            "since": slot.since,
            "recovering": state == semaphore.RECOVERING,
            "within_limit": slot.granted,
        }
        for key, slot in document.slots.items()
        for vm, state in sorted(slot.names.items())
    ]
    waiting = sorted((waiter.place(key), key, waiter) for key, waiter in document.waiting.items())
    return {
        "slots": slots,
        "waiting": [
            {"vms": list(waiter.names), "event": key, "what": waiter.what, "since": waiter.since}
            for _place, key, waiter in waiting
        ],
        "releases": [
            {"vm": freed.name, "event": freed.key, "by": freed.by, "why": freed.why, "at": freed.at}
            for freed in document.releases
        ],
    }


def _event(group: Group, key: str) -> Iterator[dict[str, Any]]:
    """Yield what the VMs say of an event; nothing if it was removed meanwhile. Raises StoreFault."""
    content = group.store.read(key).value
    if content is None:
        return
    try:
        document = barrier.decode(content)
        event = documents.member(documents.load(barrier.SCHEMA, content), "event", str)
    except SharedDocumentError as error:
        yield {"event": key, "problem": str(error), "members": [], "closed_by": None}
        return
    members = [{"vm": vm, "state": said.state, "reason": said.reason} for vm, said in sorted(document.members.items())]
    closed = None if document.closed is None else document.closed.by
    yield {"event": event, "problem": None, "members": members, "closed_by": closed}


def _show(page: Page, report: dict[str, Any]) -> None:
    milliseconds = report["answer_seconds"] * 1000.0
    page.line(f"Group {report['group']}: {report['store']} answers in {milliseconds:.1f} ms.")
    if report["members"]:
        page.hanging("Members: ", ", ".join(report["members"]))
    page.line()
    if report["semaphore"] is None:
        page.line("It has no semaphore: events with a limit are held.", "bold", "yellow")
        page.line("Create it, once no VM of the group is disturbed: forewarn group create.")
    else:
        _show_semaphore(page, report["semaphore"])
    for event in report["events"]:
        page.line()
        closed = f": all are prepared, and {event['closed_by']} approves" if event["closed_by"] else ""
        page.line(f"Event {event['event']}{closed}", "bold")
        if event["problem"]:
            page.line(f"  {event['problem']}")
        wide = max((len(member["vm"]) for member in event["members"]), default=0)
        for member in event["members"]:
            said = member["state"] + (f": {member['reason']}" if member["reason"] else "")
            page.hanging(f"  {member['vm']:<{wide}}  ", said)
    if report["events_not_shown"]:
        page.line()
        page.line(f"Not shown: {report['events_not_shown']} more events.")


def _show_semaphore(page: Page, found: dict[str, Any]) -> None:
    lines = []
    for slot in found["slots"]:
        state = "recovers" if slot["recovering"] else "holds a slot"
        beyond = "" if slot["within_limit"] else ", beyond the limit"
        lines.append((slot["vm"], f"{state} for {slot['what'] or slot['event']} since {slot['since']}{beyond}"))
    for waiter in found["waiting"]:
        text = f"{', '.join(waiter['vms'])} for {waiter['what'] or waiter['event']} since {waiter['since']}"
        lines.append(("waits", text))
    lines += [
        ("freed", f"{freed['vm']} by {freed['by']} at {freed['at']}, for {freed['event']}: {freed['why']}")
        for freed in found["releases"]
    ]
    if not found["slots"]:
        page.line("Nobody holds a slot.")
    wide = max((len(lead) for lead, _text in lines), default=0)
    for lead, text in lines:
        page.hanging(f"{lead:<{wide}}  ", text)
