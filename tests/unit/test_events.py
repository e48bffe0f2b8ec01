# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document and its events, as the service documents them: SE-03, SE-10 … SE-19, SE-32, each api-version."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from forewarn.events import (
    API_VERSIONS,
    EVENT_SOURCES,
    EVENT_STATUSES,
    FIELD_SINCE,
    LATEST_API_VERSION,
    RESOURCE_TYPES,
    UNKNOWN_DURATION,
    Document,
    Event,
    Vm,
    event_types,
    format_time,
    has_field,
    parse_document,
    parse_time,
)
from tools.fixtures.events import GUID, MIGRATION

NOT_BEFORE = datetime(2022, 4, 11, 22, 26, 58, tzinfo=timezone.utc)


def document(*events: object, incarnation: object = 2, api_version: str = LATEST_API_VERSION) -> Document:
    """Return the parsed document with these events."""
    return parse_document(json.dumps({"DocumentIncarnation": incarnation, "Events": events}), api_version)


def one(api_version: str = LATEST_API_VERSION, **fields: Any) -> Event:
    """Return the only event of a document: the recorded one with other or further fields; ``...`` removes one."""
    wire = {name: value for name, value in {**MIGRATION, **fields}.items() if value is not ...}
    (event,) = document(wire, api_version=api_version).events
    return event


def test_the_recorded_live_migration() -> None:
    """The four documents of the recorded sequence, byte for byte."""
    described = "Virtual machine is being paused because of a memory-preserving Live Migration operation."
    rest = (
        '"EventType": "Freeze", "ResourceType": "VirtualMachine", "Resources": ["WestNO_0", "WestNO_1"], '
        f'"NotBefore": "%s", "Description": "{described}", "EventSource": "Platform", "DurationInSeconds": 5}}]}}'
    )
    wire = [
        '{"DocumentIncarnation": 1, "Events": []}',
        f'{{"DocumentIncarnation": 2, "Events": [{{"EventId": "{GUID}", "EventStatus": "Scheduled", '
        + rest % "Mon, 11 Apr 2022 22:26:58 GMT",
        f'{{"DocumentIncarnation": 3, "Events": [{{"EventId": "{GUID}", "EventStatus": "Started", ' + rest % "",
        '{"DocumentIncarnation": 4, "Events": []}',
    ]
    first, scheduled, started, last = (parse_document(body.encode()) for body in wire)
    assert first == Document(1, (), (), LATEST_API_VERSION)
    assert last == Document(4, (), (), LATEST_API_VERSION)
    event = Event(
        event_id=GUID,
        event_type="Freeze",
        resource_type="VirtualMachine",
        resources=("WestNO_0", "WestNO_1"),
        event_status="Scheduled",
        not_before=NOT_BEFORE,
        description=described,
        event_source="Platform",
        duration_in_seconds=5,
    )
    assert scheduled == Document(2, (event,), (), LATEST_API_VERSION)
    assert started.events == (event._replace(event_status="Started", not_before=None),)


def test_what_the_service_defines() -> None:
    """SE-03, SE-12, SE-13, SE-15, SE-18, SE-19."""
    assert list(API_VERSIONS) == sorted(API_VERSIONS)
    assert (len(API_VERSIONS), LATEST_API_VERSION) == (7, "2020-07-01")
    assert EVENT_STATUSES == ("Scheduled", "Started")
    assert EVENT_SOURCES == ("Platform", "User")
    assert RESOURCE_TYPES == ("VirtualMachine",)
    assert UNKNOWN_DURATION == -1


SIX = {"EventId", "EventType", "ResourceType", "Resources", "EventStatus", "NotBefore"}
THREE = ("Freeze", "Reboot", "Redeploy")


@pytest.mark.parametrize(
    ("api_version", "fields", "types"),
    [
        ("2017-03-01", SIX, THREE),
        ("2017-08-01", SIX, THREE),
        ("2017-11-01", SIX, (*THREE, "Preempt")),
        ("2019-01-01", SIX, (*THREE, "Preempt", "Terminate")),
        ("2019-04-01", SIX | {"Description"}, (*THREE, "Preempt", "Terminate")),
        ("2019-08-01", SIX | {"Description", "EventSource"}, (*THREE, "Preempt", "Terminate")),
        (
            "2020-07-01",
            SIX | {"Description", "EventSource", "DurationInSeconds"},
            (*THREE, "Preempt", "Terminate"),
        ),
    ],
)
def test_each_api_version_has_its_fields_and_types(api_version: str, fields: set[str], types: tuple[str, ...]) -> None:
    """SE-03 and "What each version added": a field of a later version is extra, not read."""
    assert {name for name in FIELD_SINCE if has_field(api_version, name)} == fields
    assert not has_field(api_version, "EventColour")
    assert event_types(api_version) == types
    event = one(api_version)
    assert set(event.as_dict()) == fields
    assert set(event.extra) == set(MIGRATION) - fields
    assert event.problems == ()
    assert document(MIGRATION, api_version=api_version).api_version == api_version


