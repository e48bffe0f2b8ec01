# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies of every shape that a policy file allows, for tests that judge the prover.

They are made of the language, not of what an analysis understands: arithmetic, times of day in zones, texts, loops,
parameters of every type with and without limits, nested groups, variables, hooks, explanations that may fail.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from .drawn_words import DAYS, MINUTES, NAMES, NUMBERS, SECONDS, TAGS, TEXTS, TIMES, TYPES, ZONES

Data = dict[str, Any]
# Declarations of parameters: each with limits that many values break, and without any.
_DECLARED: Mapping[str, tuple[str, ...]] = {
    "n": (
        "default: 9",
        "default: 9, min: 0, max: 60",
        "default: 9, max: 61",
        "default: 5, min: 5",
        "enum: [9, 30, 60]",
    ),
    "m": ("default: 1", "default: 3, min: 2", "default: 1, max: 2", "default: 2, enum: [1, 2, 3]", "min: 0"),
    "d": ("default: 5m", "default: 5m, min: 1m, max: 10m", "default: 5m, max: 30m", "default: 5m, enum: [5m, 15m]"),
    "e": ("default: 5m", "default: 5m, min: 1m, max: 10m", "default: 30m, min: 1s"),
    "until": (
        "default: '2026-06-15T12:00:00Z'",
        "default: '2026-06-15T12:00:00Z', max: '2030-01-01T00:00:00Z'",
        "default: '2026-06-15T12:00:00Z', min: '2020-01-01T00:00:00Z'",
        "default: '2300-01-01T00:00:00Z'",
    ),
    "s": ("default: web", "default: web, enum: [web, WEB, db]", "default: ''", "enum: [Freeze, Reboot]"),
    "r": ("default: 0.5", "default: 0.0, min: -1.0, max: 1.0", "default: 0.5, min: 0.0"),
    "b": ("default: false", "default: true"),
    "names": ("default: [web_0]", "default: []"),
    "numbers": ("default: [9]", "default: [1, 5]"),
    "map": ("default: {role: web}", "default: {}"),
}
_TYPES = {
    **dict.fromkeys(("n", "m"), "int"),
    **dict.fromkeys(("d", "e"), "duration"),
    "until": "timestamp",
    "s": "string",
    "r": "double",
    "b": "bool",
    "names": "list(string)",
    "numbers": "list(int)",
    "map": "map(string, string)",
}
# What a condition is made of, by what makes it hard. The words in braces are drawn.
_ATOMS: Mapping[str, tuple[str, ...]] = {
    "fields": (
        *("event.EventType == '{type}'", "event.EventType in ['{type}', 'Reboot']", "has(event.EventSource)"),
        *("event.EventType.startsWith('{begin}')", "event.EventStatus == 'Started'", "event.EventSource == 'User'"),
        *("event.EventType != '{type}'", "event.EventStatus != 'Scheduled'", "has(event.NotBefore)"),
        *(
            "!has(event.DurationInSeconds) || event.DurationInSeconds > {seconds}",
            "event.ResourceType == 'VirtualMachine'",
        ),
        *("event.EventType.contains('e') && size(event.EventType) == 6", "event.EventType.lowerAscii() == 'freeze'"),
    ),
    "numbers": (
        *("event.DurationInSeconds < {seconds}", "event.DurationInSeconds == {seconds}", "{int} < {int}"),
        *("{int} == {int}", "{int} >= {int}", "{int} != {int}", "event.DurationInSeconds in [{seconds}, {seconds}]"),
        *("double(event.DurationInSeconds) < 60.5", "{int} / {int} > {number}", "{int} % 2 == 0", "variables.odd"),
        *("params.r > 0.25", "params.r * 2.0 == double({int})", "{int} in params.numbers", "size(params.numbers) > 1"),
        *("event.DurationInSeconds > {int} && event.DurationInSeconds < {int}", "string({int}) == '{seconds}'"),
    ),
    "durations": (
        *("notice < {dur}", "notice >= {dur}", "age > {dur}", "{dur} < {dur}", "{dur} == {dur}", "variables.soon"),
        *(
            "event.NotBefore - now < {dur}",
            "{dur} + {dur} > {dur}",
            "{dur} - {dur} <= {dur}",
            "notice.getMinutes() < {number}",
        ),
        *("params.e - params.d < duration('1us') && params.e > params.d", "age > {dur} && notice < {dur}"),
        *("duration(string({int}) + 's') < {dur}", "int(params.d.getSeconds()) > {seconds}", "params.d != params.e"),
    ),
    "times": (
        *(
            "now.getHours() < {number}",
            "now.getDayOfWeek() == {day}",
            "now.getDayOfWeek() in [0, 6]",
            "variables.weekend",
        ),
        *(
            "now.getHours('{zone}') >= {number}",
            "now.getDayOfWeek('{zone}') != {day}",
            "event.NotBefore.getHours() < 5",
        ),
        *("now.getDate() == 31", "now.getMinutes() == 7", "now.getFullYear() > 2030", "now.getMonth() == {number}"),
        *("now < {time}", "event.NotBefore < {time}", "{time} - now > {dur}", "event.NotBefore + {dur} > {time}"),
        *("event.NotBefore.getDayOfWeek('{zone}') == {day}", "now + {dur} < event.NotBefore", "now < params.until"),
        *("event.NotBefore.getDayOfYear() > 200", "now.getMilliseconds() == 999"),
    ),
    "names": (
        *(
            "'{name}' in event.Resources",
            "!('{name}' in event.Resources)",
            "vm.name == '{name}'",
            "vm.name != '{name}'",
        ),
        *("affects_me", "leader", "!affects_me", "affects_me && !leader", "size(event.Resources) == {count}"),
        *("'{name}' in event.Resources && size(event.Resources) == 1", "size(event.Resources) < params.m"),
        *("event.Resources.exists(one, one.startsWith('{begin}'))", "event.Resources.all(one, one != '{name}')"),
        *("event.Resources[0] == '{name}'", "event.Resources == ['{name}']", "vm.name in params.names"),
        *(
            "event.Resources.exists(one, one == vm.name)",
            "params.s in event.Resources",
            "vm.name.startsWith('{begin}')",
        ),
        *("size(event.Resources) > event.DurationInSeconds", "event.Resources.exists_one(one, one in params.names)"),
        *("event.Resources.exists(one, one.lowerAscii() == vm.name.lowerAscii())", "event.Resources[1] == '{name}'"),
    ),
    "facts": (
        *("vm.tags['{tag}'] == '{text}'", "'{tag}' in vm.tags", "has(vm.tags.role) && vm.tags.role == '{text}'"),
        *("vm.tags['{tag}'] != '{text}'", "vm.tags['{tag}'] in ['{text}', '{text}']", "vm.zone == '{number}'"),
        *("has(vm.zone)", "vm.tags['{tag}'] == vm.tags['{tag}']", "size(vm.tags) == 0", "vm.tags == params.map"),
        *("vm.tags['{tag}'].startsWith('{begin}')", "params.map['{tag}'] == vm.tags['{tag}']", "has(vm.tags)"),
        *("vm.tags.exists(key, key == '{tag}')", "vm.location == '{text}'", "vm.size != vm.zone", "params.map == {{}}"),
        *("int(vm.fault_domain) < {number}", "vm.scale_set in ['{text}']", "has(vm.fault_domain)"),
    ),
    "texts": (
        *(
            "event.Description == '{text}'",
            "event.Description.contains('{begin}')",
            "event.Description.matches('^a+b?$')",
        ),
        *("event.Description + 'x' == '{text}x'", "size(event.Description) < {number}", "event.EventId == '{text}'"),
        *("event.Description.startsWith('{begin}') && !event.Description.endsWith('t')", "event.EventId != 'a'"),
        *(
            "params.s == '{text}'",
            "params.s == event.Description",
            "params.s.startsWith('{begin}')",
            "params.s == vm.name",
        ),
        *("event.Description.substring(1) == 'he host'", "event.Description.lowerAscii() == '{text}'"),
        *("event.Description.matches('[0-9]') || event.Description == ''", "params.s.matches('(?i)web')"),
        *(
            "event.Description.split(' ')[0] == 'The'",
            "int(event.Description) > {number}",
            "event.EventType == params.s",
        ),
    ),
    "documents": (
        *("size(events) > 1", "events.exists(one, one.EventType == '{type}')", "events.all(one, one.EventId != 'z')"),
        *("events.exists(one, one.EventStatus == 'Started')", "events.exists(one, one.EventId != event.EventId)"),
        *(
            "events.filter(one, one.EventType == event.EventType).size() == {count}",
            "events[0].EventId == event.EventId",
        ),
        *("events.map(one, one.EventType) == ['{type}']", "events.exists(one, one.DurationInSeconds > {seconds})"),
    ),
    "constants": (
        *(
            "params.b",
            "!params.b",
            "params.b == affects_me",
            "has(event.Description)",
            "params.b ? affects_me : leader",
        ),
        *(
            "size('{text}') == {number}",
            "'{text}' < '{text}'",
            "1 / {number} > 0",
            "[{number}, {number}][{count}] == {number}",
        ),
    ),
}
_VARIABLES = {
    "odd": "event.DurationInSeconds % 2 == 1",
    "soon": "event.NotBefore - now < duration('10m')",
    "weekend": "now.getDayOfWeek() == 0 || now.getDayOfWeek() == 6",
}
_EXPLANATIONS = (
    *("'why'", "'another reason'", "'a freeze of ' + string(event.DurationInSeconds)", "event.Description"),
    *("'until ' + string(event.NotBefore)", "vm.tags['role']", "string(60 / event.DurationInSeconds)", "params.s"),
)
_CLAIMS = (
    *("decision == hold", "decision == approve || event.EventStatus == 'Started'", "decision == hold || affects_me"),
    *("!(decision == approve && event.EventType == '{type}')", "decision == hold || event.DurationInSeconds >= 0"),
    *("decision == hold || !has(event.DurationInSeconds) || event.DurationInSeconds < {seconds}",),
    *("decision == hold || size(event.Resources) == 1", "!(decision == approve && '{name}' in event.Resources)"),
    *("decision == hold || notice >= {dur}", "decision == hold || now.getDayOfWeek() != {day}", "params.n < {seconds}"),
    *("decision == hold || vm.name != '{name}'", "decision == hold || vm.tags['{tag}'] == '{text}'", "{atom}"),
    *("decision == hold || {atom}", "decision == approve || {atom}", "!(decision == approve && ({atom}))"),
)
_HOOKS: tuple[Data, ...] = (
    *(
        {"run": ["/usr/bin/drain"]},
        {"run": ["/usr/bin/drain", "--fast --now"]},
        {"run": ["/usr/bin/drain", "--fast", "--now"]},
    ),
    *({"run": ["/usr/bin/drain"], "timeout": "5m"}, {"unit": "app.service", "action": "stop"}),
    *({"http": "https://example.com/a"}, {"http": "https://example.com/a", "bearer": {"credential": "first"}}),
    *({"http": "https://example.com/a", "bearer": {"credential": "second"}}, {"run": ["/bin/a"], "retry": "never"}),
)
# Rules as people write them, with mistakes that they make.
_TYPICAL: tuple[tuple[Data, ...], ...] = (
    (
        {"condition": "event.EventType == '{type}' && event.DurationInSeconds < {seconds}", "output": "approve"},
        {"output": "hold"},
    ),
    (
        {"condition": "event.EventSource == 'User'", "output": "approve"},
        {"condition": "event.EventType != '{type}'", "output": "approve", "prepare": [{"run": ["/usr/bin/drain"]}]},
    ),
    (
        {"condition": "event.EventStatus == 'Started'", "output": "hold"},
        {"condition": "event.DurationInSeconds < {int}", "output": "approve", "approver": "witness"},
        {"condition": "notice < {dur}", "output": "hold"},
    ),
)
EXTRA = {"EventType": ["Hibernate", "SpotRebalanceRecommendation"], "EventStatus": ["Completed"]}


