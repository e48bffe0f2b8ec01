# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of a document is read: what is beyond that is in doubt or skipped, and reported."""

from __future__ import annotations

import json

import pytest
from forewarn.events import MAX_DEPTH, MAX_EVENTS, MAX_NAMES, MAX_PROBLEMS, DocumentError, parse_document
from tools.fixtures.events import MIGRATION


def _many(number: int, **fields: object) -> bytes:
    items = [{**MIGRATION, "EventId": f"E{place}", **fields} for place in range(number)]
    return json.dumps({"DocumentIncarnation": 1, "Events": items}).encode()


def test_events_beyond_the_cap_are_reported() -> None:
    document = parse_document(_many(MAX_EVENTS))
    assert (len(document.events), document.problems) == (MAX_EVENTS, ())
    document = parse_document(_many(MAX_EVENTS + 1))
    assert [event.event_id for event in document.events] == [f"E{place}" for place in range(MAX_EVENTS)]
    assert document.problems == (
        f"{MAX_EVENTS + 1} events are listed: those after the first {MAX_EVENTS} are not read",
    )
    assert not any(event.problems for event in document.events)


def test_id_repeated_beyond_the_cap_is_in_doubt() -> None:
    items = [{**MIGRATION, "EventId": f"E{place}"} for place in range(MAX_EVENTS)]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [*items, {"EventId": "e7"}]}))
    assert [event.event_id for event in document.events if event.problems] == ["E7"]


def test_names_beyond_the_cap_are_in_doubt() -> None:
    names = [f"vm{number}" for number in range(MAX_NAMES // 2)]
    document = parse_document(_many(3, Resources=names))
    assert [len(event.resources) for event in document.events] == [len(names), len(names), 0]
    assert [bool(event.problems) for event in document.events] == [False, False, True]
    (event,) = parse_document(_many(1, Resources=["web_0", "x" * 257])).events
    assert event.problems


@pytest.mark.parametrize(
    "fields",
    [
        {"Description": "x" * 4097},
        {"EventType": "Freeze" * 1000},
        {"More": {str(number): number for number in range(101)}},
        {"More": "x" * 5000},
        {"x" * 300: 1},
        {"Deep": [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]},
    ],
)
def test_oversized_field_is_in_doubt(fields: dict[str, object]) -> None:
    (event,) = parse_document(_many(1, **fields)).events
    assert len(event.problems) == 1
    assert not event.extra.keys() & fields.keys()
    assert len(event.problems[0]) < 200


def test_few_fields_of_newer_versions_are_kept() -> None:
    (event,) = parse_document(_many(1, More={"a": [1, {"b": "x" * 4096}]}, Other=None)).events
    assert event.problems == ()
    assert event.extra == {"More": {"a": [1, {"b": "x" * 4096}]}, "Other": None}


def test_oversized_id_is_skipped_and_reported() -> None:
    items = [{**MIGRATION, "EventId": "x" * 257}, {**MIGRATION, "EventId": "x" * 256}]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": items}))
    assert (len(document.events), len(document.problems)) == (1, 1)


@pytest.mark.parametrize("depth", [200, 981, 5000, 100_000])
def test_a_value_nested_deeply_ends_in_a_problem(depth: int) -> None:
    body = _many(1, More="?").replace(b'"?"', b"[" * depth + b"]" * depth)
    try:
        (event,) = parse_document(body).events
    except DocumentError:
        return
    assert event.problems
    assert event == parse_document(body).events[0]  # goes as deep as there is something
    assert not event.extra.keys() & {"More"}


def test_a_value_may_be_nested_twenty_deep() -> None:
    for depth, is_kept in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        (event,) = parse_document(_many(1, More="?").replace(b'"?"', b"[" * depth + b"]" * depth)).events
        assert (event.problems == ()) is is_kept
        assert ("More" in event.extra) is is_kept


def test_many_problems_are_reported_in_few_words() -> None:
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [7] * 900}))
    assert len(document.problems) == MAX_PROBLEMS + 1
    assert document.problems[-1] == f"and {900 - MAX_PROBLEMS} more problems"


@pytest.mark.parametrize(
    "body", ["[" + "[]," * 160_000 + "0]", "[" + "0," * 650_000 + "0]", "{" + '"":0,' * 320_000 + '"":0}']
)
def test_oversized_body_is_not_read(body: str) -> None:
    with pytest.raises(DocumentError, match="the document is too large to read"):
        parse_document(body)