def test_an_api_version_after_the_latest_has_everything() -> None:
    """Seen in the wild: 2024-07-09, and with it SpotRebalanceRecommendation."""
    event = one("2024-07-09", EventType="SpotRebalanceRecommendation")
    assert event.event_type == "SpotRebalanceRecommendation"
    assert set(event.as_dict()) == set(MIGRATION)


@pytest.mark.parametrize(
    ("wire", "read"), [(7, 7), ("7", 7), ("007", 7), (-3, -3), (2**70, 2**70), ("abc", "abc"), ("", "")]
)
def test_se10_incarnation_is_a_number_or_text(wire: object, read: object) -> None:
    assert document(incarnation=wire) == Document(read, (), (), LATEST_API_VERSION)  # type: ignore[arg-type]  # of the table


@pytest.mark.parametrize("wire", [None, True, 1.5, [], {}])
def test_se10_unreadable_incarnation_is_reported(wire: object) -> None:
    result = document(MIGRATION, incarnation=wire)
    assert result.incarnation is None
    assert len(result.problems) == 1
    assert result.problems[0].startswith("DocumentIncarnation is ")
    assert result.events[0].problems == ()


def test_se11_ids_keep_spelling_and_ignore_case() -> None:
    upper, lower = one(), one(EventId=GUID.lower())
    assert upper.event_id == GUID
    assert lower.event_id == GUID.lower()
    assert upper.key == lower.key


@pytest.mark.parametrize("event_id", [..., None, "", "  ", 5, ["x"], "\ud800"])
def test_se11_event_without_an_id_is_skipped(event_id: object) -> None:
    nameless = {name: value for name, value in {**MIGRATION, "EventId": event_id}.items() if value is not ...}
    result = document(nameless, MIGRATION)
    assert [event.event_id for event in result.events] == [GUID]
    assert result.problems == ("Events[0] has no usable EventId: skipped",)


@pytest.mark.parametrize("item", [None, 1, "x", [MIGRATION], True])
def test_item_that_is_no_event_is_skipped(item: object) -> None:
    result = document(MIGRATION, item)
    assert [event.event_id for event in result.events] == [GUID]
    assert len(result.problems) == 1
    assert result.problems[0].startswith("Events[1] is ")


def test_se11_an_id_listed_twice_is_in_doubt() -> None:
    """Nobody can say which of the two an approval would start."""
    result = document(MIGRATION, {**MIGRATION, "EventId": GUID.lower(), "EventType": "Reboot"}, MIGRATION)
    (event,) = result.events
    assert event.event_type == "Freeze"
    assert event.problems == (f"EventId {GUID} is listed more than once",)
    assert result.problems == event.problems


def test_duplicate_field_is_in_doubt() -> None:
    """JSON's readers differ in which of the two values counts."""
    twice = json.dumps(MIGRATION).replace('"EventType"', '"EventType": "Reboot", "EventType"')
    (event,) = parse_document(f'{{"DocumentIncarnation": 1, "Events": [{twice}]}}').events
    assert event.problems == ("EventType appears more than once",)


