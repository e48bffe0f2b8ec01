# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies that are hard to prove things about, and random events for them.

There are expressions that no analysis understands, times that are far away, names of VMs in other letters, literals
that no event has, literals of several types that look alike, tags of any name, parameters with limits, variables, and
nested groups, optional values and CEL's extensions. The engine is the judge of each event.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from forewarn.events import Document, Vm, format_time, parse_document
from forewarn.policy.decision import Facts

LONG = 10**6  # seconds, more than any condition asks for
_SECONDS = (-1, 0, 1, 5, 8, 9, 10, 30, 59, 60, 61, 119, 120, 899, 900, 901)
_MINUTES = (-60, -1, 0, 1, 4, 5, 6, 15, 29, 30, 31, 1440)
_NAMES = ("web_0", "WEB_0", "Web_0", "db_1", "7")
_TAGS = ("role", "ROLE", "", "a.b", "it's", '"', "a[0]", "tag:", "日本", "missing", "any other", "x" * 300)
_VALUES = ("x", "X", "", "missing", "any other", "x in another case", "X IN ANOTHER CASE", "a = b; or c", "role")
# Literals that one function takes and that look alike, in the source or in the artifact.
_SIZED = (
    *(("b'a'", "'61'"), ("b'61'", "'61'", "'3631'"), ("''", "b''", "[]", "{}"), ("[1]", "['1']", "[true]", "[null]")),
    *(("{1: b'a'}[1]", "{1: '61'}[1]"), ("[b'a'][0]", "['61'][0]"), ("{1: 1}", "{'1': 1}", "[1]", "b'1'", "'1'")),
)
_PRINTED = ("1", "1u", "'1'", "b'1'", "'31'", "true", "'true'", "duration('1s')", "timestamp(1)", "'1s'")
_ZEROS = ("0.0", "-0.0", "double(0)", "double(0u)", "1.0", "double('nan')", "double('inf')")
# The parts of conditions, by what makes them hard.
_ATOMS: Mapping[str, tuple[str, ...]] = {
    "fields": (
        *("event.EventType == 'Freeze'", "event.EventType in ['Reboot', 'Redeploy']", "has(event.EventSource)"),
        *("event.EventType.startsWith('Re')", "event.EventStatus == 'Started'", "event.EventSource == 'User'"),
        *("event.Description.contains('host')", "event.Description == 'x'", "vm.tags['role'] == 'x'", "has(vm.zone)"),
        *("size(events) > 1", "event.EventId == ''"),
    ),
    "durations": (
        *("event.DurationInSeconds < {seconds}", "event.DurationInSeconds == {seconds}", "variables.odd"),
        *("event.DurationInSeconds / 60 < 1", "event.DurationInSeconds % 2 == 0", "has(event.DurationInSeconds)"),
        *("double(event.DurationInSeconds) < 60.0", "60 / event.DurationInSeconds > 5"),
    ),
    "limits": (
        *("event.DurationInSeconds < params.limit", "params.limit > 30", "event.DurationInSeconds * 2 > params.limit"),
        *("notice < params.enough", "params.enough == duration('10m')"),
    ),
    "times": (
        *("notice < duration('{minutes}m')", "event.NotBefore - now >= duration('{minutes}m')", "variables.soon"),
        *("timestamp('2330-01-01T00:00:00Z') - now > duration('1h')", "event.NotBefore.getHours() < 5"),
        *("event.NotBefore - timestamp('1750-01-01T00:00:00Z') > duration('1h')", "now.getHours() < 12"),
        *("now < timestamp('2050-01-01T00:00:00Z')", "event.NotBefore > now + duration('{minutes}m')"),
        *("event.NotBefore < event.NotBefore + duration('1m')", "notice > age", "age > duration('5m')"),
    ),
    "names": (
        *("'{name}' in event.Resources", "vm.name == '{name}'", "vm.name != '{name}'", "affects_me", "leader"),
        *("'{name}' in event.Resources && affects_me && size(event.Resources) == 1", "size(event.Resources) == 1"),
        *("event.Resources.exists(one, one.startsWith('db'))", "vm.name.startsWith('web')", "'' in event.Resources"),
    ),
    "tags": (
        *("vm.tags[{tag}] == {value}", "vm.tags[{tag}] != {value}", "vm.tags[{tag}] in [{value}, 'x']"),
        *("{tag} in vm.tags", "has(vm.tags.role)", "vm.tags[{tag}].startsWith({value})", "vm.zone == {value}"),
    ),
    "optionals": (
        *("event.?DurationInSeconds.orValue(-1) < {seconds}", "event.?NotBefore.hasValue()"),
        *("event.?EventSource.orValue('User') == 'User'", "vm.tags[?{tag}].orValue({value}) == 'x'"),
        *("vm.tags[?{tag}].or(vm.tags[?'role']).orValue('') == {value}", "vm.?zone.orValue('') == {value}"),
        *("event.?DurationInSeconds.optMap(s, s * 2 > {seconds}).orValue(false)", "event.Resources[?0] == vm.?name"),
        *("cel.bind(d, event.DurationInSeconds, d > {seconds} || d == {seconds})", "[?event.?EventSource] == ['User']"),
        *("event.Resources[?0].orValue('') == '{name}'", "events[?1].?EventType.orValue('') == 'Freeze'"),
    ),
    "extensions": (
        *("event.DurationInSeconds < 9.5", "event.DurationInSeconds == {zero}", "params.limit > params.ratio"),
        *("math.greatest(event.DurationInSeconds, {seconds}) == {seconds}", "params.ratio == params.limit"),
        *("math.least(event.DurationInSeconds, 1.5, params.limit) > 1", "dyn(event.DurationInSeconds) == {zero}"),
        *("sets.contains(event.Resources, ['{name}'])", "sets.intersects([event.EventType], ['Freeze', 'Reboot'])"),
        *("event.Resources.distinct().size() == size(event.Resources)", "type(event.EventType) == string"),
        *("[1, 'a', event.EventType].exists(x, x == 'Freeze')", "vm.tags.existsOne(k, v, v == {value})"),
        *("event.Resources.exists(i, r, i == 0 && r == '{name}')", "event.DurationInSeconds in [{zero}, 5]"),
        *("'%s-%d'.format([event.EventType, event.DurationInSeconds]) == 'Freeze-5'", "{tag} in vm.tags"),
    ),
    "literals": (
        *("size({sized}) == {number}", "size({sized}) > {number}", "size({sized}) != {number}"),
        *("string({printed}) == {text}", "{text} == string({printed})", "1.0 / {zero} > 0.0", "1.0 / {zero} < 0.0"),
        *("params.ratio < {zero}", "params.ratio == {zero}", "params.ratio >= double('-inf')"),
    ),
}
_LIMITS = (
    *("default: 9, min: 0, max: 60", "default: 60, min: 0, max: 60", "default: 9, min: 0, max: 900", "default: 9"),
    *("default: 9, enum: [9, 60]", "default: 9, enum: [9, 10, 900]", "default: 9, min: 5", "default: 9, max: 61"),
)
_ENOUGH = ("min: 1m, max: 30m", "min: 5m, max: 10m", "max: 30m", "enum: [5m, 15m]", "description: any")
_Words = Mapping[str, Sequence[Any]]  # by their names in the parts of conditions
_RATIOS = ("default: 1.0", "default: 0.0, min: -1.0, max: 1.0", "min: 0.0", "default: 0.0, enum: [0.0, 1.0]")
# Claims that do not hold for some approved events.
CLAIMS: Mapping[str, str] = {
    "nothing": "decision == hold",
    "known": "decision == hold || !has(event.DurationInSeconds) || event.DurationInSeconds >= 0",
    "mine": "decision == hold || !has(vm.name) || vm.name != 'WEB_0'",
}