class Claim(NamedTuple):
    """An invariant of a policy: where its expression is, and the expression."""

    file: int
    line: int
    source: str


class Drawn(NamedTuple):
    """Policies that run together, as data and as the texts of their files."""

    data: tuple[Data, ...]
    texts: tuple[str, ...]
    api_version: str

    def claims(self) -> Iterator[Claim]:
        """Yield the invariants."""
        for file, (text, data) in enumerate(zip(self.texts, self.data)):
            lines = text.splitlines()
            for entry in data.get("invariants", ()):
                (line,) = (n for n, one in enumerate(lines, 1) if one == f"- name: {entry['name']}")
                yield Claim(file, line + 1, entry["expression"])

    def params(self) -> set[str]:
        """Return the names of all parameters."""
        return {entry["name"] for data in self.data for entry in data["params"]}

    def required(self) -> set[str]:
        """Return the names of parameters that have no default in some policy."""
        return {entry["name"] for data in self.data for entry in data["params"] if "default" not in entry}

    def unlimited(self) -> set[str]:
        """Return the names of parameters that some policy declares without limits."""
        limits = {"min", "max", "enum"}
        return {
            entry["name"]
            for data in self.data
            for entry in data["params"]
            if not limits & entry.keys() and entry["type"] != "bool"
        }