@pytest.mark.parametrize("event_type", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Unheard"])
def test_se12_every_type_is_kept_known_or_not(event_type: str) -> None:
    event = one(EventType=event_type)
    assert (event.event_type, event.problems) == (event_type, ())


@pytest.mark.parametrize("status", ["Scheduled", "Started", "Completed"])
def test_se15_every_status_is_kept_known_or_not(status: str) -> None:
    event = one(EventStatus=status)
    assert (event.event_status, event.problems) == (status, ())


@pytest.mark.parametrize("field", ["EventType", "EventStatus"])
@pytest.mark.parametrize("value", [..., None, "", 3, ["Freeze"], {"a": 1}, False])
def test_unreadable_type_or_status_is_in_doubt(field: str, value: Any) -> None:
    (problem,) = one(**{field: value}).problems
    assert problem.startswith(f"{field} is ")


@pytest.mark.parametrize("field", ["ResourceType", "Description", "EventSource"])
def test_optional_text_of_another_kind_is_in_doubt(field: str) -> None:
    """SE-13, SE-17, SE-18."""
    absent: Any
    for absent in (..., None):
        event = one(**{field: absent})
        assert field not in event.as_dict()
        assert event.problems == ()
    fields: dict[str, Any] = {field: 3}
    assert one(**fields).problems == (f"{field} is 3, not a text",)


def test_se17_a_description_may_be_empty() -> None:
    event = one(Description="")
    assert (event.description, event.problems) == ("", ())


def test_half_a_character_becomes_the_replacement_character() -> None:
    """Lone surrogates are legal in JSON, and could be written nowhere."""
    event = one(Description="a\ud800b", EventType="\udc00", Resources=["vm\ud8ff"], EventSource="\ud800")
    assert (event.description, event.event_type) == ("a�b", "�")
    assert (event.resources, event.event_source) == (("vm�",), "�")


@pytest.mark.parametrize(
    "resources",
    [..., None, "WestNO_0", ["WestNO_0", 1], ["WestNO_0", ""], [None], {"WestNO_0": 1}, [["WestNO_0"]]],
)
def test_se14_unreadable_resources_are_in_doubt(resources: object) -> None:
    event = one(Resources=resources)
    assert event.resources == ()
    assert len(event.problems) == 1
    assert event.problems[0].startswith("Resources is ")


def test_se14_event_may_have_no_resource() -> None:
    event = one(Resources=[])
    assert (event.resources, event.problems) == ((), ())
    assert event.place_of("WestNO_0") is None


def test_se14_the_preview_alone_prefixes_names() -> None:
    names = ["_web_0", "_web_1", "role_IN_0", "__odd"]
    assert one("2017-03-01", Resources=names).resources == ("web_0", "web_1", "role_IN_0", "_odd")
    for api_version in API_VERSIONS[1:]:
        assert one(api_version, Resources=names).resources == tuple(names)


def test_se14_name_that_is_only_the_prefix() -> None:
    event = one("2017-03-01", Resources=["_", "_web_0"])
    assert event.resources == ()
    assert len(event.problems) == 1
    assert one("2017-08-01", Resources=["_"]).resources == ("_",)


def test_se14_se32_place_is_found_in_any_case() -> None:
    event = one(Resources=["vm10", "Web_0", "web_0", "vm1"])
    assert event.place_of("VM10") == 0
    assert event.place_of("WEB_0") == 1
    assert event.place_of("vm1") == 3
    assert [event.place_of(name) for name in ("vm", "vm100", "", None)] == [None] * 4


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 19 Sep 2016 18:29:47 GMT",
        "19 Sep 2016 18:29:47 GMT",
        "2016-09-19T18:29:47Z",
        "2016-09-19T18:29:47.0Z",
        "2016-09-19T18:29:47.000000000Z",
        "2016-09-19T20:29:47+02:00",
        "2016-09-19T12:59:47-05:30",
        "  Mon, 19 Sep 2016 18:29:47 GMT ",
    ],
)
def test_se16_both_spellings_of_a_time(text: str) -> None:
    event = one(NotBefore=text)
    assert event.not_before == datetime(2016, 9, 19, 18, 29, 47, tzinfo=timezone.utc)
    assert event.problems == ()
    assert event.as_dict()["NotBefore"] == "2016-09-19T18:29:47Z"


def test_se16_days_of_one_digit_and_fractions() -> None:
    assert parse_time("Fri, 1 Jan 2027 00:00:00 GMT") == datetime(2027, 1, 1, tzinfo=timezone.utc)
    moment = parse_time("2027-01-01T00:00:00.123456789Z")
    assert moment == datetime(2027, 1, 1, 0, 0, 0, 123456, tzinfo=timezone.utc)
    assert format_time(moment) == "2027-01-01T00:00:00.123456Z"
    for fraction, microseconds in (("5", 500_000), ("05", 50_000), ("00012", 120), ("000001", 1), ("9999999", 999_999)):
        expected = datetime(2027, 1, 1, 0, 0, 0, microseconds, tzinfo=timezone.utc)
        assert parse_time(f"2027-01-01T00:00:00.{fraction}Z") == expected


@pytest.mark.parametrize("blank", [..., None, "", "   "])
@pytest.mark.parametrize("status", EVENT_STATUSES)
def test_se16_blank_time_is_none_without_doubt(blank: object, status: str) -> None:
    event = one(NotBefore=blank, EventStatus=status)
    assert (event.not_before, event.problems) == (None, ())
    assert "NotBefore" not in event.as_dict()


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "2016-09-19",
        "2016-09-19 18:29:47Z",
        "2016-09-19T18:29:47",
        "2016-09-19T18:29:47z",
        "2016-09-19T18:29Z",
        "2016-13-19T18:29:47Z",
        "2016-09-31T18:29:47Z",
        "2016-09-19T24:00:00Z",
        "2016-09-19T18:29:60Z",
        "2016-09-19T18:29:47+24:00",
        "2016-09-19T18:29:47+02:60",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00Z",
        "Mon, 19 Sep 2016 18:29:47",
        "Mon, 19 Sep 2016 18:29:47 PST",
        "Mon, 19 September 2016 18:29:47 GMT",
        "Mon, 19 Foo 2016 18:29:47 GMT",
        "Mon, 31 Feb 2016 18:29:47 GMT",
        "Mon, 19 Sep 16 18:29:47 GMT",
        "٢٠١٦-09-19T18:29:47Z",
        "2016-09-19T18:29:47Z\x00",
        "\ud800",
        "x" * 100_000,
        1474309787,
        True,
        ["2016-09-19T18:29:47Z"],
        {},
    ],
)
def test_se16_what_is_no_time_is_in_doubt(value: object) -> None:
    event = one(NotBefore=value)
    assert event.not_before is None
    (problem,) = event.problems
    assert problem.startswith("NotBefore ")
    assert len(problem) < 200, "an error message, not a copy of the document"
    problem.encode()


