# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group status``: who holds a slot, who waits, and how far the VMs of each event are."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from ..runner.groups import barrier, documents, semaphore
from ..runner.groups.documents import SharedDocumentError
from ..runner.groups.semaphore import Semaphore
from .console import Console, write_json
from .group_common import Group, add_config_argument, open_group, read_semaphore
from .page import Page

MOST_EVENTS = 200  # of which a barrier is read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_argument(parser)
    parser.add_argument(
        "--group", metavar="NAME", help="a group that policies name by CEL (default: the configuration's)"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = "Exit codes: 0 if the store answers, 2 for bad usage, 3 if it does not."


def run(args: argparse.Namespace) -> int:
    """Read the store and show what it has."""
    with open_group(args) as group:
        report = examine(group, args.group or group.settings.name)
    if args.json:
        write_json("group", report)
    else:
        _show(Page(Console(sys.stdout)), report)
    return 0


def examine(group: Group, name: str) -> dict[str, Any]:
    """Return what the store has of a group. Raises StoreFault and SharedDocumentError."""
    began = time.monotonic()
    document, _version = read_semaphore(group, name)
    took = time.monotonic() - began
    keys = [key for key in group.store.list(documents.prefix(name)) if key != documents.semaphore_key(name)]
    events = [_event(group, key) for key in keys[:MOST_EVENTS]]
    return {
        "group": name,
        "store": group.store.name,
        "answer_seconds": round(took, 4),
        "members": list(group.settings.members) if name == group.settings.name else [],
        "semaphore": None if document is None else _semaphore(document),
        "events": [event for event in events if event is not None],
        "events_not_shown": max(0, len(keys) - MOST_EVENTS),
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
        "releases": [release._asdict() for release in document.releases],
    }


def _event(group: Group, key: str) -> dict[str, Any] | None:
    """Return a barrier; None if it was removed meanwhile."""
    content = group.store.read(key).value
    if content is None:
        return None
    try:
        document = barrier.decoded(content)
        event = documents.loaded(barrier.SCHEMA, content).get("event", "")
    except SharedDocumentError as error:
        return {"event": key, "problem": str(error), "members": [], "approved_by": None}
    members = [{"vm": vm, "state": said.state, "reason": said.reason} for vm, said in sorted(document.members.items())]
    closed = None if document.closed is None else document.closed.by
    return {"event": event, "problem": None, "members": members, "approved_by": closed}


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
        closed = f", approved by {event['approved_by']}" if event["approved_by"] else ""
        page.line(f"Event {event['event']}{closed}", "bold")
        if event["problem"]:
            page.line(f"  {event['problem']}")
        for member in event["members"]:
            page.hanging(f"  {member['vm']}  ", member["state"] + (f": {member['reason']}" if member["reason"] else ""))
    if report["events_not_shown"]:
        page.line(f"And {report['events_not_shown']} more events.")


def _show_semaphore(page: Page, found: dict[str, Any]) -> None:
    if not found["slots"]:
        page.line("Nobody holds a slot.")
    for slot in found["slots"]:
        state = "recovers" if slot["recovering"] else "holds a slot"
        beyond = "" if slot["within_limit"] else ", beyond the limit"
        page.hanging(f"{slot['vm']}  ", f"{state} for {slot['what'] or slot['event']} since {slot['since']}{beyond}")
    for waiter in found["waiting"]:
        page.hanging(
            "waits  ", f"{', '.join(waiter['vms'])} for {waiter['what'] or waiter['event']} since {waiter['since']}"
        )
    for release in found["releases"]:
        text = f"{release['name']} by {release['by']} at {release['at']}: {release['why']}"
        page.hanging("freed  ", text)
