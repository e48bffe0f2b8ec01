# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn approve``: approves listed events by id, for all their resources (SE-30 … SE-33)."""

from __future__ import annotations

import argparse
import sys

from ..errors import InputError
from ..events import Document, Event
from ..imds.approval_retries import approve_with_retries
from .output.console import Console, one_line, write_result
from .output.progress import waiting
from .service_options import add_service_arguments, client_of

APPROVED, STARTED, NOT_LISTED, NOT_SENT = "approved", "already-started", "not-listed", "not-sent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event_ids", metavar="EVENT_ID", nargs="+", help="id of a listed event, in either case")
    add_service_arguments(parser)
    parser.add_argument(
        "--despite-pause", action="store_true", help="approve even while approvals are paused on this VM"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Approve the events that have not started; approve none of them if an id is not listed."""
    problems = Console(sys.stderr)
    wanted = {event_id.strip().lower(): event_id.strip() for event_id in args.event_ids}
    if "" in wanted:
        raise InputError("an EVENT_ID is empty.", "Is a variable of the shell not set? forewarn events lists the ids.")
    with client_of(args, problems) as client:
        with waiting(client, problems):
            document = client.read(args.patience)
        for text in document.problems:
            problems.warning(text)
        listed = {event.key: event for event in document.events}
        results = {key: _eligibility(listed.get(key)) for key in wanted}
        missing = [wanted[key] for key, result in results.items() if result == NOT_LISTED]
        if missing:
            results = {key: NOT_SENT if result == APPROVED else result for key, result in results.items()}
        else:
            to_send = [listed[key] for key, result in results.items() if result == APPROVED]
            if to_send and not args.despite_pause:
                from .approval_pause import refuse_if_paused  # here: it needs what Python lacks elsewhere

                refuse_if_paused()
            for event in to_send:  # a person who names an event has the last word
                for text in event.doubts:
                    problems.warning(f"event {event.event_id}: {text}; approving it anyway")
            if to_send:
                approve_with_retries(client, document, to_send, args.patience)
    spelled = {key: listed[key].event_id if key in listed else wanted[key] for key in wanted}
    content = {
        "endpoint": client.endpoint.url,
        "api_version": document.api_version,
        "incarnation": document.incarnation,
        "events": [{"event_id": spelled[key], "result": result} for key, result in results.items()],
        "problems": list(document.problems),
    }
    console = write_result(args.json, "approve", content)
    if missing:
        raise InputError(f"not listed by the service: {', '.join(missing)}. Nothing was approved.", _known(document))
    for key, result in results.items():
        _report(console, listed[key], result)
    return 0


def _eligibility(event: Event | None) -> str:
    if event is None:
        return NOT_LISTED
    return STARTED if event.event_status == "Started" else APPROVED


def _report(console: Console, event: Event, result: str) -> None:
    what = f"{event.event_type or 'event'} of {', '.join(event.resources) or 'no named resource'}"
    if result == STARTED:
        console.line(one_line(f"already started, nothing sent: {event.event_id} ({what})"))
    else:
        console.result("approved", f"{event.event_id} ({what})", "green")


def _known(document: Document) -> str:
    if document.problems:
        known = ", ".join(one_line(event.event_id) for event in document.events) or "none"
        return f"The document cannot be read in full: the event may be in the unreadable part. Listed: {known}."
    if not document.events:
        return "No event is scheduled now: it may have ended or been cancelled."
    return "Listed: " + ", ".join(one_line(event.event_id) for event in document.events) + "."
