# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Document and Event of every api-version of Azure Scheduled Events, and the one parser that makes them.

It is lenient where the service varies, and strict where a guess could approve the wrong thing: if anything that a
decision needs cannot be read, the event has a ``problem``, and an event with a problem is never approved.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Dict, NamedTuple

from .errors import ServiceError

# SE-03, oldest first. "{latest}" is retired.
API_VERSIONS = ("2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01")
LATEST_API_VERSION = API_VERSIONS[-1]

# Field of an event -> the api-version that brought it ("What each version added").
FIELD_SINCE: Mapping[str, str] = {
    "EventId": "2017-03-01",
    "EventType": "2017-03-01",
    "ResourceType": "2017-03-01",
    "Resources": "2017-03-01",
    "EventStatus": "2017-03-01",
    "NotBefore": "2017-03-01",
    "Description": "2019-04-01",
    "EventSource": "2019-08-01",
    "DurationInSeconds": "2020-07-01",
}
# EventType (SE-12) -> the api-version that brought it.
EVENT_TYPE_SINCE: Mapping[str, str] = {
    "Freeze": "2017-03-01",
    "Reboot": "2017-03-01",
    "Redeploy": "2017-03-01",
    "Preempt": "2017-11-01",
    "Terminate": "2019-01-01",
}
EVENT_STATUSES = ("Scheduled", "Started")  # SE-15
# Minimum notice of each type in seconds. For a Terminate, 5 to 15 minutes can be configured.
NOTICE_SECONDS: Mapping[str, float] = {
    "Freeze": 900.0,
    "Reboot": 900.0,
    "Redeploy": 600.0,
    "Preempt": 30.0,
    "Terminate": 300.0,
}
OTHER_NOTICE_SECONDS = 900.0  # of a type that is not documented
EVENT_SOURCES = ("Platform", "User")  # SE-18
RESOURCE_TYPES = ("VirtualMachine",)  # SE-13
UNKNOWN_DURATION = -1  # SE-19

# How much of a document is read: far more than the service sends. Anything beyond is reported as a problem: nothing
# unread is approved, and no event counts as gone if the document was not read in full.
MAX_EVENTS = 1000
MAX_NAMES = 10_000  # in Resources, of all events together
MAX_ID_CHARACTERS = 256
MAX_NAME_CHARACTERS = 256
MAX_TEXT_CHARACTERS = 4096
MAX_EXTRA_VALUES = 100  # in the fields of one event that the api-version does not define
MAX_DEPTH = 20  # of lists and objects within one field
MAX_PROBLEMS = 20  # that are reported one by one
# An estimate of what the values of a document take in memory, before they are made: a body of 4 MiB can hold a million
# empty lists.
_MAX_MEMORY = 32 * 1024 * 1024
_CONTAINER_BYTES, _VALUE_BYTES = 200, 56

_INT64_MAX = 2**63 - 1
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RFC1123 = re.compile(r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT", re.ASCII)
_ISO8601 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))", re.ASCII
)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_FIELDS: Mapping[str, Any] = {}


class DocumentError(ServiceError):
    """The body is not a Scheduled Events document. Nothing follows from it, not even that no event is listed."""


class Event(NamedTuple):
    """One scheduled event (SE-10 … SE-19).

    A field is None where the document had none, or nothing readable, or where the api-version lacks it.

    ``event_id`` is spelled as the service spells it: an approval must repeat it exactly. ``not_before`` is an aware UTC
    time, None when blank (SE-16). ``duration_in_seconds`` is in seconds, -1 for unknown (SE-19). ``extra`` holds the
    fields this api-version does not define. ``problems`` are the reasons why the event must not be approved.
    """

    event_id: str
    event_type: str | None = None
    resource_type: str | None = None
    resources: tuple[str, ...] = ()
    event_status: str | None = None
    not_before: datetime | None = None
    description: str | None = None
    event_source: str | None = None
    duration_in_seconds: int | None = None
    extra: Mapping[str, Any] = _NO_FIELDS
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The id to compare with: GUIDs come in either case (SE-11)."""
        return self.event_id.lower()

    @property
    def doubts(self) -> list[str]:
        """Why no policy would approve the event: its problems, and a status that is not documented (SE-15)."""
        if self.event_status in (None, *EVENT_STATUSES):
            return list(self.problems)
        return [*self.problems, f"EventStatus {self.event_status!r} is not known"]

    def place_of(self, vm_name: str | None) -> int | None:
        """Return the place of a VM in Resources, 0 for the leader (SE-32); None if it is not affected.

        Whole names are compared, ignoring case.
        """
        if vm_name is None:
            return None
        wanted = vm_name.lower()
        for place, name in enumerate(self.resources):
            if name.lower() == wanted:
                return place
        return None

    def notice_seconds(self, now: datetime) -> float | None:
        """Return the seconds left until NotBefore: 0 once started or past, None if the service did not say."""
        if self.event_status == "Started":
            return 0.0
        if self.not_before is None:
            return None
        return max(0.0, (self.not_before - now).total_seconds())

    def as_dict(self) -> dict[str, Any]:
        """Return the event under the service's own field names; absent fields are left out, NotBefore is ISO 8601."""
        return self.fields(None if self.not_before is None else format_time(self.not_before))

    def fields(self, not_before: str | int | None) -> dict[str, Any]:
        """Return the same with NotBefore as the caller writes times; None leaves it out."""
        values = {
            "EventId": self.event_id,
            "EventType": self.event_type,
            "ResourceType": self.resource_type,
            "Resources": list(self.resources),
            "EventStatus": self.event_status,
            "NotBefore": not_before,
            "Description": self.description,
            "EventSource": self.event_source,
            "DurationInSeconds": self.duration_in_seconds,
        }
        return {name: value for name, value in values.items() if value is not None}


