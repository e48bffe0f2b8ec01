# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events that commands about policies are given: a document from a file, its time, and when it was first seen."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...events import Document, DocumentError, Event, Vm, parse_document, parse_time
from ...policy.decision import Facts


def add_times(parser: argparse.ArgumentParser) -> None:
    """Add ``--now`` and ``--first-seen``."""
    parser.add_argument("--now", metavar="TIME", help="the time to decide at, as 2026-01-31T15:04:05Z (default: now)")
    parser.add_argument("--first-seen", metavar="TIME", help="when the event was first seen (default: at --now)")


def given_now(args: argparse.Namespace) -> datetime:
    """Return the time of ``--now``, otherwise what the clock says. Raises InputError."""
    return _time("--now", args.now) if args.now else datetime.now(timezone.utc)


def given_facts(args: argparse.Namespace, vm: Vm, document: Document, now: datetime) -> Facts:
    """Return the facts about a document that the options give. Raises InputError."""
    first_seen = _time("--first-seen", args.first_seen) if args.first_seen else now
    return Facts(now, vm, {event.key: first_seen for event in document.events})


def chosen_events(document: Document, event_id: str | None, source: str) -> list[Event]:
    """Return the events of a document, or the one of ``--event-id``. Raises InputError if there is none."""
    chosen = [event for event in document.events if event_id is None or event.key == event_id.lower()]
    if not chosen:
        listed = ", ".join(event.event_id for event in document.events) or "none"
        wanted = f"event {event_id}" if event_id else "event"
        doubts = "".join(f"; {problem}" for problem in document.problems)
        raise InputError(f"{source}: the document has no {wanted}{doubts}", f"Its events: {listed}.")
    return chosen


def read_document(source: str, api_version: str) -> Document:
    """Read an event, a list of events, a document, or the output of ``forewarn events --json``; ``-`` is stdin.

    Raises InputError.
    """
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror or error}") from error
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source}: not JSON: {error}", "Save the output of 'forewarn events --json', or the answer of the service."
        ) from error
    if isinstance(data, dict) and "forewarn" in data:  # from 'forewarn events --json'
        items = data.get("events")
        data = (
            [item.get("event") if isinstance(item, dict) else item for item in items] if isinstance(items, list) else []
        )
    elif isinstance(data, dict) and "Events" not in data:
        data = [data]
    return document_of(data, source, api_version)


def document_of(data: Any, source: str, api_version: str) -> Document:
    """Return a document, or a list of events as one. Raises InputError that names the ``source``."""
    if isinstance(data, list):
        data = {"DocumentIncarnation": 1, "Events": data}
    try:
        return parse_document(json.dumps(data), api_version)
    except DocumentError as error:
        raise InputError(f"{source}: {error.message}", "Give an event, or a document with an array Events.") from error


def _time(option: str, text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: not a time: {error}") from error
