# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn events``: what is scheduled now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from ..errors import ServiceError
from ..events import Document, Event, format_time
from ..imds.client import Client
from ..texts import duration_text
from .output.console import Console, one_line, write_result
from .output.page import Page, announced_text, fitted, resources_text, wrap
from .output.progress import slow_start, waiting
from .service_options import add_service_arguments, client_of, refuse_empty_name

_HEADER = ("TYPE", "STATUS", "NOT BEFORE", "DURATION", "SOURCE", "THIS VM", "RESOURCES", "EVENT ID")
_DESCRIPTION = "DESCRIPTION"
_NARROWEST = 24  # columns; if the table leaves fewer, descriptions go on separate lines
_STYLES = {"Started": "red", "leads": "bold", "affected": "bold"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_service_arguments(parser)
    parser.add_argument(
        "--vm-name", metavar="NAME", help="resource name of this VM (default: from the instance metadata)"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read the document and show it."""
    refuse_empty_name(args.vm_name)
    problems = Console(sys.stderr)
    answered = slow_start(problems)
    with client_of(args, problems) as client:
        with waiting(client, problems):
            document = client.read(args.patience)
        if not document.events:
            answered()
        vm_name = args.vm_name
        if vm_name is None and (document.events or args.json):
            vm_name = _own_name(client, problems)
    now = datetime.now(timezone.utc)
    console = write_result(args.json, "events", _as_json(document, client.endpoint.url, vm_name, now))
    if document.events:
        _show_table(console, document.events, vm_name, now)
    else:
        console.line("No event of the document could be read." if document.problems else "No events are scheduled.")
    for text in document.problems:
        problems.warning(text)
    for event in document.events:
        for text in event.problems:
            problems.warning(f"event {event.event_id}: {text}")
    return 0


def _own_name(client: Client, problems: Console) -> str | None:
    try:
        name = client.read_instance().name
    except ServiceError as error:
        why = ServiceError(f"it is not known which events affect this VM: {error.message}", "Name it with --vm-name.")
        problems.warning(str(why))
        return None
    if name is None:
        problems.warning("the instance metadata has no name for this VM. Name it with --vm-name.")
    return name


def _as_json(document: Document, endpoint: str, vm_name: str | None, now: datetime) -> dict[str, Any]:
    events = []
    for event in document.events:
        place = event.place_of(vm_name)
        events.append(
            {
                "event": event.as_dict(),
                "notice_seconds": event.notice_seconds(now),
                "affects_me": None if vm_name is None else place is not None,
                "leader": None if vm_name is None else place == 0,
                "problems": list(event.problems),
            }
        )
    return {
        "endpoint": endpoint,
        "api_version": document.api_version,
        "read_at": format_time(now),
        "incarnation": document.incarnation,
        "vm_name": vm_name,
        "events": events,
        "problems": list(document.problems),
    }


def _show_table(console: Console, events: Sequence[Event], vm_name: str | None, now: datetime) -> None:
    """Write a row for each event. A pipe gets whole descriptions; on a terminal they are cut or wrapped to fit."""
    rows = [_row(event, vm_name, now) for event in events]
    texts = [one_line(event.description or "") for event in events]
    width = Page(console).width
    taken = sum(max(len(one_line(row[column])) + 2 for row in (_HEADER, *rows)) for column in range(len(_HEADER)))
    if width is None or width - taken >= _NARROWEST:
        shown = [text if width is None else fitted(text, width - taken) for text in texts]
        console.table((*_HEADER, _DESCRIPTION), [(*row, text or "-") for row, text in zip(rows, shown)], _STYLES)
    else:

        def write_description(number: int) -> None:
            for line in wrap(texts[number], width - 2) if texts[number] else []:
                console.line(one_line(f"  {line}"))

        console.table(_HEADER, rows, _STYLES, write_description)


def _row(event: Event, vm_name: str | None, now: datetime) -> tuple[str, ...]:
    return (
        event.event_type or "?",
        event.event_status or "?",
        _not_before(event, now),
        announced_text(event.duration_in_seconds),
        event.event_source or "-",
        _eligibility(event, vm_name),
        resources_text(event.resources),
        event.event_id,
    )


def _not_before(event: Event, now: datetime) -> str:
    if event.not_before is None:
        return "-"
    left = (event.not_before - now).total_seconds()
    when = f"in {duration_text(left)}" if left > 0 else f"{duration_text(-left)} ago"
    return f"{format_time(event.not_before)} ({when})"


def _eligibility(event: Event, vm_name: str | None) -> str:
    if vm_name is None:
        return "?"
    place = event.place_of(vm_name)
    if place is None:
        return "not affected"
    return "leads" if place == 0 else "affected"
