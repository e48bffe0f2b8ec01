# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings: documents of the service and, from a runner's journal, its decisions. docs/replay.md has the format.

A line of a file that cannot be read is reported and left out; nothing here is a reason to stop.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from io import BufferedIOBase
from typing import Any, Callable, NamedTuple

from ...events import VM_FACTS, Document, DocumentError, Vm, parse_document, parse_time

LONGEST_LINE = 16 * 1024 * 1024  # bytes
# Kinds of a runner's entries that a replay reads.
DOCUMENT, DECISION, APPROVED = "document", "decision", "approved"
KINDS = (DOCUMENT, DECISION, APPROVED)
_IN_DOUBT = "the event is in doubt: "
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Report = Callable[[str, str], None]  # where, what is wrong there


class RecordedDecision(NamedTuple):
    """A decision that a runner kept; ``event`` is the Event.key, ``eligibility`` a code of approvals."""

    at: datetime
    event: str
    status: str
    output: str
    policy: str | None
    rule: str | None
    eligibility: str
    reason: str


class RecordedDocument(NamedTuple):
    """The document at a moment, and what a runner decided on it until the next record.

    ``at`` is None if the time was not recorded. Without ``document``, the previous one is still listed. ``approved``
    has the key of each event whose approval the service accepted, and when. ``vm`` is the VM that asked, or None.
    """

    at: datetime | None
    document: Document | None
    vm: Vm | None = None
    decisions: tuple[RecordedDecision, ...] = ()
    approved: tuple[tuple[str, datetime], ...] = ()


class RecordedEntry(NamedTuple):
    """An entry of a runner's journal; ``wall`` is in seconds since 1970."""

    where: str
    kind: str
    wall: float
    fields: Mapping[str, Any]


def read_lines(
    stream: BufferedIOBase, name: str, api_version: str, report: Report, *, timed: bool = False
) -> Iterator[RecordedDocument]:
    """Yield a record for each line of JSON; ``timed``: each must have its time.

    ``report`` gets each line that cannot be used. Raises OSError.
    """
    before: dict[str, Any] = {}
    document: Document | None = None
    for number, line in enumerate(_lines(stream), 1):
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise ValueError(f"the line is longer than {LONGEST_LINE // 2**20} MiB")
            data, at, vm = _parse_line(line)
            if timed and at is None:
                raise ValueError("the line has no 'time', and the policies decide by the time")
            if document is None or not _same(data, before):  # most polls return the same as the previous one
                document, before = parse_document(json.dumps(data), api_version), data
        except (ValueError, RecursionError, DocumentError) as error:
            report(f"{name}:{number}", _words(error))
            continue
        yield RecordedDocument(at, document, vm)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two documents are the same JSON; to Python, true is 1."""
    return one == other and json.dumps(one) == json.dumps(other)


def read_journal(entries: Iterable[RecordedEntry], api_version: str, report: Report) -> Iterator[RecordedDocument]:
    """Yield a record for each document of a runner's journal, with its decisions; drills are left out."""
    listed: tuple[datetime, Document] | None = None
    decisions: list[RecordedDecision] = []
    approved: list[tuple[str, datetime]] = []
    doubts: dict[str, str] = {}
    for entry in entries:
        fields = entry.fields
        if fields.get("drill"):
            continue
        try:
            at = _moment(entry.wall)
            if entry.kind == DECISION:
                decisions.append(_past(at, fields))
            elif entry.kind == APPROVED:
                approved += [(str(event).lower(), at) for event in fields["event_ids"]]
            elif entry.kind == DOCUMENT:
                document = parse_document(json.dumps(fields["document"]), api_version)
                if listed is not None:
                    yield _complete(*listed, decisions, approved, doubts)
                decisions, approved = [], []
                problems = tuple(str(problem) for problem in fields.get("problems") or ())
                listed = at, document._replace(problems=(*document.problems, *problems))
        except (LookupError, TypeError, ValueError, OverflowError, DocumentError) as error:
            report(entry.where, _words(error))
    if listed is not None:
        yield _complete(*listed, decisions, approved, doubts)


def _complete(
    at: datetime,
    document: Document,
    decisions: list[RecordedDecision],
    approved: list[tuple[str, datetime]],
    doubts: dict[str, str],
) -> RecordedDocument:
    """Return the record of a document and what followed it.

    A journal has only what could be read of an event. A decision shows that something could not be read: from then
    on, until another decision shows otherwise, the event stays in doubt.
    """
    for past in decisions:
        doubts.pop(past.event, None)
        if past.policy is None and past.reason.startswith(_IN_DOUBT):
            doubts[past.event] = past.reason[len(_IN_DOUBT) :]
    for key in doubts.keys() - {event.key for event in document.events}:
        del doubts[key]
    events = tuple(
        event._replace(problems=(doubts[event.key],)) if event.key in doubts and not event.problems else event
        for event in document.events
    )
    return RecordedDocument(at, document._replace(events=events), None, tuple(decisions), tuple(approved))


def _past(at: datetime, fields: Mapping[str, Any]) -> RecordedDecision:
    policy, rule = fields.get("policy"), fields.get("rule")
    return RecordedDecision(
        at,
        str(fields["event_id"]).lower(),
        str(fields.get("status", "")),
        str(fields["output"]),
        None if policy is None else str(policy),
        None if rule is None else str(rule),
        str(fields.get("eligibility", "")),
        str(fields.get("reason", "")),
    )


def _lines(stream: BufferedIOBase) -> Iterator[bytes | None]:
    """Yield the lines; None for one that is too long to hold."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)
        yield None


def _parse_line(line: bytes) -> tuple[dict[str, Any], datetime | None, Vm | None]:
    """Return a line's document, time and VM. Raises ValueError, RecursionError."""
    data = json.loads(line.rstrip())  # otherwise a mistake at its end would have a place on the next line
    if not isinstance(data, dict):
        raise ValueError("the line is not a JSON object")
    if "Events" in data:
        return data, None, None
    document = data.get("document")
    if not isinstance(document, dict):
        raise ValueError("the line has neither Events nor an object 'document'")
    return document, _time(data.get("time")), _vm(data.get("vm"))


def _time(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return _checked(parse_time(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _moment(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"'time' {str(value)[:40]!r} is not a valid time: {error}") from error
    raise ValueError("'time' is neither a text like 2026-01-31T15:04:05Z nor seconds since 1970")


def _moment(seconds: float) -> datetime:
    return _checked(_EPOCH + timedelta(seconds=seconds))


def _checked(moment: datetime) -> datetime:
    """Return a time that is far from the ends of the calendar. Raises ValueError for any other."""
    if not 1970 <= moment.year <= 9000:
        raise ValueError("before 1970 or after 9000")
    return moment


def _vm(value: object) -> Vm | None:
    if value is None:
        return None
    if isinstance(value, str) and value:
        return Vm(value)
    if not isinstance(value, dict):
        raise ValueError("'vm' is neither a name nor an object with facts about the VM")
    unknown = sorted(value.keys() - {*VM_FACTS, "tags"})
    if unknown:
        raise ValueError(f"'vm' has an unknown fact {unknown[0]}; known are {', '.join(VM_FACTS)}, tags")
    tags = value.get("tags")
    texts = [fact for name, fact in value.items() if name != "tags" and fact is not None]
    if tags is not None:
        if not isinstance(tags, dict):
            raise ValueError("'tags' of 'vm' is not an object")
        texts += tags.values()
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("the facts and tags of 'vm' are texts")
    return Vm(**value)


def _words(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte {error.start + 1} of the line"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error)
