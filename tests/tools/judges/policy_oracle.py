# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides an event by a policy file without the product's evaluator: expressions are for other CEL engines.

Written from the description of the policy language; for the subset of it that the shipped policies use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.types import BOOL, STRING, parse_type
from forewarn.events import LATEST_API_VERSION

from .cel_oracles import CelPython, Google

SECOND = 10**9
TYPES = {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"}
STATUSES = {"Scheduled", "Started"}


class Limit(NamedTuple):
    """At most ``most`` VMs of a group, as the file has it: ``1``, ``25%``. Without one, the configuration names it."""

    most: str
    group: str | None


class Answer(NamedTuple):
    """What a policy decides, and ``how``: by ``rule``, ``error``, ``explanation``, ``limit``, ``doubt`` or ``no-rule``.

    ``group`` and ``limit`` are those of the rule; ``prepares`` is whether it does.
    """

    output: str
    rule: str | None
    how: str
    group: str = "hold"
    limit: Limit | None = None
    prepares: bool = False


def together(answers: Sequence[Answer]) -> tuple[str, tuple[Limit, ...]]:
    """Return what happens to an event of several VMs, and how many may be disturbed, if policies run together.

    All that do not abstain have a say. Who prepares and says ``hold`` wants nothing approved; who says ``ready`` wants
    all to be waited for; and a ``hold`` of those that prepare nothing counts where another prepares.
    """
    acting = [one for one in answers if one.output != "abstain"]
    said = {one.group for one in acting}
    order = (
        ["hold", "ready", "independent"] if any(one.prepares for one in acting) else ["ready", "hold", "independent"]
    )
    limits = [one.limit for one in acting if one.limit is not None]
    return next((one for one in order if one in said), "hold"), tuple(dict.fromkeys(limits))


class Oracle:
    """One policy file, evaluated by cel-python's interpreter or by Google's cel-expr-python."""

    def __init__(self, path: Path, engine: type[CelPython] | type[Google]) -> None:
        self._data = yaml.safe_load(path.read_text())
        types = {entry["name"]: parse_type(entry["type"]) for entry in self._data.get("params", ())}
        extra = {name: tuple(values) for name, values in self._data.get("extra_values", {}).items()}
        self._engine = engine(policy_declarations(LATEST_API_VERSION, types, {}, extra))
        self._spelled = _asking_first if engine is CelPython else str
        self._known: dict[tuple[str, str], Any] = {}
        self._defaults = {
            entry["name"]: _converted(entry["default"], entry["type"]) for entry in self._data.get("params", ())
        }
        self.params: dict[str, str] = {entry["name"]: entry["type"] for entry in self._data.get("params", ())}
        self._extra = extra
        self.evaluations = 0

    def decide(self, case: Mapping[str, Any]) -> Answer:
        """Decide a case: ``event`` as the service writes it, ``now``, ``first_seen``, ``vm``, ``params``, as JSON."""
        event = case["event"]
        if event["EventType"] not in TYPES | set(self._extra.get("EventType", ())):
            return Answer("hold", None, "doubt")
        if event["EventStatus"] not in STATUSES | set(self._extra.get("EventStatus", ())):
            return Answer("hold", None, "doubt")
        given = {name: _converted(value, self.params[name]) for name, value in case["params"].items()}
        values = _values(case, {**self._defaults, **given})
        return self._block(self._data["rule"], {}, values, "") or Answer("abstain", None, "no-rule")

    def _block(
        self, block: Mapping[str, Any], variables: Mapping[str, str], values: Mapping[str, Any], at: str
    ) -> Answer | None:
        """Return what a block decides, or None if the search goes on after it."""
        known = dict(variables)
        for entry in block.get("variables", ()):
            known[entry["name"]] = _inlined(entry["expression"], known)
        for match in block["match"]:
            path = at + match["id"]
            condition = match.get("condition")
            if condition is not None:
                met = self._evaluate(_inlined(str(condition), known), values, BOOL)
                if met is None:
                    return Answer("hold", path, "error")
                if not met:
                    continue
            if "rule" in match:
                said = self._block(match["rule"], known, values, path + ".")
                if said is not None or condition not in (None, True, "true"):
                    return said or Answer("abstain", None, "no-rule")
                continue
            explained = match.get("explanation")
            if explained is not None and self._evaluate(_inlined(explained, known), values, STRING) is None:
                return Answer("hold", path, "explanation")
            limit = match.get("limit")
            if limit is not None:
                stated = limit if isinstance(limit, dict) else {"at_most": limit}
                name = self._evaluate(_inlined(stated["group"], known), values, STRING) if "group" in stated else None
                if "group" in stated and not name:
                    return Answer("hold", path, "limit")
                limit = Limit(str(stated["at_most"]), name)
            return Answer(match["output"], path, "rule", match.get("group", "hold"), limit, bool(match.get("prepare")))
        return None

    def _evaluate(self, source: str, values: Mapping[str, Any], kind: Any) -> Any:
        """Return the value of an expression, or None. Variables that it does not name cannot change it."""
        read = {
            name: {field: item for field, item in value.items() if field in source}
            if isinstance(value, dict)
            else value
            for name, value in values.items()
            if re.search(rf"\b{name}\b", source)
        }
        key = (source, repr(read))
        if key not in self._known:
            self.evaluations += 1
            outcome = self._engine.run(self._spelled(source), read, kind)
            assert outcome.kind != "refused", (source, outcome)
            self._known[key] = outcome.detail if outcome.kind == "value" else None
        return self._known[key]


def _asking_first(source: str) -> str:
    """Return an expression in which ``has(a.b.c)`` has no value where ``a.b`` has none: cel-python has false there."""
    return re.sub(r"\bhas\((\w+\.\w+)\.(\w+)\)", r"(\1 == \1 ? has(\1.\2) : false)", source)


def _inlined(source: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\bvariables\.(\w+)", lambda found: f"({variables[found[1]]})", " ".join(source.split()))


def _values(case: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    event = dict(case["event"])
    now = _time(case["now"])
    not_before = event.pop("NotBefore", "")
    values: dict[str, Any] = {
        "event": event,
        "now": now,
        "age": now - _time(case["first_seen"]),
        "vm": case["vm"],
        "params": params,
    }
    if not_before:
        event["NotBefore"] = _time(not_before)
        values["notice"] = max(0, event["NotBefore"] - now)
    if event["EventStatus"] == "Started":
        values["notice"] = 0
    name = case["vm"].get("name")
    if name is not None:
        listed = [one.lower() for one in event["Resources"]]
        values["affects_me"] = name.lower() in listed
        values["leader"] = listed[:1] == [name.lower()]
    return values


def _converted(value: Any, kind: str) -> Any:
    if kind != "duration":
        return value
    units = {"h": 3600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+)([hms])", value)
    assert "".join(number + unit for number, unit in parts) == value, value
    return sum(int(number) * units[unit] for number, unit in parts) * SECOND


def _time(text: str) -> int:
    whole = datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = whole - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds * 1000
