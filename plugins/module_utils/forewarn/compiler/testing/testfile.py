# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads test files of policies: checks them against the schema and beyond, and returns the tests with their places."""

from __future__ import annotations

import json
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ...events import API_VERSIONS, LATEST_API_VERSION, Document, Vm, parse_document, parse_time
from ...policy.evaluation_error import EvaluationError
from ...policy.functions.timevalues import SECOND, format_duration, format_timestamp, parse_duration
from ..cel.expression import ExpressionError, compile_expression
from ..cel.types import DURATION, TIMESTAMP, Type
from ..paths import is_library, policies_tested_by
from ..yaml import schema
from ..yaml.tree import Mapping, Scalar, Sequence, YamlFile, YamlNode, mappings, text_of, value_at

SCHEMA = "policy-test.schema.json"
ABSTAIN = "abstain"
_DEFAULT_NOW = "2026-01-01T00:00:00Z"
_DEFAULT_NOTICE = "15m"
_DEFAULT_VM = "vm_0"
_MERGED = ("event", "vm", "params")  # inputs that are merged key by key; others are replaced
_EXPECTATIONS = ("rule", "policy", "reason", "approver", "group", "eligibility")


@dataclass(frozen=True)
class ExpectedLimit:
    """A limit as a test states it: ``1`` or ``25%``, and the group, which is not compared if it is None."""

    most: str
    group: str | None = None

    @property
    def text(self) -> str:
        """The limit in short, as that of a decision."""
        return self.most if self.group is None else f"{self.most} of {self.group}"


@dataclass(frozen=True)
class Expectation:
    """The expected decision for one event; a field that is None is not compared. ``line`` is its line in the file.

    ``event`` is the EventId, None where the document has one event.
    """

    line: int
    output: str
    event: str | None = None
    rule: str | None = None
    policy: str | None = None
    reason: str | None = None
    approver: str | None = None
    group: str | None = None
    eligibility: str | None = None
    limits: tuple[ExpectedLimit, ...] | None = None
    values: AnyMapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Step:
    """A document at a time, and what must be decided for its events."""

    at: str
    now: datetime
    document: Document
    vm: Vm
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True)
class PolicyTest:
    """One test. ``first_seen`` is the time since which its events are known."""

    section: str
    name: str
    line: int
    params: AnyMapping[str, Any] = field(hash=False)
    first_seen: datetime
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class TestFile:
    """A test file that was read; ``cases`` is empty if its report has errors."""

    __test__ = False  # for pytest: not a test class

    file: YamlFile
    policies: tuple[Path, ...]
    api_version: str
    cases: tuple[PolicyTest, ...]


def read_tests(path: Path) -> TestFile:
    """Read a test file. Raises InputError if it does not exist; other mistakes are reported in ``file.report``."""
    file = YamlFile.read(path)
    schema.check(file, SCHEMA)
    if not isinstance(file.root, Mapping) or file.report.findings:
        return TestFile(file, (), LATEST_API_VERSION, ())
    reader = _TestFileReader(file, path, file.root)
    policies, cases = reader.policies(), reader.cases()
    return TestFile(file, policies, reader.api_version, () if file.report.findings else cases)


