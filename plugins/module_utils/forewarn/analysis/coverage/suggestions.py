# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Suggested tests: an event of the analysis as an entry of a test file, as short as the file's own input allows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...compiler.yaml.tree import Mapping as YamlMapping
from ...compiler.yaml.tree import Sequence as YamlSequence
from ...compiler.yaml.tree import YamlFile
from ...errors import InputError
from ...events import FIELD_SINCE, VM_FACTS, format_time, parse_time
from ...policy.functions.timevalues import SECOND, from_datetime, parse_duration
from ..artifacts import Json
from ..event_space.domains import duration_text
from ..witness import EVENT_ID, Witness

SECTION = "suggested"
# What a test has by default (compiler.testing.testfile).
DEFAULT_VM = "vm_0"
_DEFAULT_NOW = "2026-01-01T00:00:00Z"
_DEFAULT_NOTICE = "15m"
_PLAIN = re.compile(r"[A-Za-z]([\w ./()-]*[\w)])?|(\d+[hms])+", re.ASCII)
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # which some YAML readers take for a value
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_FIRST = ("EventType", "EventStatus", "EventSource", "DurationInSeconds", "Resources")


class Suggestion(NamedTuple):
    """A test that passes; ``input`` and ``expected`` are as the test file has them."""

    name: str
    input: Json
    expected: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the test as data."""
        return {"name": self.name, "input": dict(self.input), **self.expected}


def suggestion_of(
    name: str, witness: Witness, output: str, rule: str | None, policy: str | None, common: Json
) -> Suggestion:
    """Return the test of a case. ``common`` is the input that all tests of the file have."""
    expected = {"output": output, "rule": rule, "policy": policy}
    return Suggestion(
        name, _input(witness, common), {key: value for key, value in expected.items() if value is not None}
    )


def as_yaml(suggestions: Sequence[Suggestion], indent: str = "  ") -> str:
    """Write a section of a test file, with each line indented."""
    lines = [f"- name: {SECTION}", "  tests:"]
    for suggestion in suggestions:
        lines.append(f"    - {_pair('name', suggestion.name)}")
        lines.append("      input:")
        lines += [f"        {_pair(key, value)}" for key, value in suggestion.input.items()]
        lines += [f"      {_pair(key, value)}" for key, value in suggestion.expected.items()]
    return "".join(f"{indent}{line}\n" for line in lines)


def append_suggestions(text: str, path: str, suggestions: Sequence[Suggestion]) -> str:
    """Return a test file's text with the suggestions behind its sections. Raises InputError where they do not fit."""
    file = YamlFile.from_bytes(path, text.encode())
    root = file.root
    section = root.get("section") if isinstance(root, YamlMapping) else None
    if isinstance(root, YamlMapping) and isinstance(section, YamlSequence) and section.items:
        _line, column = file.source.place(section.items[0].start)
        result = text.rstrip() + "\n" + as_yaml(suggestions, " " * (column - 3))
        before, after = root.data(), YamlFile.from_bytes(path, result.encode()).root
        added = {"name": SECTION, "tests": [suggestion.as_dict() for suggestion in suggestions]}
        if after is not None and after.data() == {**before, "section": [*before["section"], added]}:
            return result
    raise InputError(
        f"{path}: suggestions cannot be added at its end, where the list 'section' should be.",
        "Write them to standard output, by --suggest without a file, and insert them yourself.",
    )


def new_test_file(policies: Sequence[str], suggestions: Sequence[Suggestion]) -> str:
    """Return the text of a new test file; it names ``policies``, if there are any."""
    named = [_pair("policies", list(policies))] if policies else []
    return "\n".join(["---", *named, "section:", as_yaml(suggestions)])


def _pair(key: str, value: Any) -> str:
    """Return ``key: value`` in one line of a block."""
    if isinstance(value, str) and _is_plain(value.replace(", ", " ")):  # a comma means nothing here
        return f"{key}: {value}"
    return f"{key}: {_flow(value)}"


def _flow(value: Any) -> str:
    """Write a value as YAML on one line; a text that some reader could take for another value is quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _is_plain(value):
        return value
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS


def _input(witness: Witness, common: Json) -> dict[str, Any]:
    """Return the input, without what the file's own input or every test has anyway."""
    now = witness.facts.now
    given: dict[str, Any] = {}
    if "events" in common:
        given["events"] = [{}]
    inherited_vm = {"name": DEFAULT_VM, **common.get("vm", {})}
    facts = witness.facts.vm.as_dict()
    vm = {fact: facts.get(fact) for fact in (*VM_FACTS, "tags") if facts.get(fact) != inherited_vm.get(fact)}
    shared = common.get("event", {})
    shared = shared.get("value", shared)
    event, notice = _event(witness, shared, facts.get("name") or DEFAULT_VM)
    given["event"] = event
    if notice is not None and notice != _duration(common.get("notice", _DEFAULT_NOTICE)):
        given["notice"] = duration_text(notice)
    if vm:
        given["vm"] = vm
    if witness.params:
        given["params"] = dict(witness.params)
    if format_time(now) != common.get("now", _DEFAULT_NOW):
        given["now"] = format_time(now)
    if witness.age != _duration(common.get("age", "0s")):
        given["age"] = duration_text(witness.age)
    return given


def _event(witness: Witness, shared: Json, vm_name: str) -> tuple[dict[str, Any], int | None]:
    """Return the event's fields, and the nanoseconds to NotBefore where the test has that instead of a field."""
    wanted = witness.event
    inherited = {
        "EventId": EVENT_ID,
        "ResourceType": "VirtualMachine",
        "Resources": [vm_name],
        "EventStatus": "Scheduled",
        **shared,
    }
    fields = dict.fromkeys((*_FIRST, *FIELD_SINCE))
    event = {
        field: wanted.get(field)
        for field in fields
        if field != "NotBefore" and (field == "EventType" or wanted.get(field) != inherited.get(field))
    }
    not_before = wanted.get("NotBefore") or ""
    if not not_before:
        if "NotBefore" in shared or wanted.get("EventStatus") != "Started":
            event["NotBefore"] = ""
        return event, None
    notice = from_datetime(parse_time(not_before)) - from_datetime(witness.facts.now)
    if "NotBefore" in shared or wanted.get("EventStatus") == "Started" or not 0 <= notice <= 36500 * 24 * 3600 * SECOND:
        event["NotBefore"] = not_before
        return event, None
    return event, notice


def _duration(value: Any) -> int | None:
    """Return nanoseconds of a file's value; None for an expression, which is not compared."""
    if isinstance(value, dict):
        value = value.get("value")
    try:
        return None if value is None else parse_duration(str(value))
    except ValueError:
        return None
