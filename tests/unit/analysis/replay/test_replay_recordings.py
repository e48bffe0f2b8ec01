# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings: lines of JSON and a runner's entries, good and bad."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from forewarn.analysis.replay import recordings
from forewarn.analysis.replay.recordings import RecordedDocument, RecordedEntry, read_journal, read_lines
from forewarn.events import LATEST_API_VERSION, Vm
from hypothesis import given
from hypothesis import strategies as st

EVENT = {"EventId": "E1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}
DOCUMENT = {"DocumentIncarnation": 1, "Events": [EVENT]}
TIME = "2026-05-04T12:00:00Z"
NOW = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def lines(*given: Any, timed: bool = False) -> tuple[list[RecordedDocument], list[tuple[str, str]]]:
    content = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in given)
    bad: list[tuple[str, str]] = []
    stream = io.BytesIO(content)
    found = list(read_lines(stream, "r.jsonl", LATEST_API_VERSION, lambda *reported: bad.append(reported), timed=timed))
    return found, bad


def journal(*entries: tuple[str, dict[str, Any]]) -> tuple[list[RecordedDocument], list[tuple[str, str]]]:
    bad: list[tuple[str, str]] = []
    wall = NOW.timestamp()
    given = [
        RecordedEntry(f"entry {number}", kind, wall + number, fields) for number, (kind, fields) in enumerate(entries)
    ]
    return list(read_journal(given, LATEST_API_VERSION, lambda *reported: bad.append(reported))), bad


def decision(**fields: Any) -> tuple[str, dict[str, Any]]:
    reported = {
        "event_id": "E1",
        "status": "Scheduled",
        "output": "hold",
        "reason": "so",
        "eligibility": "refused-by-policy",
    }
    return "decision", {**reported, **fields}


def test_line_is_a_document_or_contains_one() -> None:
    found, bad = lines(DOCUMENT, b"", {"time": TIME, "document": DOCUMENT, "vm": "web_0", "whatever": 1})
    assert bad == []
    assert [(entry.at, entry.vm) for entry in found] == [(None, None), (NOW, Vm("web_0"))]
    assert found[0].document == found[1].document


def test_times_and_facts() -> None:
    facts = {"name": "web_0", "zone": None, "tags": {"role": "web"}}
    found, bad = lines(
        {"time": NOW.timestamp() + 0.5, "document": DOCUMENT, "vm": facts},
        {"time": "Mon, 04 May 2026 12:00:00 GMT", "document": DOCUMENT},
    )
    assert bad == []
    assert [entry.at for entry in found] == [NOW + timedelta(seconds=0.5), NOW]
    assert found[0].vm == Vm("web_0", tags={"role": "web"})


def test_the_same_document_is_parsed_once() -> None:
    found, _bad = lines(*({"time": TIME, "document": DOCUMENT} for _ in range(3)))
    assert found[0].document is found[2].document


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"Events": [', "not JSON: Expecting value at column 13"),
        (b'{"Events": "\xff"}', "not UTF-8: byte 13 of the line"),
        (b"[" * 100000, "nested too deeply"),
        (b"[1]", "the line is not a JSON object"),
        (b'{"document": []}', "the line has neither Events nor an object 'document'"),
        (b'{"document": {}}', "the document has no array Events"),
        (b'{"Events": {}}', "the document has no array Events"),
        ({"document": DOCUMENT, "time": "noon"}, "'time' 'noon' is not a valid time: neither 'Mon"),
        ({"document": DOCUMENT, "time": 1e300}, "'time' '1e+300' is not a valid time"),
        (
            {"document": DOCUMENT, "time": "9999-12-31T23:59:59Z"},
            "'time' '9999-12-31T23:59:59Z' is not a valid time: before 1970",
        ),
        ({"document": DOCUMENT, "time": -1}, "'time' '-1' is not a valid time: before 1970 or after 9000"),
        ({"document": DOCUMENT, "time": True}, "'time' is neither a text like"),
        ({"document": DOCUMENT, "vm": ""}, "'vm' is neither a name nor"),
        ({"document": DOCUMENT, "vm": {"nam": "x"}}, "'vm' has an unknown fact nam; known are name, location"),
        ({"document": DOCUMENT, "vm": {"name": 1}}, "the facts and tags of 'vm' are texts"),
        ({"document": DOCUMENT, "vm": {"tags": [1]}}, "'tags' of 'vm' is not an object"),
    ],
)
def test_a_bad_line_is_named_and_left_out(line: Any, said: str) -> None:
    found, bad = lines(DOCUMENT, line, DOCUMENT)
    assert len(found) == 2
    ((where, what),) = bad
    assert where == "r.jsonl:2"
    assert what.startswith(said)


