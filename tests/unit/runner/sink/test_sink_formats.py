# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two formats of a sink."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.runner.clocks import Stamp
from forewarn.runner.journal.reader import JournalEntry
from forewarn.runner.sink.formats import Origin, Row, json_lines, otlp

ORIGIN = Origin("5eed", "web-0", None, dry_run=False)


def entry(identifier: int, kind: str, wall: float, fields: dict[str, Any]) -> JournalEntry:
    return JournalEntry(identifier, kind, None, Stamp(wall, wall - 1789999987.75, "b007"), fields)


ROWS = [
    Row(entry(1, "runner-started", 1790000000.25, {"version": "1", "once": False, "policy": None})),
    Row(entry(2, "hook-ended", 1790000001.0, {"result": "failed"}), "68DAE20B", "Reboot", True),
]


def test_each_entry_is_one_line_of_json() -> None:
    content_type, body = json_lines(ROWS, ORIGIN)
    assert content_type == "application/x-ndjson"
    assert body.endswith(b"\n")
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines[0] == {
        "forewarn": {"schema": "sink", "version": 1},
        "stream": "5eed",
        "sequence": 1,
        "time": "2026-09-21T14:13:20.250Z",
        "host": "web-0",
        "vm": None,
        "boot_id": "b007",
        "boot_seconds": 12.5,
        "dry_run": False,
        "kind": "runner-started",
        "event_id": None,
        "event_type": None,
        "drill": None,
        "fields": {"version": "1", "once": False, "policy": None},
    }
    names = ("sequence", "kind", "event_id", "event_type", "drill")
    assert [lines[1][name] for name in names] == [2, "hook-ended", "68DAE20B", "Reboot", True]


def test_no_text_breaks_a_line_or_the_encoding() -> None:
    fields = {"reason": "a\nb\u2028c\ud800d\0"}
    row = Row(entry(3, "state", 0.0, fields))
    (line,) = json_lines([row], ORIGIN).body.splitlines()
    assert json.loads(line)["fields"] == fields
    assert "a\\nb" in otlp([row], ORIGIN).body.decode("utf-8")


def test_logs_are_those_of_the_specification() -> None:
    content_type, body = otlp(ROWS, ORIGIN._replace(vm="web_0"))
    assert content_type == "application/json"
    (logs,) = json.loads(body)["resourceLogs"]
    attributes = {entry["key"]: entry["value"] for entry in logs["resource"]["attributes"]}
    assert attributes["service.name"] == {"stringValue": "forewarn"}
    assert attributes["forewarn.vm"] == {"stringValue": "web_0"}
    assert attributes["forewarn.dry_run"] == {"boolValue": False}
    (scope,) = logs["scopeLogs"]
    first, second = scope["logRecords"]
    assert first["timeUnixNano"] == "1790000000250000000"
    assert first["eventName"] == "forewarn.runner-started"
    assert {"key": "policy", "value": {}} in first["body"]["kvlistValue"]["values"]
    assert {"key": "forewarn.sequence", "value": {"intValue": "1"}} in first["attributes"]
    assert (first["severityText"], second["severityText"]) == ("INFO", "WARN")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_real_parser_reads_the_logs() -> None:
    """The judge is the specification itself: its messages, generated for Python."""
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    fields = {"n": -5, "big": 2**70, "x": 0.5, "list": [1, "two", {"three": None}], "deep": deep(60), "odd": "\ud800"}
    rows = [*ROWS, Row(entry(3, "decision", 1790000002.0, fields))]
    found = json_format.Parse(otlp(rows, ORIGIN).body, service.ExportLogsServiceRequest())
    (record, _second, third) = found.resource_logs[0].scope_logs[0].log_records
    assert record.time_unix_nano == 1790000000250000000
    assert record.severity_number == 9
    values = {entry.key: entry.value for entry in third.body.kvlist_value.values}
    assert values["n"].int_value == -5
    assert values["big"].string_value == str(2**70)
    assert values["list"].array_value.values[1].string_value == "two"
    numbers = [entry.value.int_value for entry in third.attributes if entry.key == "forewarn.sequence"]
    assert numbers == [3]