class _TestFileReader:
    """Reads a file that fits the schema."""

    def __init__(self, file: YamlFile, path: Path, root: Mapping) -> None:
        self.file = file
        self.path = path
        self.root = root
        self.api_version = text_of(root.get("api_version")) or LATEST_API_VERSION

    def policies(self) -> tuple[Path, ...]:
        given = self.root.get("api_version")
        if given is not None and self.api_version not in API_VERSIONS:
            known = ", ".join(API_VERSIONS)
            self.file.add("test-input", f"api-version {self.api_version} is not known", given, f"use one of {known}")
        listed = self.root.get("policies")
        found = policies_tested_by(self.path) if not isinstance(listed, Sequence) else []
        for item in listed.items if isinstance(listed, Sequence) else []:
            policy = self.path.parent / (text_of(item) or "")
            if not policy.is_file():
                message = f"there is no policy file {policy}"
                self.file.add("test-policy", message, item, "paths are relative to this file")
            elif is_library(policy):
                message = f"{policy} is a library, which decides nothing"
                self.file.add("test-policy", message, item, "name a policy that imports it")
                continue
            found.append(policy)
        if not found and not self.file.report.findings:
            message = "the policy that these tests are about is not beside them"
            self.file.add("test-policy", message, self.root, "name it: policies: [FILE.yml]")
        return tuple({policy.resolve(): policy for policy in reversed(found)}.values())[::-1]  # links once

    def cases(self) -> tuple[PolicyTest, ...]:
        common = _data(self.root.get("input"))
        result: list[PolicyTest] = []
        for section in mappings(self.root.get("section")):
            section_name = text_of(section.get("name")) or ""
            taken: set[str] = set()
            for test in mappings(section.get("tests")):
                name = text_of(test.get("name")) or ""
                if name in taken:
                    message = f"a test called '{name}' is in this section already"
                    self.file.add("duplicate-name", message, test.values["name"], "give it another name")
                taken.add(name)
                case = self._case(section_name, name, test, common)
                if case is not None:
                    result.append(case)
        return tuple(result)

    def _case(self, section: str, name: str, test: Mapping, common: AnyMapping[str, Any]) -> PolicyTest | None:
        given = _merge_input(common, _data(test.get("input")))
        place = test.get("input") or test
        start = self._time(given, place)
        age = self._duration(given.get("age", "0s"), self._input_node(test, "age"), "age")
        if start is None or age is None:
            return None
        steps: list[Step] = []
        stages: AnySequence[Mapping] = mappings(test.get("steps")) or [test]
        before = -1
        for stage in stages:
            at_node = stage.get("at")
            at = self._duration(text_of(at_node) or "0s", at_node or stage, "at")
            if stage is not test:
                given = _merge_input(given, _data(stage.get("input")))
                if at is not None and at <= before:
                    message = "the steps are out of order: each is later than the one before"
                    self.file.add("test-steps", message, at_node or stage, "sort them by 'at'")
            before = before if at is None else at
            step = self._step(stage, given, start, at or 0)
            if step is not None:
                steps.append(step)
        line, _column = self.file.source.place(test.start)
        first_seen = start - timedelta(microseconds=age // 1000)
        return PolicyTest(section, name, line, given.get("params", {}), first_seen, tuple(steps))

    def _step(self, stage: Mapping, given: AnyMapping[str, Any], start: datetime, at: int) -> Step | None:
        place = stage.get("input") or stage
        notice = self._duration(given.get("notice", _DEFAULT_NOTICE), self._input_node(stage, "notice"), "notice")
        if "event" not in given and "events" not in given:
            self.file.add("test-input", "the test has no event", place, "add input: {event: {EventType: Freeze}}")
            return None
        if notice is None:
            return None
        facts = {"name": _DEFAULT_VM, **given.get("vm", {})}
        base = {
            "ResourceType": "VirtualMachine",
            "Resources": [facts["name"] or _DEFAULT_VM],
            "EventStatus": "Scheduled",
            **_unwrap(given.get("event", {})),
        }
        due = start + timedelta(microseconds=notice // 1000)
        events = [
            _event({**base, **_unwrap(event)}, number, due) for number, event in enumerate(given.get("events", [{}]), 1)
        ]
        body = json.dumps({"DocumentIncarnation": 1, "Events": events})
        document = parse_document(body, self.api_version if self.api_version in API_VERSIONS else LATEST_API_VERSION)
        for problem in document.problems:
            self.file.add("test-input", problem, place)
        now = start + timedelta(microseconds=at // 1000)
        expectations = self._expectations(stage, document)
        return Step(text_of(stage.get("at")) or "0s", now, document, Vm(**facts), expectations)

    def _expectations(self, stage: Mapping, document: Document) -> tuple[Expectation, ...]:
        decisions = mappings(stage.get("decisions"))
        if not decisions:
            return (self._expectation(stage, None),)
        known = {event.key for event in document.events}
        taken: set[str] = set()
        result = []
        for decision in decisions:
            node = decision.values["event"]
            event = text_of(node) or ""
            if event.lower() not in known:
                listed = ", ".join(event.event_id for event in document.events)
                self.file.add("test-decision", f"the document has no event {event}", node, f"its events are {listed}")
            if event.lower() in taken:
                self.file.add("test-decision", f"event {event} is asserted twice", node, "keep one of them")
            taken.add(event.lower())
            result.append(self._expectation(decision, event))
        return tuple(result)

    def _expectation(self, node: Mapping, event: str | None) -> Expectation:
        output = _data(node.get("output"), "")
        if isinstance(output, dict):
            output = output.get("value", ABSTAIN)  # the one expression that the schema lets pass is optional.none()
        place = node.get("output") or node
        values = node.get("values")
        written = values.values if isinstance(values, Mapping) else {}
        stated = {key: value.text for key, value in written.items() if isinstance(value, Scalar)}
        more = {key: text_of(node.get(key)) for key in _EXPECTATIONS}
        limits = _limits(_data(limit)) if (limit := node.get("limit")) is not None else None
        return Expectation(self.file.place(place)[0], output, event, values=stated, limits=limits, **more)

    # Times

    def _input_node(self, test: Mapping, key: str) -> YamlNode:
        given = test.get("input")
        return value_at(given, key) or given or test

    def _time(self, given: AnyMapping[str, Any], place: YamlNode) -> datetime | None:
        value = self._input_text(given.get("now", _DEFAULT_NOW), place, TIMESTAMP)
        if value is None:
            return None
        try:
            moment = parse_time(value)
            if not 1970 <= moment.year <= 9000:  # so that no duration leads out of the calendar
                raise ValueError("before 1970 or after 9000")
        except ValueError as error:
            self.file.add("test-input", f"'now' is not a valid time: {error}", place, f"write now: {_DEFAULT_NOW}")
            return None
        return moment

    def _duration(self, value: Any, place: YamlNode, label: str) -> int | None:
        """Return nanoseconds; None after reporting a mistake."""
        written = self._input_text(value, place, DURATION)
        try:
            duration = None if written is None else parse_duration(written)
        except ValueError as error:
            self.file.add("test-input", f"'{label}' is not a valid duration: {error}", place)
            return None
        if duration is not None and (duration < 0 or duration > 100 * 365 * 24 * 3600 * SECOND):
            self.file.add("test-input", f"'{label}' must be between 0s and a hundred years", place)
            return None
        return duration

    def _input_text(self, value: Any, place: YamlNode, expect: Type) -> str | None:
        """Return an input as text: as written, from ``{value: …}``, or computed by ``{expr: …}``."""
        if not isinstance(value, dict):
            return str(value)
        if "value" in value:
            return str(value["value"])
        try:
            result = compile_expression(value["expr"], {}, expect)({})
        except (ExpressionError, EvaluationError) as error:
            self.file.add("test-input", f"the expression has no value: {error}", place)
            return None
        return format_timestamp(result) if expect == TIMESTAMP else format_duration(result)


def _data(node: YamlNode | None, default: Any = None) -> Any:
    return node.data() if node is not None else {} if default is None else default


def _limits(written: Any) -> tuple[ExpectedLimit, ...]:
    """Return the limits that a test states: one, a list of them, or ``none``."""
    if written == "none":
        return ()
    found = []
    for one in written if isinstance(written, list) else [written]:
        most, group = (one["at_most"], one.get("group")) if isinstance(one, dict) else (one, None)
        found.append(ExpectedLimit(most if isinstance(most, str) else str(int(most)), group))
    return tuple(found)


def _unwrap(event: AnyMapping[str, Any]) -> AnyMapping[str, Any]:
    fields: AnyMapping[str, Any] = event.get("value", event)
    return fields


def _merge_input(below: AnyMapping[str, Any], above: AnyMapping[str, Any]) -> dict[str, Any]:
    result = {**below, **above}
    for key in _MERGED:
        if key in below and key in above:
            one, other = below[key], above[key]
            result[key] = {**_unwrap(one), **_unwrap(other)} if key == "event" else {**one, **other}
    return result


def _event(fields: dict[str, Any], number: int, due: datetime) -> dict[str, Any]:
    """Return an event as the service would write it, with defaults for fields that the test leaves out."""
    event = {"EventId": f"00000000-0000-4000-8000-{number:012}", **fields}
    if "NotBefore" not in event:
        started = event["EventStatus"] == "Started"
        event["NotBefore"] = "" if started else due.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {name: value for name, value in event.items() if value is not None}