def test_notice_ends_at_zero_and_once_started() -> None:
    """SE-16, SE-20: the seconds until NotBefore."""
    event = one()
    assert event.notice_seconds(NOT_BEFORE - timedelta(minutes=15)) == 900
    assert event.notice_seconds(NOT_BEFORE - timedelta(milliseconds=250)) == 0.25
    assert event.notice_seconds(NOT_BEFORE) == 0
    assert event.notice_seconds(NOT_BEFORE + timedelta(days=1)) == 0
    assert one(NotBefore="").notice_seconds(NOT_BEFORE) is None
    assert one(NotBefore="", EventStatus="Started").notice_seconds(NOT_BEFORE) == 0
    assert one(EventStatus="Started").notice_seconds(NOT_BEFORE - timedelta(minutes=1)) == 0


@pytest.mark.parametrize(
    ("wire", "read"),
    [
        *[(5, 5), (0, 0), (-1, -1), ("5", 5), ("-1", -1), ("+9", 9), (" 30 ", 30), (30.0, 30), (1e3, 1000)],
        *[(2**63 - 1, 2**63 - 1), (str(2**63 - 1), 2**63 - 1), (None, None), (..., None)],
    ],
)
def test_se19_duration_is_a_whole_number_or_text(wire: object, read: int | None) -> None:
    event = one(DurationInSeconds=wire)
    assert (event.duration_in_seconds, event.problems) == (read, ())
    assert type(event.duration_in_seconds) is type(read)


@pytest.mark.parametrize(
    "value",
    [
        *[1.5, True, False, "", "5s", "five", "5.0", "0x5", "٥", [5], {"s": 5}, "1_000", "--1", "5\n6"],
        *[2**63, str(2**63), -(2**63), 1e300, float("inf"), float("-inf"), float("nan"), "9" * 5000],
        *[-2, "-2", -900, -2.0],
    ],
)
def test_se19_what_is_no_duration_is_in_doubt(value: object) -> None:
    """Only -1 means unknown; nobody knows what other negative numbers mean."""
    event = one(DurationInSeconds=value)
    assert event.duration_in_seconds is None
    (problem,) = event.problems
    assert problem.startswith("DurationInSeconds is ")
    assert len(problem) < 200


def test_value_in_a_message_is_cut() -> None:
    """Its first 40 characters are shown, as JSON has them."""
    (problem,) = one(DurationInSeconds="7" * 39 + "98").problems
    assert "'" + "7" * 39 in problem
    assert "79" not in problem


def test_fields_nobody_defined_are_kept_aside() -> None:
    event = one(NewField={"a": [1]}, eventtype="Reboot")
    assert event.extra == {"NewField": {"a": [1]}, "eventtype": "Reboot"}
    assert (event.event_type, event.problems) == ("Freeze", ())
    assert set(event.as_dict()) == set(MIGRATION)


def test_several_doubts_are_all_reported() -> None:
    event = one(EventType=1, Resources=2, EventStatus=3, NotBefore=4, DurationInSeconds="x")
    assert [problem.split()[0] for problem in event.problems] == [
        *("EventType", "Resources", "EventStatus", "NotBefore", "DurationInSeconds")
    ]


def test_events_keep_the_documents_order() -> None:
    """SE-26: they are processed together."""
    ids = [f"id-{number}" for number in range(50)]
    assert [event.event_id for event in document(*({**MIGRATION, "EventId": name} for name in ids)).events] == ids


def test_the_types_are_frozen() -> None:
    event = one(NewField=[1])
    result = document(MIGRATION)
    for value, field in ((event, "event_type"), (result, "events"), (Vm("web_0"), "name")):
        with pytest.raises(AttributeError):
            setattr(value, field, None)
    with pytest.raises(TypeError):
        event.extra["NewField"] = 2  # type: ignore[index]  # that is what is tried
