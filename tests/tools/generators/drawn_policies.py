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

from .drawn_conditions import VARIABLES, Conditions
from .drawn_params import DECLARED, declaration

Data = dict[str, Any]
EXPLANATIONS = (
    *("'why'", "'another reason'", "'a freeze of ' + string(event.DurationInSeconds)", "event.Description"),
    *("'until ' + string(event.NotBefore)", "vm.tags['role']", "string(60 / event.DurationInSeconds)", "params.s"),
)
# Names of the groups of limits; some have no value for many events, or are empty.
GROUPS = (
    *(
        "'web'",
        "vm.scale_set",
        "vm.tags['role']",
        "vm.zone",
        "event.EventSource",
        "event.Description",
        "params.s",
        "''",
    ),
    *(
        "has(vm.zone) ? vm.zone : 'none'",
        "vm.name.lowerAscii()",
        "event.Resources.map(r, r).join('-')",
        "variables.odd",
    ),
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
HOOKS: tuple[Data, ...] = (
    *(
        {"run": ["/usr/bin/drain"]},
        {"run": ["/usr/bin/drain", "--fast --now"]},
        {"run": ["/usr/bin/drain", "--fast", "--now"]},
    ),
    *({"run": ["/usr/bin/drain"], "timeout": "5m"}, {"unit": "app.service", "action": "stop"}),
    *({"http": "https://example.com/a"}, {"http": "https://example.com/a", "bearer": {"credential": "first"}}),
    {"http": "https://example.com/a", "bearer": {"credential": "second"}},
    {"run": ["/bin/a"], "retry": "never", "credentials": ["first"]},
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
    (
        {"condition": "vm.tags['role'] == 'web'", "output": "approve"},
        {"condition": "affects_me", "output": "approve", "group": "ready", "prepare": [{"run": ["/usr/bin/drain"]}]},
    ),
)
EXTRA = {"EventType": ["Hibernate", "SpotRebalanceRecommendation"], "EventStatus": ["Completed"]}


class Claim(NamedTuple):
    """An invariant of a policy: where its expression is, and the expression."""

    file: int
    line: int
    source: str


class DrawnPolicies(NamedTuple):
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


def of(data: Iterable[Data], api_version: str) -> DrawnPolicies:
    """Return policies with their texts."""
    listed = tuple(data)
    return DrawnPolicies(listed, tuple(map(written, listed)), api_version)


def drawn(chance: random.Random, api_version: str, *, small: bool = False) -> DrawnPolicies:
    """Return one policy, or a few that run together. They may be refused by the compiler."""
    count = chance.choice((1, 1, 1, 2) if small else (1, 1, 1, 1, 2, 2, 3))
    size = 1 if small or count > 1 else 2
    return of((_Maker(chance, small).policy(f"p{number}", size) for number in range(count)), api_version)


def limit(chance: random.Random, groups: Sequence[str] = GROUPS) -> Any:
    """Return a limit, in one of the forms that it has in a file; ``groups`` are expressions that may name its group."""
    most = chance.choice((1, 2, 5, "10%", "25%", "100%"))
    form = chance.random()
    if form < 0.4:
        return most
    return {"at_most": most} if form < 0.5 else {"at_most": most, "group": chance.choice(groups)}


class _Maker:
    """Makes one policy."""

    def __init__(self, chance: random.Random, small: bool) -> None:
        self.chance = chance
        self.conditions = Conditions(chance, small)

    def policy(self, name: str, size: int) -> Data:
        rule = self._block(self.chance.randint(1, 2 * size), self.chance.choice((0, 0, 1, 2)))
        if self.chance.random() < 0.2:
            rule["match"] = [
                *(self._match(f"t{number}", one) for number, one in enumerate(self.chance.choice(_TYPICAL))),
                *rule["match"][: self.chance.randint(0, 1)],
            ]
        used = sorted({one for one in VARIABLES if f"variables.{one}" in repr(rule)})
        rule["variables"] = [{"name": one, "expression": VARIABLES[one]} for one in used]
        claims = self.chance.sample(_CLAIMS, self.chance.choice((0, 1, 2)))
        invariants = [
            {"name": f"claim {number}", "expression": self.conditions.filled(one)} for number, one in enumerate(claims)
        ]
        data: Data = {"name": name}
        asked = repr((rule, invariants))
        data["params"] = [declaration(one, self.chance) for one in DECLARED if re.search(rf"params\.{one}\b", asked)]
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
                match["condition"] = self.conditions.drawn()
            elif not last:
                match["condition"] = self.conditions.drawn(0)
            if depth and self.chance.random() < 0.4:
                match["rule"] = self._block(2, depth - 1)
                group = self.chance.random()
                if group < 0.3:
                    match.pop("condition", None)
                elif group < 0.6:
                    match["condition"] = self.chance.choice(("false", "true", "1 == 2"))
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
        asked = {"condition": self.conditions.filled(keys["condition"])} if "condition" in keys else {}
        return {"id": name, **keys, **asked}

    def _outcome(self) -> Data:
        chance = self.chance
        outcome: Data = {"output": chance.choice(("approve", "approve", "hold"))}
        if chance.random() < 0.2:
            outcome["explanation"] = chance.choice(EXPLANATIONS)
        if chance.random() < 0.25:
            outcome["prepare"] = chance.sample(HOOKS, chance.choice((1, 1, 2)))
            for key, values in (
                ("prepare_within", ("5m", "15m")),
                ("on_failure", ("approve",)),
                ("group", ("independent", "ready")),
                ("recover_when", ("started",)),
            ):
                if chance.random() < 0.2:
                    outcome[key] = chance.choice(values)
            if chance.random() < 0.5 or "recover_when" in outcome:
                outcome["recover"] = [chance.choice(HOOKS)]
        elif outcome["output"] == "approve" and chance.random() < 0.1:
            outcome["group"] = "ready"
        if (outcome["output"] == "approve" or "prepare" in outcome) and chance.random() < 0.12:
            outcome["limit"] = limit(chance)
        if outcome["output"] == "approve" and chance.random() < 0.15:
            outcome["approver"] = chance.choice(("any", "witness"))
        if chance.random() < 0.1:
            outcome["notify"] = [{"run": [chance.choice(("/bin/tell", "/bin/say"))]}]
        return outcome
