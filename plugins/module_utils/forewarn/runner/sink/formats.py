# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats of journal entries for a sink: JSON lines, or logs of OpenTelemetry (OTLP/HTTP, JSON)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from ... import __version__
from ..journal.reader import JournalEntry

JSON_LINES, OTLP = "json-lines", "otlp"
# For OpenTelemetry: its numbers of severities.
_INFO, _WARN = (9, "INFO"), (13, "WARN")
_WARNINGS = ("-failed", "-damaged", "-trouble", "-left-over", "-refused")
_DEEPEST = 20


class Origin(NamedTuple):
    """Where entries come from.

    ``stream`` changes with the journal's file, in which the numbers of entries begin with 1 again. ``vm`` is the
    resource name, None while it is not known.
    """

    stream: str
    host: str
    vm: str | None
    dry_run: bool


class Row(NamedTuple):
    """An entry of the journal, and its event. The rest is None for what does not belong to an event."""

    entry: JournalEntry
    event_id: str | None = None
    event_type: str | None = None
    drill: bool | None = None


class Message(NamedTuple):
    """The body of a request."""

    content_type: str
    body: bytes


def json_lines(rows: Sequence[Row], origin: Origin) -> Message:
    """Return an object per line and row: see docs/sink.md."""
    lines = []
    for row in rows:
        entry = row.entry
        content = {
            "forewarn": {"schema": "sink", "version": 1},
            "stream": origin.stream,
            "sequence": entry.id,
            "time": _time(entry.stamp.wall),
            "host": origin.host,
            "vm": origin.vm,
            "boot_id": entry.stamp.boot_id,
            "boot_seconds": entry.stamp.boot,
            "dry_run": origin.dry_run,
            "kind": entry.kind,
            "event_id": row.event_id,
            "event_type": row.event_type,
            "drill": row.drill,
            "fields": entry.fields,
        }
        lines.append(json.dumps(content, separators=(",", ":")))  # ASCII: a lone surrogate is \udxxx
    return Message("application/x-ndjson", "".join(f"{line}\n" for line in lines).encode("ascii"))


def otlp(rows: Sequence[Row], origin: Origin) -> Message:
    """Return an ExportLogsServiceRequest of OpenTelemetry in JSON, for ``…/v1/logs``."""
    resource = {
        "service.name": "forewarn",
        "service.version": __version__,
        "host.name": origin.host,
        "cloud.provider": "azure",
        "forewarn.vm": origin.vm,
        "forewarn.stream": origin.stream,
        "forewarn.dry_run": origin.dry_run,
    }
    scope = {"name": "forewarn", "version": __version__}
    logs = {"scope": scope, "logRecords": [_log_record(row) for row in rows]}
    content = {"resourceLogs": [{"resource": {"attributes": _attributes(resource)}, "scopeLogs": [logs]}]}
    # Protocol buffers take no half of a character, not even escaped.
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Message("application/json", text.encode("utf-8", "replace"))


FORMATS: Mapping[str, Callable[[Sequence[Row], Origin], Message]] = MappingProxyType(
    {JSON_LINES: json_lines, OTLP: otlp}
)


def _time(wall: float) -> str:
    from datetime import datetime, timezone

    try:
        moment = datetime.fromtimestamp(wall, timezone.utc)
    except (ValueError, OverflowError, OSError):  # of a damaged row
        moment = datetime.fromtimestamp(0, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log_record(row: Row) -> dict[str, Any]:
    entry = row.entry
    number, name = _WARN if entry.fields.get("failed") or entry.kind.endswith(_WARNINGS) else _INFO
    result = entry.fields.get("result")
    if entry.kind in ("hook-ended", "notified") and result != "succeeded":
        number, name = _WARN
    nanoseconds = str(max(0, round(entry.stamp.wall * 1e6) * 1000))  # a float has no more digits
    attributes = {
        "forewarn.sequence": entry.id,
        "forewarn.kind": entry.kind,
        "forewarn.boot_id": entry.stamp.boot_id,
        "forewarn.event_id": row.event_id,
        "forewarn.event_type": row.event_type,
        "forewarn.drill": row.drill,
    }
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": name,
        "eventName": f"forewarn.{entry.kind}",
        "body": _any_value(dict(entry.fields), _DEEPEST),
        "attributes": _attributes(attributes),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value, _DEEPEST)} for key, value in values.items() if value is not None]


def _any_value(value: object, deepest: int) -> dict[str, Any]:
    """Return an AnyValue. In JSON, 64-bit integers are texts."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Mapping) and deepest:
        items = [{"key": str(key), "value": _any_value(inner, deepest - 1)} for key, inner in value.items()]
        return {"kvlistValue": {"values": items}}
    if isinstance(value, (list, tuple)) and deepest:
        return {"arrayValue": {"values": [_any_value(inner, deepest - 1) for inner in value]}}
    return {"stringValue": str(value)}