class Case(NamedTuple):
    """One event as the service writes it, with what else a decision reads; ``params`` are JSON values."""

    fields: Mapping[str, Any]
    others: int
    facts: Mapping[str, Any]
    now: datetime
    age: timedelta
    params: Mapping[str, Any]

    def document(self, **instead: Any) -> Document:
        """Return the document, of which the event is the first."""
        event = {**self.fields, **instead}
        listed = [event, *({**event, "EventId": f"other-{number}"} for number in range(self.others))]
        return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": listed}))

    def given(self) -> Facts:
        """Return the facts."""
        first_seen = {one.key: self.now - self.age for one in self.document().events}
        return Facts(self.now, Vm(**self.facts), first_seen)


def policy(chance: random.Random) -> str:
    """Return a policy file."""
    # Not all in one policy: it would tell apart too many classes.
    kinds = ["literals", "tags"] if chance.random() < 0.3 else chance.sample(sorted(_ATOMS), 2)
    atoms = [atom for kind in kinds for atom in chance.sample(_ATOMS[kind], min(4, len(_ATOMS[kind])))]
    limits, enough = (chance.choice(some) for some in (_LIMITS, _ENOUGH))
    lines = [
        "name: p",
        "params:",
        f"  - {{name: limit, type: int, {limits}}}",
        f"  - {{name: enough, type: duration, default: 5m, {enough}}}",
        f"  - {{name: ratio, type: double, {chance.choice(_RATIOS)}}}",
        "rule:",
        "  variables:",
        "    - {name: odd, expression: event.DurationInSeconds % 2 == 1}",
        "    - {name: soon, expression: \"event.NotBefore - now < duration('10m')\"}",
        *_block(chance, atoms, _words(chance), "  ", chance.randint(2, 4), nested=True),
        "invariants:",
        *(f"  - {{name: {name}, expression: {json.dumps(claim)}}}" for name, claim in CLAIMS.items()),
    ]
    return "\n".join(lines) + "\n"