class Document(NamedTuple):
    """What one poll returned. ``problems`` lists what was skipped; ``incarnation`` is None for an empty body.

    Incarnations are to be compared for inequality only (SE-10): they jump, and start again after a day of silence.
    """

    incarnation: int | str | None = None
    events: tuple[Event, ...] = ()
    problems: tuple[str, ...] = ()
    api_version: str = LATEST_API_VERSION


class Vm(NamedTuple):
    """The machine that asks, from ``/metadata/instance``; a field is None where it is not known.

    ``name`` is the resource name (``compute.name``), the one that Resources lists (SE-14), not the host name.
    """

    name: str | None = None
    location: str | None = None
    zone: str | None = None
    size: str | None = None
    scale_set: str | None = None
    fault_domain: str | None = None
    tags: Mapping[str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, by name: texts, and ``tags`` as a mapping of texts."""
        known: dict[str, Any] = {name: fact for name in VM_FACTS if (fact := getattr(self, name)) is not None}
        return known if self.tags is None else {**known, "tags": dict(self.tags)}


VM_FACTS = tuple(name for name in Vm._fields if name != "tags")  # those that are one text each


def has_field(api_version: str, name: str) -> bool:
    """Return whether events of an api-version have a field."""
    since = FIELD_SINCE.get(name)
    return since is not None and since <= api_version


@lru_cache(maxsize=16)
def _fields_of(api_version: str) -> frozenset[str]:
    return frozenset(name for name in FIELD_SINCE if has_field(api_version, name))


def event_types(api_version: str) -> tuple[str, ...]:
    """Return the event types that an api-version may name."""
    return tuple(name for name, since in EVENT_TYPE_SINCE.items() if since <= api_version)


def format_time(moment: datetime) -> str:
    """Write an aware time as ISO 8601 in UTC, to the second or, where it has one, the fraction."""
    text = moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat()
    return text + "Z"


def parse_time(text: str) -> datetime:
    """Read either spelling of SE-16, ``Mon, 19 Sep 2016 18:29:47 GMT`` or ``2016-09-19T18:29:47Z``, as aware UTC.

    Raises ValueError for anything else.
    """
    match = _RFC1123.fullmatch(text)
    if match:
        day, month, year, hour, minute, second = match.groups()
        if month not in _MONTHS:
            raise ValueError(f"no month is called {month}")
        return datetime(
            int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), tzinfo=timezone.utc
        )
    match = _ISO8601.fullmatch(text)
    if not match:
        raise ValueError("neither 'Mon, 19 Sep 2016 18:29:47 GMT' nor '2016-09-19T18:29:47Z'")
    fraction, sign = match.group(7), match.group(8)
    year, month_number, day_number, hours, minutes, seconds = map(int, match.group(1, 2, 3, 4, 5, 6))
    microsecond = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    moment = datetime(year, month_number, day_number, hours, minutes, seconds, microsecond, timezone.utc)
    if sign:
        offset = timedelta(hours=int(match.group(9)), minutes=int(match.group(10)))
        try:
            moment = moment - offset if sign == "+" else moment + offset
        except OverflowError as error:
            raise ValueError("beyond the years 1 to 9999") from error
    return moment


def parse_document(body: bytes | str, api_version: str = LATEST_API_VERSION) -> Document:
    """Parse the body of a GET. An empty body means that nothing is scheduled.

    Raises DocumentError when the body is not such a document, and no other exception whatever the body.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"the document is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        return Document(api_version=api_version)
    containers, values = text.count("[") + text.count("{"), text.count(",") + text.count(":")
    if containers * _CONTAINER_BYTES + values * _VALUE_BYTES + 2 * sys.getsizeof(text) > _MAX_MEMORY:
        raise DocumentError(f"the document is too large to read: {len(text)} characters, {values} values")
    try:
        data = json.loads(text, parse_int=_parse_int, object_pairs_hook=_object)
    except (ValueError, RecursionError, MemoryError) as error:
        raise DocumentError(f"the document is not JSON: {error or error.__class__.__name__}") from error
    del text
    return read_document(data, api_version)


def read_document(data: object, api_version: str = LATEST_API_VERSION) -> Document:
    """Read what a body holds, decoded from JSON; a list of events in it is emptied. Raises only DocumentError.

    Neither the size of a body nor a key that is given twice can be seen here: ``parse_document`` looks for them.
    """
    if not isinstance(data, dict):
        raise DocumentError(f"the document is {_kind(data)}, not an object")
    listed = data.get("Events")
    if isinstance(data, _Ambiguous) and "Events" in data.twice:
        raise DocumentError("the document has Events more than once")
    if not isinstance(listed, list):
        raise DocumentError("the document has no array Events")
    incarnation, doubt = _parse_incarnation(data.get("DocumentIncarnation"))
    del data
    problems: list[str] = []
    events: dict[str, Event] = {}
    names_left = MAX_NAMES
    beyond: set[str] = set()
    for index, item in enumerate(listed):
        listed[index] = None  # what was read is not kept twice
        if index >= MAX_EVENTS:
            beyond.add(_id_of(item).lower())
            continue
        event = _parse_event(item, f"Events[{index}]", api_version, problems, names_left)
        if event is None:
            continue
        names_left -= len(event.resources)
        first = events.setdefault(event.key, event)
        if first is event:
            continue
        _listed_twice(events, first, problems)
    if len(listed) > MAX_EVENTS:
        for key in beyond & events.keys():
            _listed_twice(events, events[key], problems)
        problems.insert(0, f"{len(listed)} events are listed: those after the first {MAX_EVENTS} are not read")
    if doubt:
        problems.append(doubt)
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more problems"]
    return Document(incarnation, tuple(events.values()), tuple(problems), api_version)


def _listed_twice(events: dict[str, Event], first: Event, problems: list[str]) -> None:
    """Put an event in doubt: it is unclear which of several an approval would start."""
    problem = f"EventId {first.event_id} is listed more than once"
    if problem not in first.problems:
        problems.append(problem)
        events[first.key] = first._replace(problems=(*first.problems, problem))


class _Ambiguous(Dict[str, Any]):
    """A JSON object with repeated keys: which of their values is meant is unknown."""

    twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    ambiguous = _Ambiguous(found)
    ambiguous.twice = tuple(name for name, count in Counter(name for name, _value in pairs).items() if count > 1)
    return ambiguous


def _id_of(item: object) -> str:
    event_id = item.get("EventId") if isinstance(item, dict) else None
    return event_id if isinstance(event_id, str) else ""


def _parse_int(digits: str) -> int:
    """Read a whole number; one with thousands of digits takes seconds in older Pythons."""
    if len(digits) > 100:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _parse_incarnation(value: object) -> tuple[int | str | None, str | None]:
    if isinstance(value, int) and not isinstance(value, bool):
        return value, None
    if isinstance(value, str):
        return (int(value) if _INTEGER.fullmatch(value) else _SURROGATE.sub("�", value)), None
    return None, f"DocumentIncarnation is {_kind(value)}, not a number"


def _parse_event(item: object, where: str, api_version: str, skipped: list[str], names_left: int) -> Event | None:
    """Return the event, or None after adding to ``skipped`` why it is skipped."""
    if not isinstance(item, dict):
        skipped.append(f"{where} is {_kind(item)}, not an object: skipped")
        return None
    event_id = item.get("EventId")
    if not isinstance(event_id, str) or not event_id.strip() or _SURROGATE.search(event_id):
        skipped.append(f"{where} has no usable EventId: skipped")
        return None
    if len(event_id) > MAX_ID_CHARACTERS:
        skipped.append(f"{where} has an EventId of {len(event_id)} characters: skipped")
        return None
    reader = _FieldReader(item, api_version)
    if isinstance(item, _Ambiguous):
        reader.problems += [f"{name[:40]} appears more than once" for name in item.twice[:MAX_PROBLEMS]]
    return Event(
        event_id=event_id,
        event_type=reader.text("EventType", required=True),
        resource_type=reader.text("ResourceType"),
        resources=reader.resources(names_left),
        event_status=reader.text("EventStatus", required=True),
        not_before=reader.not_before(),
        description=reader.text("Description"),
        event_source=reader.text("EventSource"),
        duration_in_seconds=reader.duration(),
        extra=reader.extra(),
        problems=tuple(reader.problems),
    )


class _FieldReader:
    """Reads the fields of one event and collects what could not be read."""

    def __init__(self, item: Mapping[str, Any], api_version: str) -> None:
        self.item = item
        self.api_version = api_version
        self.fields = _fields_of(api_version)
        self.problems: list[str] = []

    def _get(self, name: str) -> Any:
        return self.item.get(name) if name in self.fields else None

    def _doubt(self, name: str, value: object, wanted: str) -> None:
        self.problems.append(f"{name} is {_kind(value)}, not {wanted}")

    def text(self, name: str, required: bool = False) -> str | None:
        value = self._get(name)
        if isinstance(value, str) and (value or not required):
            if len(value) > MAX_TEXT_CHARACTERS:
                self.problems.append(
                    f"{name} has {len(value)} characters: more than {MAX_TEXT_CHARACTERS} are not read"
                )
            read = value[:MAX_TEXT_CHARACTERS]
            return read if read.isascii() else _SURROGATE.sub("�", read)
        if value is not None or required:
            self._doubt(name, value, "a text")
        return None

    def extra(self) -> Mapping[str, Any]:
        """Return the fields that the api-version does not define, except what is too large or too deep."""
        found: dict[str, Any] = {}
        left = MAX_EXTRA_VALUES
        for name, value in self.item.items():
            if name in self.fields:
                continue
            depth, values = _extent(value, left)
            left -= values
            if depth > MAX_DEPTH:
                self.problems.append(f"{name[:40]} is nested more than {MAX_DEPTH} deep")
            elif left < 0 or len(name) > MAX_NAME_CHARACTERS:
                self.problems.append(
                    f"{name[:40]} is too large: more than {MAX_EXTRA_VALUES} values, or too long a text"
                )
                break
            else:
                found[name] = value
        return MappingProxyType(found)

    def resources(self, names_left: int) -> tuple[str, ...]:
        value = self._get("Resources")
        prefix = "_" if self.api_version == API_VERSIONS[0] else ""  # of IaaS resources, only in that version
        # An empty name, or one that is only the prefix, is no name.
        if not isinstance(value, list) or not all(isinstance(name, str) and name not in ("", prefix) for name in value):
            self._doubt("Resources", value, "a list of names")
            return ()
        if len(value) > names_left or any(len(name) > MAX_NAME_CHARACTERS for name in value):
            self.problems.append(
                f"Resources has {len(value)} names, or one of more than {MAX_NAME_CHARACTERS} characters: not read, "
                f"beyond {MAX_NAMES} names in a document"
            )
            return ()
        return tuple(_SURROGATE.sub("�", name[1:] if prefix and name.startswith(prefix) else name) for name in value)

    def not_before(self) -> datetime | None:
        value = self._get("NotBefore")
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        if isinstance(value, str):
            try:
                return parse_time(value.strip())
            except ValueError as error:
                self.problems.append(f"NotBefore {value[:40]!r} is not a time: {error}")
                return None
        self._doubt("NotBefore", value, "a time")
        return None

    def duration(self) -> int | None:
        value = self._get("DurationInSeconds")
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        # Below -1 (unknown) nothing is defined, and `DurationInSeconds < 9` would take it for a short one.
        if value is None or (
            isinstance(value, int) and not isinstance(value, bool) and UNKNOWN_DURATION <= value <= _INT64_MAX
        ):
            return value
        self._doubt("DurationInSeconds", value, "a whole number of seconds, or -1 for unknown")
        return None


def _extent(value: object, most: int) -> tuple[int, int]:
    """Return how deep a value is nested and how many values it has, as far as MAX_DEPTH and ``most`` go.

    A text of more than MAX_TEXT_CHARACTERS counts as too many.
    """
    depth = count = 0
    level = [value]
    while level:
        depth += any(isinstance(inner, (dict, list)) for inner in level)
        count += len(level)
        count += sum(most + 1 for inner in level if isinstance(inner, str) and len(inner) > MAX_TEXT_CHARACTERS)
        if count > most or depth > MAX_DEPTH:
            break
        following: list[object] = []
        for inner in level:
            if isinstance(inner, dict):
                following += inner.values()
            elif isinstance(inner, list):
                following += inner
        level = following
    return depth, count


def _kind(value: object) -> str:
    """Name a JSON value for an error message, shortened."""
    if value is None:
        return "missing"
    names = {bool: "a boolean", dict: "an object", list: "an array"}
    return names.get(type(value)) or repr(value)[:40]