def written(data: Mapping[str, Any]) -> str:
    """Return the file of one policy; each value of it is on one line."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100_000, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def of(data: Iterable[Data], api_version: str) -> Drawn:
    """Return policies with their texts."""
    listed = tuple(data)
    return Drawn(listed, tuple(map(written, listed)), api_version)


def drawn(chance: random.Random, api_version: str, *, small: bool = False) -> Drawn:
    """Return one policy, or a few that run together. They may be refused by the compiler."""
    count = chance.choice((1, 1, 1, 2) if small else (1, 1, 1, 1, 2, 2, 3))
    size = 1 if small or count > 1 else 2
    return of((_Maker(chance, small).policy(f"p{number}", size) for number in range(count)), api_version)


class _Maker:
    """Makes one policy. Of each kind of word it takes a few, so that they meet."""

    def __init__(self, chance: random.Random, small: bool) -> None:
        self.chance, self.small = chance, small
        kinds = chance.sample(sorted(_ATOMS), chance.choice((1, 2) if small else (1, 2, 2, 3)))
        self.atoms = [atom for kind in kinds for atom in chance.sample(_ATOMS[kind], min(4, len(_ATOMS[kind])))]
        pools: Mapping[str, Sequence[Any]] = {
            "seconds": SECONDS,
            "minutes": MINUTES,
            "number": NUMBERS,
            "day": DAYS,
            "zone": ZONES,
            "name": NAMES,
            "tag": TAGS,
            "text": TEXTS,
            "type": TYPES,
            "stamp": TIMES,
            "count": (0, 1, 2),
            "begin": ("Re", "F", "web", "w", "", "The", "db"),
        }
        self.words = {kind: chance.sample(pool, min(3, len(pool))) for kind, pool in pools.items()}

    def policy(self, name: str, size: int) -> Data:
        rule = self._block(self.chance.randint(1, 2 * size), self.chance.choice((0, 0, 1, 2)))
        if self.chance.random() < 0.2:
            rule["match"] = [
                *(self._match(f"t{number}", one) for number, one in enumerate(self.chance.choice(_TYPICAL))),
                *rule["match"][: self.chance.randint(0, 1)],
            ]
        used = sorted({one for one in _VARIABLES if f"variables.{one}" in repr(rule)})
        rule["variables"] = [{"name": one, "expression": _VARIABLES[one]} for one in used]
        claims = self.chance.sample(_CLAIMS, self.chance.choice((0, 1, 2)))
        invariants = [{"name": f"claim {number}", "expression": self._filled(one)} for number, one in enumerate(claims)]
        data: Data = {"name": name}
        asked = repr((rule, invariants))
        data["params"] = [
            {"name": one, "type": _TYPES[one], **yaml.safe_load(f"{{{self.chance.choice(_DECLARED[one])}}}")}
            for one in _DECLARED
            if re.search(rf"params\.{one}\b", asked)
        ]
        for entry in data["params"]:  # as text, not as YAML's own times
            entry.update({key: str(value) for key, value in entry.items() if entry["type"] == "timestamp"})
        if self.chance.random() < 0.2:
            data["extra_values"] = {kind: EXTRA[kind] for kind in self.chance.sample(sorted(EXTRA), 1)}
        if not rule["variables"]:
            del rule["variables"]
        return {**data, "rule": rule, "invariants": invariants}

    def _block(self, count: int, depth: int) -> Data:
        matches = []
        for number in range(count):
            match: Data = {"id": f"r{number}"}
            last = number == count - 1
            if self.chance.random() < (0.55 if last else 0.93):
                match["condition"] = self.condition()
            elif not last:
                match["condition"] = self.condition(0)
            if depth and self.chance.random() < 0.4:
                match["rule"] = self._block(2, depth - 1)
                if self.chance.random() < 0.3:
                    match.pop("condition", None)  # a group
            else:
                match.update(self._outcome())
            matches.append(match)
        if len(matches) > 1 and self.chance.random() < 0.2:  # the same again, or the contrary
            asked = [one for one in matches[:-1] if "condition" in one]
            if asked and "condition" in matches[-1]:
                again = self.chance.choice(asked)["condition"]
                matches[-1]["condition"] = again if self.chance.random() < 0.5 else f"({again}) && !({again})"
        return {"match": matches}

    def _match(self, name: str, keys: Data) -> Data:
        asked = {"condition": self._filled(keys["condition"])} if "condition" in keys else {}
        return {"id": name, **keys, **asked}

    def _outcome(self) -> Data:
        chance = self.chance
        outcome: Data = {"output": chance.choice(("approve", "approve", "hold"))}
        if chance.random() < 0.2:
            outcome["explanation"] = chance.choice(_EXPLANATIONS)
        if chance.random() < 0.25:
            outcome["prepare"] = chance.sample(_HOOKS, chance.choice((1, 1, 2)))
            for key, values in (
                ("prepare_within", ("5m", "15m")),
                ("on_failure", ("approve",)),
                ("group", ("independent",)),
                ("recover_when", ("started",)),
            ):
                if chance.random() < 0.2:
                    outcome[key] = chance.choice(values)
            if chance.random() < 0.5 or "recover_when" in outcome:
                outcome["recover"] = [chance.choice(_HOOKS)]
        if outcome["output"] == "approve" and chance.random() < 0.15:
            outcome["approver"] = chance.choice(("any", "witness"))
        if chance.random() < 0.1:
            outcome["notify"] = [{"run": [chance.choice(("/bin/tell", "/bin/say"))]}]
        return outcome

    def condition(self, depth: int | None = None) -> str:
        """Return a condition, in which operators are nested at most so deep."""
        if depth is None:
            depth = 1 if self.small else 2
        kind = self.chance.choice(("and", "and", "and", "or", "or", "not", "if")) if depth else ""
        if not kind or self.chance.random() < 0.3:
            return self._filled(self.chance.choice(self.atoms))
        parts = [f"({self.condition(depth - 1)})" for _ in range(3)]
        if kind == "if":
            return f"{parts[0]} ? {parts[1]} : {parts[2]}"
        return f"!{parts[0]}" if kind == "not" else f" {'&&' if kind == 'and' else '||'} ".join(parts[:2])

    def _filled(self, atom: str) -> str:
        if atom.count("{") == 0:
            return atom
        return re.sub(r"\{(\w+)\}|\{\{|\}\}", lambda found: self._word(found[1]) if found[1] else found[0][0], atom)

    def _word(self, kind: str) -> str:
        if kind == "atom":
            return f"({self._filled(self.chance.choice(self.atoms))})"
        if kind == "int":
            return self._int()
        if kind == "dur":
            return self._duration()
        if kind == "time":
            return self.chance.choice(
                (f"timestamp('{self.chance.choice(self.words['stamp'])}')", "params.until", "now")
            )
        return str(self.chance.choice(self.words[kind]))

    def _int(self, depth: int = 1) -> str:
        if depth and self.chance.random() < 0.4:
            left, right = self._int(0), self._int(0)
            return f"({left} {self.chance.choice('+-*%/')} {right})"
        known = ("event.DurationInSeconds", "event.DurationInSeconds", "params.n", "params.m", "size(event.Resources)")
        others = ("now.getHours()", "size(events)", "event.NotBefore.getMinutes()", "now.getDayOfWeek()")
        return self.chance.choice((*known, *known, *others, self._word("seconds"), self._word("seconds")))

    def _duration(self, depth: int = 1) -> str:
        if depth and self.chance.random() < 0.3:
            return f"({self._duration(0)} {self.chance.choice('+-')} {self._duration(0)})"
        literal = f"duration('{self._word('minutes')}m')"
        known = ("notice", "age", "params.d", "params.e", "(event.NotBefore - now)", f"(now - {self._word('time')})")
        return self.chance.choice((*known, literal, literal))


# Versions of policies


def changed(before: Drawn, chance: random.Random) -> Drawn:
    """Return another version of policies: one thing is changed, or the same is said in another way."""
    data = [yaml.safe_load(written(one)) for one in before.data]
    for _ in range(20):
        target = chance.choice(data)
        kind = chance.choice(("output", "condition", "rewrite", "limit", "key", "order", "drop", "claim", "default"))
        if _change(target, kind, chance):
            break
    return of(data, before.api_version)


def _matches(block: Data) -> Iterator[tuple[list[Data], Data]]:
    for match in block["match"]:
        yield block["match"], match
        if "rule" in match:
            yield from _matches(match["rule"])


def _change(data: Data, kind: str, chance: random.Random) -> bool:
    """Change one policy; return whether there was something to change."""
    listed, match = chance.choice(list(_matches(data["rule"])))
    if kind in ("limit", "default"):
        if not data["params"]:
            return False
        entry = chance.choice(data["params"])
        again = yaml.safe_load(f"{{{chance.choice(_DECLARED[entry['name']])}}}")
        known = {"name": entry["name"], "type": entry["type"]}
        again = {key: str(value) if known["type"] == "timestamp" else value for key, value in again.items()}
        entry.clear()
        entry.update({**known, **again})
    elif kind == "claim":
        if not data["invariants"]:
            return False
        data["invariants"].pop()
    elif kind == "order":
        if len(listed) < 2 or "condition" not in listed[-1]:
            return False
        chance.shuffle(listed)
    elif kind == "drop":
        if len(listed) < 2:
            return False
        listed.remove(match)
    elif kind in ("condition", "rewrite"):
        if "condition" not in match:
            return False
        was = match["condition"]
        ways = (f"!(!({was}))", f"({was}) && ({was})", f"({was}) || ({was})", f"({was}) ? true : false")
        others = (
            f"!({was})",
            f"({was}) && affects_me",
            f"({was}) || event.EventType == 'Terminate'",
            _other_literal(was, chance),
        )
        match["condition"] = chance.choice(ways if kind == "rewrite" else others)
        return bool(match["condition"] != was)
    elif "output" not in match:
        return False
    elif kind == "output":
        match["output"] = {"approve": "hold", "hold": "approve"}[match["output"]]
        match.pop("approver", None)
    else:
        _change_key(match, chance)
    return True


def _other_literal(text: str, chance: random.Random) -> str:
    places = list(re.finditer(r"(?<![\w.'])\d+(?![\w'.])", text))
    if not places:
        return text
    place = chance.choice(places)
    return f"{text[: place.start()]}{int(place[0]) + 1}{text[place.end() :]}"


def _change_key(match: Data, chance: random.Random) -> None:
    kind = chance.choice(("explanation", "prepare", "notify", "approver", "on_failure", "hook"))
    if kind == "explanation":
        match["explanation"] = chance.choice([one for one in _EXPLANATIONS if one != match.get("explanation")])
    elif kind == "prepare":
        if match.pop("prepare", None) is None:
            match["prepare"] = [chance.choice(_HOOKS)]
        else:
            for key in ("on_failure", "prepare_within", "group", "recover", "recover_when", "parallel"):
                match.pop(key, None)
    elif kind == "notify":
        match["notify"] = [{"run": ["/bin/other"]}]
    elif kind == "approver":
        if match.pop("approver", None) is None and match["output"] == "approve":
            match["approver"] = chance.choice(("any", "witness"))
    elif kind == "on_failure" and "prepare" in match:
        match["on_failure"] = {"approve": "hold", "hold": "approve"}[match.get("on_failure", "hold")]
    elif "prepare" in match:
        match["prepare"] = [chance.choice(_HOOKS), *match["prepare"][1:]]