def test_line_without_a_needed_time_is_bad() -> None:
    found, bad = lines(DOCUMENT, {"time": TIME, "document": DOCUMENT}, timed=True)
    assert len(found) == 1
    assert bad == [("r.jsonl:1", "the line has no 'time', and the policies decide by the time")]


def test_endless_line_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "LONGEST_LINE", 200)
    found, bad = lines(DOCUMENT, b"x" * 1000, DOCUMENT)
    assert len(found) == 2
    assert bad[0][0] == "r.jsonl:2"
    assert "the line is longer than" in bad[0][1]


@given(st.binary(max_size=200))
def test_no_bytes_whatever_are_an_exception(content: bytes) -> None:
    found, bad = lines(content)
    assert len(found) + len(bad) <= content.count(b"\n") + 1


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_no_time_or_vm_whatever_is_an_exception(value: Any) -> None:
    for name in ("time", "vm", "document"):
        found, bad = lines({"document": DOCUMENT, name: value})
        assert len(found) + len(bad) == 1


def test_a_compressed_stream_reads_alike() -> None:
    stream: Any = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(json.dumps(DOCUMENT).encode())))
    assert len(list(read_lines(stream, "r", LATEST_API_VERSION, lambda *_told: None))) == 1


def test_journal_decisions_belong_to_the_previous_document() -> None:
    found, bad = journal(
        decision(),
        ("document", {"document": {"DocumentIncarnation": 1, "Events": []}}),
        ("document", {"document": DOCUMENT}),
        decision(output="approve", policy="p", rule="r"),
        ("approved", {"event_ids": ["E1"]}),
        ("document", {"document": DOCUMENT}),
    )
    assert bad == []
    assert [len(entry.decisions) for entry in found] == [0, 1, 0]
    assert found[1].at == NOW + timedelta(seconds=2)
    assert found[1].decisions[0].at == NOW + timedelta(seconds=3)
    assert found[1].decisions[0][1:6] == ("e1", "Scheduled", "approve", "p", "r")
    assert found[1].approved == (("e1", NOW + timedelta(seconds=4)),)


def test_drills_are_left_out() -> None:
    found, _bad = journal(
        ("document", {"document": DOCUMENT}), ("document", {"document": DOCUMENT, "drill": True}), decision(drill=True)
    )
    assert [entry.decisions for entry in found] == [()]


def test_an_event_that_was_in_doubt_stays_so() -> None:
    doubt = decision(reason="the event is in doubt: NotBefore is a boolean, not a time")
    found, _bad = journal(
        ("document", {"document": DOCUMENT}),
        doubt,
        ("document", {"document": {**DOCUMENT, "DocumentIncarnation": 2}}),
        ("document", {"document": {**DOCUMENT, "DocumentIncarnation": 3}}),
        decision(policy="p", reason="all is well"),
    )
    assert [problems(entry) for entry in found] == [("NotBefore is a boolean, not a time",)] * 2 + [()]


def test_problems_of_a_document_are_kept() -> None:
    (found,), _bad = journal(("document", {"document": DOCUMENT, "problems": ["Events[1] is 1, not an object"]}))
    assert found.document is not None
    assert found.document.problems == ("Events[1] is 1, not an object",)


def test_a_wall_clock_beyond_the_calendar_is_named() -> None:
    bad: list[tuple[str, str]] = []
    entry = RecordedEntry("entry 1", "document", 1e15, {"document": DOCUMENT})
    assert list(read_journal([entry], LATEST_API_VERSION, lambda *reported: bad.append(reported))) == []
    assert [where for where, _what in bad] == ["entry 1"]


@pytest.mark.parametrize(
    "entry", [("document", {}), ("document", {"document": 1}), ("decision", {}), ("approved", {"event_ids": 1})]
)
def test_an_entry_that_cannot_be_used_is_named(entry: tuple[str, dict[str, Any]]) -> None:
    found, bad = journal(("document", {"document": DOCUMENT}), entry)
    assert len(found) == 1
    assert [where for where, _what in bad] == ["entry 1"]


def problems(entry: RecordedDocument) -> Sequence[str]:
    assert entry.document is not None
    return entry.document.events[0].problems
