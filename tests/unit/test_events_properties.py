# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the wire brings: a document, or DocumentError and nothing else; what is read can be written."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.events import (
    API_VERSIONS,
    FIELD_SINCE,
    Document,
    DocumentError,
    format_time,
    has_field,
    parse_document,
    parse_time,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

api_versions = st.sampled_from([*API_VERSIONS, "2024-07-09"])
# Lone surrogates too: JSON may hold them, and so may a text that was decoded carelessly.
texts = st.text(st.characters(codec=None), max_size=20)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
times = st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(timezone.utc))

valid_events = st.fixed_dictionaries(
    {
        "EventId": st.uuids().map(str) | st.uuids().map(lambda guid: str(guid).upper()),
        "EventType": st.sampled_from(["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Unheard"]),
        "EventStatus": st.sampled_from(["Scheduled", "Started"]),
        "ResourceType": st.just("VirtualMachine"),
        "Resources": st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,14}", fullmatch=True), min_size=1, max_size=4),
        "NotBefore": times.map(format_time) | st.just(""),
    },
    optional={
        "Description": st.text(st.characters(codec="utf-8"), max_size=40),
        "EventSource": st.sampled_from(["Platform", "User"]),
        "DurationInSeconds": st.integers(-1, 2**63 - 1),
    },
)
valid_documents = st.fixed_dictionaries(
    {"DocumentIncarnation": st.integers(0, 2**31), "Events": st.lists(valid_events, max_size=4)}
)


def parse(body: bytes | str, api_version: str) -> Document | None:
    """Parse, and check what holds for every document; None where it is refused with a readable DocumentError."""
    try:
        result = parse_document(body, api_version)
    except DocumentError as error:
        str(error).encode()
        return None
    assert result.api_version == api_version
    assert len({event.key for event in result.events}) == len(result.events)
    for event in result.events:
        wire = json.dumps(event.as_dict())
        wire.encode()
        assert event.event_id.strip()
        assert {name for name in json.loads(wire) if not has_field(api_version, name)} == set()
        assert event.event_type or event.problems
        assert event.event_status or event.problems
        assert event.duration_in_seconds is None or -1 <= event.duration_in_seconds < 2**63
        assert event.not_before is None or event.not_before.tzinfo is timezone.utc
        assert all(event.resources)
        "".join((*event.problems, *event.resources, event.description or "")).encode()
    "".join(result.problems).encode()
    return result


@given(st.binary(max_size=200), api_versions)
@example(b"", "2020-07-01")
@example(b"\xef\xbb\xbf", "2020-07-01")
@example(b"\xff", "2020-07-01")
@example(b"{}", "2020-07-01")
@example(b"\x00", "2020-07-01")
@example(b"[" * 100_000, "2020-07-01")
@example(b'{"Events": [' + b'{"a":' * 50_000, "2020-07-01")
@example(b'{"DocumentIncarnation": ' + b"9" * 5_000 + b', "Events": []}', "2020-07-01")
def test_any_bytes(body: bytes, api_version: str) -> None:
    parse(body, api_version)


@given(st.text(st.characters(codec=None), max_size=100), api_versions)
def test_any_text(body: str, api_version: str) -> None:
    parse(body, api_version)


@given(anything, api_versions)
def test_any_json(value: Any, api_version: str) -> None:
    parse(json.dumps(value), api_version)
    parse(json.dumps({"DocumentIncarnation": value, "Events": [value]}), api_version)


@given(st.lists(st.dictionaries(st.sampled_from([*FIELD_SINCE, "Other"]), anything), max_size=3), api_versions)
def test_any_values_in_the_fields_of_an_event(events: list[dict[str, Any]], api_version: str) -> None:
    result = parse(json.dumps({"DocumentIncarnation": 1, "Events": events}), api_version)
    assert result is not None, "no event costs the document"
    listed = [event for event in events if isinstance(event.get("EventId"), str)]
    assert len(result.events) <= len(listed)


@given(valid_documents, st.data())
@settings(max_examples=examples(200))
def test_a_valid_document_with_one_value_replaced(wire: dict[str, Any], data: st.DataObject) -> None:
    """One broken field is a problem of its own event, and every other event stays as it was."""
    whole = parse(json.dumps(wire), "2020-07-01")
    assert whole is not None
    if not wire["Events"] or whole.problems:  # or hypothesis drew one id twice
        return
    index = data.draw(st.integers(0, len(wire["Events"]) - 1))
    name = data.draw(st.sampled_from(sorted(FIELD_SINCE.keys() - {"EventId"})))
    wire["Events"][index] = {**wire["Events"][index], name: data.draw(anything)}
    broken = parse(json.dumps(wire), "2020-07-01")
    assert broken is not None
    assert broken.problems == ()
    for place, (before, after) in enumerate(zip(whole.events, broken.events, strict=True)):
        assert place == index or before == after
        assert all(problem.startswith(name) for problem in after.problems)


@given(valid_documents, st.data())
def test_a_valid_document_damaged_on_the_way(wire: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(json.dumps(wire).encode())
    start = data.draw(st.integers(0, len(body)))
    body[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=4))
    parse(bytes(body), "2020-07-01")
    parse(bytes(body[:start]), "2020-07-01")


@given(valid_documents, api_versions)
def test_written_document_is_read_unchanged(wire: dict[str, Any], api_version: str) -> None:
    whole = parse(json.dumps(wire), "2020-07-01")
    assert whole is not None
    again = parse(
        json.dumps({"DocumentIncarnation": whole.incarnation, "Events": [event.as_dict() for event in whole.events]}),
        "2020-07-01",
    )
    assert again is not None
    if not whole.problems:
        assert again == whole
        older = parse(json.dumps(wire), api_version)
        assert older is not None
        assert all(event.problems == () for event in older.events)


@given(times)
def test_times_are_read_as_they_are_written(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment


@given(texts)
def test_any_text_is_a_time_or_value_error(text: str) -> None:
    try:
        assert parse_time(text).tzinfo is timezone.utc
    except ValueError as error:
        str(error).encode()


@pytest.mark.parametrize(
    "body",
    [
        *["null", "[]", "1", '"x"', "true", "{}", "{", "not JSON", "<html>busy</html>"],
        *['{"Events": null}', '{"Events": {}}', '{"Events": "none"}', '{"events": []}', '{"DocumentIncarnation": 1}'],
    ],
)
def test_what_is_no_document_is_refused(body: str) -> None:
    """Nothing follows from it, not even that no event is listed."""
    with pytest.raises(DocumentError, match=r"^the document (is|has) "):
        parse_document(body)


@pytest.mark.parametrize("body", [b"", b" \r\n", b"\xef\xbb\xbf", "", "\n"])
def test_an_empty_body_means_that_nothing_is_scheduled(body: bytes | str) -> None:
    assert parse_document(body, "2019-01-01") == Document(api_version="2019-01-01")


def test_a_byte_order_mark_is_no_fault() -> None:
    assert parse_document(b'\xef\xbb\xbf{"DocumentIncarnation": 3, "Events": []}').incarnation == 3


def test_the_error_names_the_place() -> None:
    with pytest.raises(DocumentError, match=r"line 2 column 11"):
        parse_document('{"DocumentIncarnation": 1,\n"Events": nothing}')
    with pytest.raises(DocumentError, match=r"not UTF-8 \(byte 2\)"):
        parse_document(b'{"\xff": 1}')
