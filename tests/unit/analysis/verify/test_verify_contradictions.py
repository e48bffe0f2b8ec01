# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A condition that no event meets: verify names the fewest parts that exclude each other, and what each allows.

The judge knows nothing of the solver: it tries every duration, type and lead of a small world.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.fixtures.policy_files import HEAD, verified
from tools.suite.sizes import examples, seeds

TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
WORLD = [(duration, kind, leads) for duration in range(-1, 31) for kind in TYPES for leads in (True, False)]
Event = tuple[int, str, bool]
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
    "==": int.__eq__,
    "!=": int.__ne__,
}
_PART = re.compile(r"`([^`]+)` \(line (\d+)(?:: ([^`]*?))?\)(?=,| and| at once|$|: there is only)")


class Part(NamedTuple):
    """A part of a condition, and the events of the world for which it is true."""

    source: str
    true: frozenset[Event]


def part(chance: random.Random, depth: int = 1) -> Part:
    kind = chance.random()
    if depth and kind < 0.2:
        inner = [part(chance, 0) for _number in range(2)]
        return Part(f"({inner[0].source} || {inner[1].source})", inner[0].true | inner[1].true)
    if kind < 0.65:
        sign, limit = chance.choice(list(_COMPARE)), chance.choice((-1, 0, 3, 9, 20, 25))
        source, true = f"event.DurationInSeconds {sign} {limit}", [e for e in WORLD if _COMPARE[sign](e[0], limit)]
    elif kind < 0.9:
        chosen = chance.sample(TYPES, chance.randint(1, 3))
        source = f"event.EventType in {json.dumps(chosen)}" if chance.random() < 0.6 else ""
        source, given = source or f"event.EventType == '{chosen[0]}'", chosen if source else chosen[:1]
        true = [e for e in WORLD if e[1] in given]
    else:
        leads = chance.random() < 0.5
        source, true = "leader" if leads else "!leader", [e for e in WORLD if e[2] == leads]
    return Part(source, frozenset(true))


def met(parts: tuple[Part, ...] | list[Part]) -> bool:
    return bool(frozenset(WORLD).intersection(*(one.true for one in parts)))


def fewest(parts: list[Part]) -> int:
    """Return how many of the parts exclude each other, at least."""
    sizes = range(1, len(parts) + 1)
    return next(size for size in sizes if any(not met(one) for one in itertools.combinations(parts, size)))


def allowed(words: str) -> Iterator[Event]:
    """Yield the events of the world that the words of a part are about."""
    if words.startswith("this VM"):
        assert words == "this VM is further down or this VM is not affected"
        yield from (event for event in WORLD if not event[2])
        return
    name, listed = re.fullmatch(r"(\w+) (?:=|in) (.+)", words).groups()  # type: ignore[union-attr]  # or the words are not as expected
    for event in WORLD:
        if name == "DurationInSeconds":
            ranges = [(one.split("..") * 2)[:2] for one in listed.split(", ")]
            if any(int(low) <= event[0] and (not high or event[0] <= int(high)) for low, high in ranges):
                yield event
        elif event[1] in listed.split(", "):
            yield event


@pytest.mark.parametrize("seed", seeds(examples(6)))
def test_fewest_exclusive_parts_are_named(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rules = [[part(chance) for _number in range(chance.randint(1, 6))] for _rule in range(12)]
    lines = [" &&\n        ".join(one.source for one in parts) for parts in rules]
    text = HEAD + "".join(
        f"    - id: r{number}\n      condition: |-\n        {line}\n      output: hold\n"
        for number, line in enumerate(lines)
    )
    found = {one.rule: one.message for one in verified(tmp_path, text) if one.code == "unsatisfiable-rule"}
    assert set(found) == {f"r{number}" for number, parts in enumerate(rules) if not met(parts)}
    for rule, message in found.items():
        parts = rules[int(str(rule)[1:])]
        said = _PART.findall(message.replace(" (unknown)", ""))
        named = [(by_source(parts, source), line, words) for source, line, words in said]
        chosen = [one for one, _line, _words in named]
        assert not met(chosen), message
        assert len(chosen) == fewest(parts), message
        for one, line, words in named:
            assert met([other for other in chosen if other is not one])
            assert one.source.strip("()") in text.split("\n")[int(line) - 1]
            assert not words or set(allowed(words)) == one.true, message


def by_source(parts: list[Part], source: str) -> Part:
    return next(one for one in parts if one.source.strip("()") == source.strip("()"))


SINGLE = {
    "event.DurationInSeconds < -1": "DurationInSeconds in -1 (unknown), 0..",
    "event.EventType.startsWith('X')": "EventType in Freeze, Reboot, Redeploy, Preempt, Terminate",
    "params.most > 30": "params.most in 1..20",
    "params.mode == 'c'": "params.mode in a, b",
    "notice < duration('0s')": "notice in 0s or more",
    "now.getHours() > 25": "",  # of a time, no values are said
    "size(b'a') == 2": "",
    "event.Description.contains('ab') && !event.Description.contains('a')": "",
}


@pytest.mark.parametrize(("condition", "only"), SINGLE.items())
def test_impossible_part_has_the_values_of_its_input(condition: str, only: str, tmp_path: Path) -> None:
    params = "params: [{name: most, type: int, default: 9, min: 1, max: 20},\n"
    params += "  {name: mode, type: string, default: a, enum: [a, b]}]\n"
    whole = json.dumps(f"leader && {condition}")
    text = HEAD.replace("rule:", params + "rule:") + f"    - {{id: never, condition: {whole}, output: hold}}\n"
    (finding,) = [one for one in verified(tmp_path, text) if one.code == "unsatisfiable-rule"]
    assert "leader" not in finding.message
    assert all(f"`{one}` (line 6" in finding.message for one in condition.split(" && ")), finding.message
    assert (finding.message.partition("there is only ")[2]) == only


def test_variable_is_named_with_its_values(tmp_path: Path) -> None:
    variables = "rule:\n  variables: [{name: brief, expression: event.DurationInSeconds < 9 && notice > age}]\n"
    condition = "variables.brief && event.DurationInSeconds > 20"
    text = HEAD.replace("rule:\n", variables) + f"    - {{id: never, condition: {condition}, output: hold}}\n"
    (finding,) = [one for one in verified(tmp_path, text) if one.code == "unsatisfiable-rule"]
    said = "`variables.brief` (line 5) and `event.DurationInSeconds > 20` (line 5: DurationInSeconds in 21..) at once"
    assert finding.message == f"rule never never applies: no event meets {said}"