def _words(chance: random.Random) -> _Words:
    """Return what the parts of one policy's conditions are made of: few tags and literals, so that they meet."""
    return {
        "seconds": _SECONDS,
        "minutes": _MINUTES,
        "name": _NAMES,
        "tag": [json.dumps(tag) for tag in chance.sample(_TAGS, 2)],
        "value": [json.dumps(value) for value in chance.sample(_VALUES, 3)],
        "sized": chance.choice(_SIZED),
        "number": (0, 1, 2),
        "printed": chance.sample(_PRINTED, 3),
        "text": ("'1'", "'true'", "'1s'", "'31'"),
        "zero": chance.sample(_ZEROS, 2),
    }


def other(text: str, chance: random.Random) -> str:
    """Return a version of a policy file that differs in limits, in a default, or in an output."""
    lines = text.splitlines()
    kind = chance.choice(("limit", "enough", "output"))
    if kind == "output":
        places = [place for place, line in enumerate(lines) if "output: " in line]
        place = chance.choice(places)
        turned = {"approve": "hold", "hold": "approve"}
        before, _output, after = lines[place].partition("output: ")
        lines[place] = before + "output: " + turned[after]
    else:
        drawn = policy(chance).splitlines()
        place = 2 if kind == "limit" else 3
        lines[place] = drawn[place]
    return "\n".join(lines) + "\n"


def _block(
    chance: random.Random, atoms: list[str], words: _Words, indent: str, count: int, *, nested: bool
) -> list[str]:
    lines = [f"{indent}match:"]
    for number in range(count):
        lines.append(f"{indent}  - id: r{number}")
        group = nested and chance.random() < 0.3
        if not group or chance.random() < 0.7:
            lines.append(f"{indent}    condition: {json.dumps(_condition(chance, atoms, words))}")
        if group:
            lines += [f"{indent}    rule:", *_block(chance, atoms, words, indent + "      ", 2, nested=False)]
        else:
            lines.append(f"{indent}    output: {chance.choice(('approve', 'hold'))}")
    return lines


def _condition(chance: random.Random, atoms: list[str], words: _Words, depth: int = 2) -> str:
    kind = chance.choice(("and", "and", "and", "or", "not", "if")) if depth else ""
    if not kind or chance.random() < 0.2:
        return chance.choice(atoms).format(**{name: chance.choice(some) for name, some in words.items()})
    parts = [f"({_condition(chance, atoms, words, depth - 1)})" for _ in range(3)]
    if kind == "if":
        return f"{parts[0]} ? {parts[1]} : {parts[2]}"
    return f"!{parts[0]}" if kind == "not" else f" {'&&' if kind == 'and' else '||'} ".join(parts[:2])


def case(chance: random.Random) -> Case:
    """Return a random event that the service may send, near the constants of conditions."""
    year = chance.choice((2020, 2026, 2026, 2049, 2051, 2059))
    now = datetime(year, chance.randint(1, 12), chance.randint(1, 28), chance.randint(0, 23), tzinfo=timezone.utc)
    lead = timedelta(minutes=chance.choice(_MINUTES), seconds=chance.choice((0, 0, -1, 1)))
    started = chance.random() < 0.2
    name = chance.choice((*_NAMES, None, "vm_0"))
    listed = {one.lower(): one for one in chance.sample(_NAMES, chance.choice((0, 0, 1, 2)))}
    if name is not None and chance.random() < 0.7:
        listed.setdefault(name.lower(), "".join(chance.choice((one, one.swapcase())) for one in name))
    fields = {
        "EventId": "a",
        "EventType": chance.choice(("Freeze", "Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")),
        "EventStatus": "Started" if started else "Scheduled",
        "ResourceType": "VirtualMachine",
        "Resources": chance.sample(list(listed.values()), len(listed)) or ["vm_9"],
        "EventSource": chance.choice(("Platform", "User", None)),
        "DurationInSeconds": chance.choice((*_SECONDS, LONG, None)),
        "Description": chance.choice(("x", "the host is old", "", None)),
        "NotBefore": "" if started else chance.choice((format_time(now + lead), format_time(now + lead), "")),
    }
    tags = {tag: chance.choice((*_VALUES, "other")) for tag in chance.sample(_TAGS, chance.choice((0, 1, 6)))}
    facts = {"name": name, "tags": chance.choice((None, tags, tags)), "zone": chance.choice((None, "1", *_VALUES))}
    params = {
        "limit": chance.choice(_SECONDS),
        "enough": f"{chance.choice((1, 4, 5, 6, 10, 15, 30, 31))}m",
        "ratio": chance.choice((0.0, 0.5, 1.0, 1e308)),
    }
    given = {key: value for key, value in params.items() if chance.random() < 0.7}
    event = {key: value for key, value in fields.items() if value is not None}
    return Case(event, chance.choice((0, 0, 1)), facts, now, timedelta(minutes=chance.choice((0, 1, 5, 6))), given)
