# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random conditions of policies: arithmetic, times of day in zones, texts, names, loops, lists, optional values,
CEL's extensions, and long expressions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .drawn_words import (
    BEGINNINGS,
    DAYS,
    LETTERS,
    MINUTES,
    NAMES,
    NUMBERS,
    SECONDS,
    STRANGE_BEGINNINGS,
    STRANGE_NAMES,
    STRANGE_TEXTS,
    TAGS,
    TEXTS,
    TIMES,
    TYPES,
    ZONES,
)

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
        *(
            "duration(string({int}) + 's') < {dur}",
            "duration(string({int}) + 'h') > {dur}",
            "int(params.d.getSeconds()) > {seconds}",
            "params.d != params.e",
        ),
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
        *("now.getHours(params.zone) < {number}", "event.NotBefore.getDayOfWeek(params.zone) == {day}"),
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
        *("event.Resources[0].lowerAscii() in params.names", "!('{name}' in params.names)", "vm.zone in params.names"),
        *(
            "event.Resources.filter(one, one.startsWith('{begin}')).size() > {count}",
            "event.Resources.filter(one, !(one in params.names)).size() == {count}",
            "event.Resources.exists_one(one, one == vm.name || one == '{name}')",
            "event.Resources.distinct().size() == {count}",
        ),
        *(
            "event.Resources.exists(one, one == vm.name)",
            "params.s in event.Resources",
            "vm.name.startsWith('{begin}')",
        ),
        *("size(event.Resources) > event.DurationInSeconds", "event.Resources.exists_one(one, one in params.names)"),
        *("event.Resources.exists(one, one.lowerAscii() == vm.name.lowerAscii())", "event.Resources[1] == '{name}'"),
        *("affects_me && vm.name == '{name}' && !('{name}' in event.Resources)", "affects_me && vm.name != '{name}'"),
        "'{name}' in event.Resources && size(event.Resources) == 1 && affects_me && vm.name != '{name}'",
    ),
    "facts": (
        *("vm.tags['{tag}'] == '{text}'", "'{tag}' in vm.tags", "has(vm.tags.role) && vm.tags.role == '{text}'"),
        *("vm.tags['{tag}'] != '{text}'", "vm.tags['{tag}'] in ['{text}', '{text}']", "vm.zone == '{number}'"),
        *("has(vm.zone)", "vm.tags['{tag}'] == vm.tags['{tag}']", "size(vm.tags) == 0", "vm.tags == params.map"),
        *("vm.tags['{tag}'].startsWith('{begin}')", "params.map['{tag}'] == vm.tags['{tag}']", "has(vm.tags)"),
        *("vm.tags.exists(key, key == '{tag}')", "vm.location == '{text}'", "vm.size != vm.zone", "params.map == {{}}"),
        *("int(vm.fault_domain) < {number}", "vm.scale_set in ['{text}']", "has(vm.fault_domain)"),
    ),
    "optionals": (
        *("event.?DurationInSeconds.orValue({seconds}) < {seconds}", "event.?NotBefore.hasValue()"),
        *("event.?DurationInSeconds.orValue({int}) == {int}", "event.?DurationInSeconds == optional.of({seconds})"),
        *("event.?NotBefore.orValue(now) - now < {dur}", "event.?EventSource.orValue('User') == 'User'"),
        *("vm.tags[?'{tag}'].orValue('{text}') == '{text}'", "vm.tags[?'{tag}'] == vm.tags[?'{tag}']"),
        *("vm.tags[?'{tag}'].or(event.?EventSource).orValue('') == '{text}'", "params.map[?'{tag}'].hasValue()"),
        "event.?DurationInSeconds.optMap(s, s + {int} > {seconds}).orValue(affects_me)",
        *("event.?Description.optFlatMap(d, d == '{text}' ? optional.of(d) : optional.none()).hasValue()", "leader"),
        *("cel.bind(d, {int}, d > {seconds} || d == {seconds})", "cel.bind(d, {int} / {int}, leader || d > {number})"),
        *(
            "cel.bind(d, {int} > {seconds}, event.Resources.exists(one, d && one != '{name}'))",
            "cel.bind(d, affects_me, event.Resources.all(one, !d || one == '{name}'))",
            "cel.bind(d, vm.name, event.Resources.filter(one, one == d).size() > 0)",
        ),
        *("event.Resources[?{count}].orValue('') == '{name}'", "events[?1].?EventType.orValue('') == '{type}'"),
        *("event.?NotBefore.value() > now", "event.?DurationInSeconds.value() < {seconds}"),
        *("event.?Description.value().startsWith('{begin}')", "vm.tags.?role.value() == '{text}'"),
    ),
    "extensions": (
        *("{int} < params.r", "event.DurationInSeconds == params.r", "params.r * 2.0 != {int}", "{int} >= {number}.5"),
        *("math.greatest({int}, {int}) == {int}", "math.least({int}, {int}, {seconds}) < {number}"),
        *("math.abs({int}) == {seconds}", "math.sign({int}) < 0", "math.greatest(params.numbers) > {int}"),
        *("sets.contains(event.Resources, ['{name}'])", "sets.intersects([event.EventType], ['{type}', 'Reboot'])"),
        *("sets.equivalent(event.Resources, ['{name}'])", "sets.contains(params.names, event.Resources)"),
        *("event.Resources.filter(r, r != vm.name).size() > 0", "event.Resources.filter(r, r == '{name}') == []"),
        "event.Resources.filter(r, r.startsWith('{begin}') && vm.zone == '{number}').size() == 0",
        *(
            "[{int}, {int}].filter(n, n > {seconds}).size() == {count}",
            "size(['{name}', vm.name].filter(n, n in event.Resources)) > 0",
        ),
        *("event.Resources.distinct().size() == size(event.Resources)", "params.numbers.sort() == params.numbers"),
        *("dyn({int}) == {int}", "dyn({int}) < 2.5", "[{number}, '{text}', vm.name].exists(x, x == '{name}')"),
        *("type(event.EventType) == string", "'%d %s'.format([{int}, vm.name]) == '{number} {text}'"),
        *("event.Resources.exists(i, r, i == {count} && r == '{name}')", "vm.tags.all(k, v, v == '{text}')"),
        *("params.numbers.slice(0, {count}).size() == {count}", "strings.quote(params.s).size() > {number}"),
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
        *("event.Description.lowerAscii().contains('{begin}')", "params.s.upperAscii() in ['{text}', '{type}']"),
        *("params.s.upperAscii().startsWith('{begin}')", "event.Description.lowerAscii().matches('^[a-z ]*$')"),
        *("event.Description.matches('[0-9]') || event.Description == ''", "params.s.matches('(?i)web')"),
        *(
            "event.Description.split(' ')[0] == 'The'",
            "int(event.Description) > {number}",
            "event.EventType == params.s",
        ),
    ),
    "long": (
        "[{long}, {long}].exists_one(one, string(one).endsWith('{count}'))",
        "[{long}, {long}].exists(one, string(one).endsWith('{count}')) && {long} > {long}",
        "['{input}', {input}].exists_one(one, (one + event.Description + params.s).contains('{begin}'))",
        "['{input}', {input}].exists(one, size(one + event.Description + params.s) == {number})",
        "event.Description.startsWith('{begin}') && event.Description != '{begin}'{without}",
        "event.Description.startsWith('{begin}') && !event.Description.contains('{begin}')",
        "!event.Description.startsWith('{begin}') && event.Description.endsWith('{begin}'){without}",
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
VARIABLES = {
    "odd": "event.DurationInSeconds % 2 == 1",
    "soon": "event.NotBefore - now < duration('10m')",
    "weekend": "now.getDayOfWeek() == 0 || now.getDayOfWeek() == 6",
}
_INTEGERS = ("event.DurationInSeconds", "params.n", "size(event.Resources)", "now.getHours()")
_STRANGE = 0.3  # of the policies have words that are hard to read
_INPUTS = ("vm.name", "event.EventType", "event.Description", "event.EventId", "params.s")


class Conditions:
    """Makes conditions of one policy. Of each kind of word it takes a few, so that they meet."""

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
            "begin": BEGINNINGS,
            "input": (chance.choice(_INPUTS),),  # the same wherever it occurs
        }
        if chance.random() < _STRANGE:
            pools = {**pools, "name": STRANGE_NAMES, "text": STRANGE_TEXTS, "begin": STRANGE_BEGINNINGS}
        self._more = f" + {chance.choice(_INTEGERS)}" * 24
        self.words = {kind: chance.sample(pool, min(3, len(pool))) for kind, pool in pools.items()}

    def drawn(self, depth: int | None = None) -> str:
        """Return a condition, in which operators are nested at most so deep."""
        if depth is None:
            depth = 1 if self.small else 2
        kind = self.chance.choice(("and", "and", "and", "or", "or", "not", "if")) if depth else ""
        if not kind or self.chance.random() < 0.3:
            return self.filled(self.chance.choice(self.atoms))
        parts = [f"({self.drawn(depth - 1)})" for _ in range(3)]
        if kind == "if":
            return f"{parts[0]} ? {parts[1]} : {parts[2]}"
        return f"!{parts[0]}" if kind == "not" else f" {'&&' if kind == 'and' else '||'} ".join(parts[:2])

    def filled(self, atom: str) -> str:
        if atom.count("{") == 0:
            return atom
        return re.sub(r"\{(\w+)\}|\{\{|\}\}", lambda found: self._word(found[1]) if found[1] else found[0][0], atom)

    def _word(self, kind: str) -> str:
        if kind == "atom":
            return f"({self.filled(self.chance.choice(self.atoms))})"
        if kind == "int":
            return self._int()
        if kind == "dur":
            return self._duration()
        if kind == "time":
            return self.chance.choice(
                (f"timestamp('{self.chance.choice(self.words['stamp'])}')", "params.until", "now")
            )
        if kind == "long":  # deeper than what z3 prints
            return f"({self._word('number')}{self._more})"
        if kind == "without":
            letters = self.chance.sample(LETTERS, self.chance.choice((0, 1, len(LETTERS))))
            return "".join(f" && !event.Description.contains('{_quoted(one)}')" for one in letters)
        return _quoted(str(self.chance.choice(self.words[kind])))

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


def _quoted(text: str) -> str:
    """Return a text as a literal in quotes has it."""
    return text.replace("\\", "\\\\")
