# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of models: what z3 found, as an event that a runner could get, with all that a decision about it reads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from ...events import API_VERSIONS, MAX_NAMES, Vm, format_time, has_field, parse_document
from ...policy.decision import Facts
from ..symbolic.concrete import EVENT_ID, Witness
from .inputs import TEXT_FIELDS, Inputs
from .params import Params, as_json
from .problem import Problem
from .resources import NameCount, Resources
from .terms import Formula, is_constant
from .texts import Guess
from .values import ModelValues

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOST_ALIKE = 200  # names that a loop goes over and nothing else tells apart
_USUAL: Mapping[str, str] = {
    "EventId": EVENT_ID,
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "EventStatus": "Scheduled",
    "EventSource": "Platform",
}


class Concrete:
    """Makes events of models of one problem."""

    def __init__(self, problem: Problem, params: Params) -> None:
        self._problem, self._params = problem, params

    def witness(self, model: Any, inputs: Inputs, texts: Mapping[str, str]) -> Witness | None:
        """Return the event of a model with its ``texts``, None where no names were found for all of its VMs."""
        reads = _Model(model)
        now = _time(reads.number(inputs.now_us))
        names = _names(reads, inputs.resources, texts)
        if names is None:
            return None
        api_version = inputs.api_version
        event: dict[str, Any] = {}
        for name in TEXT_FIELDS:
            if not inputs.asked(name) and name in _USUAL and has_field(api_version, name):
                event[name] = _USUAL[name]
            elif inputs.asked(name) and reads.truth(inputs.text(name)[1]):
                event[name] = texts[f"event {name}"]
        event["Resources"] = ["_" + one for one in names] if api_version == API_VERSIONS[0] else names
        event["NotBefore"] = (
            format_time(_time(reads.number(inputs.not_before_us))) if reads.truth(inputs.has_not_before) else ""
        )
        if has_field(api_version, "DurationInSeconds"):
            value, there = inputs.event_field("DurationInSeconds")
            if reads.truth(there):
                event["DurationInSeconds"] = reads.number(value)
        document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), api_version)
        if not document.events:
            return None
        vm = self._vm(reads, inputs, texts)
        first_seen = now - timedelta(microseconds=reads.number(inputs.age_us))
        facts = Facts(now, vm, {one.key: first_seen for one in document.events})
        return Witness(event, document, facts, self._given(reads, inputs, texts))

    def texts(self, model: Any, inputs: Inputs) -> dict[str, str] | Formula | Guess:
        """Return the texts of a model by what they are, those of other VMs too: all are read together.

        Where there are no such texts, returns a formula that is true of all events and false in the model. Returns a
        Guess where no such texts were found.
        """
        asked = (name for name in TEXT_FIELDS if inputs.asked(name))
        terms: dict[str, Any] = {f"event {name}": inputs.text(name)[0] for name in asked}
        names = {f"name {key}": term for key, term in inputs.resources.names.items()}
        for one in (inputs, *inputs.others):
            names[_of(one, "vm.name")] = one.own_name
            terms.update({_of(one, f"vm.{name}"): one.vm_fact(name)[0] for name in one.read_facts()})
            terms.update({_of(one, f"tag {key}"): value for key, (_there, value) in one.tags.asked.items()})
            params = (self._params if one.params is None else one.params).varying()
            terms.update(
                {_of(one, f"params.{name}"): term for name, (kind, term, _given) in params.items() if kind == "string"}
            )
        return self._problem.texts.read(model, {**terms, **names}, names)

    def _vm(self, reads: _Model, inputs: Inputs, texts: Mapping[str, str]) -> Vm:
        tags: dict[str, str] | None = None
        if reads.truth(inputs.tags.known):
            asked = inputs.tags.asked
            tags = {
                key: texts[_of(inputs, f"tag {key}")] for key, (there, _value) in asked.items() if reads.truth(there)
            }
            others = (f"other{number or ''}" for number in itertools.count())
            while len(tags) < min(reads.number(inputs.tags.count), 1000):
                tags.setdefault(next(one for one in others if one not in asked), "x")
        known = (name for name in inputs.read_facts() if reads.truth(inputs.vm_fact(name)[1]))
        facts = {name: texts[_of(inputs, f"vm.{name}")] for name in known}
        return Vm(name=texts[_of(inputs, "vm.name")] if reads.truth(inputs.named) else None, tags=tags, **facts)

    def _given(self, reads: _Model, inputs: Inputs, texts: Mapping[str, str]) -> dict[str, Any]:
        found = {}
        params = self._params if inputs.params is None else inputs.params
        for name, (kind, term, given) in params.varying().items():
            if reads.truth(given):
                value = texts[_of(inputs, f"params.{name}")] if kind == "string" else reads.value(kind, term)
                found[name] = as_json(kind, value)
        return found


def _of(inputs: Inputs, what: str) -> str:
    """Return what tells a text apart from those of other VMs."""
    return f"{what} of {inputs.vm}" if inputs.vm else what


class _Model:
    """Reads the values of terms."""

    def __init__(self, model: Any) -> None:
        self._model, self._values = model, ModelValues(model)

    def number(self, term: Any) -> int:
        """Return an integer."""
        return term if is_constant(term) else self._values.number(term)

    def truth(self, term: Any) -> bool:
        """Return whether a formula holds."""
        return bool(term) if is_constant(term) else self._values.truth(term)

    def value(self, kind: str, term: Any) -> Any:
        """Return a value of a parameter that is no text."""
        if kind == "bool":
            return self.truth(term)
        if kind != "double":
            return self.number(term)
        fraction = self._model.eval(term, True).as_fraction()
        return float(fraction)


def _names(reads: _Model, resources: Resources, texts: Mapping[str, str]) -> list[str] | None:
    """Return the names in Resources of a model, None where too few were found that agree with all loops."""
    listed = [texts[f"name {key}"] for key, name in list(resources.names.items()) if reads.truth(resources.has(name))]
    if resources.first is not None:
        listed.insert(0, texts[f"name {resources.first.get_id()}"])
    names = list(dict.fromkeys(listed))
    missing = reads.number(resources.count) - len(names)
    if missing <= 0:
        return names
    asked = {text.lower() for what, text in texts.items() if what.startswith("name ")}
    own = texts["vm.name"]
    first = (
        [] if resources.first is not None or own.lower() in asked else [own]
    )  # this VM leads if nothing else is asked
    others = itertools.chain(first, (one for one in _others(names) if one.lower() not in {*asked, own.lower()}))
    more = _Missing(reads, resources, names, missing).names(others)
    if more is None:
        return None
    return [*more, *names] if resources.first is None else [*names, *more]


class _Missing:
    """The entries of Resources that a model has beside those that it names: how many, and how many of which kind."""

    def __init__(self, reads: _Model, resources: Resources, names: Sequence[str], number: int) -> None:
        self._reads, self._resources, self._names = reads, resources, names
        self._number = number
        self._distinct = number
        if resources.distinct is not None:
            self._distinct = reads.number(resources.distinct.count) - len(names)
        counts = resources.counts.values()
        self._counts = {one: reads.number(one.number) - sum(map(partial(self._has, one), names)) for one in counts}

    def names(self, others: Iterator[str]) -> list[str] | None:
        """Return as many of some other names, the rest repeated if need be; None where too few were found."""
        found: list[str] = []
        for name in others:
            if len(found) == min(self._number, self._distinct):
                break
            if self._resources.allows(self._reads.truth, name) and self._fits(name, len(found)):
                found.append(name)
        if not self._reads.truth(self._resources.each_once):
            known = [*found, *reversed(self._names)]
            while len(found) < self._number:
                again = next((one for one in known if self._fits(one, len(found))), None)
                if again is None:
                    return None
                found.append(again)
        return found if len(found) == self._number else None

    def _fits(self, name: str, place: int) -> bool:
        """Return whether a name can come next, and count it then."""
        left = self._number - place
        has = {one: self._has(one, name) for one in self._counts}
        if any(needed <= 0 if has[one] else needed >= left for one, needed in self._counts.items()):
            return False
        for one, counted in has.items():
            self._counts[one] -= counted
        return True

    def _has(self, one: NameCount, name: str) -> bool:
        return self._reads.truth(one.counts(name))


def _others(names: Sequence[str]) -> Iterator[str]:
    """Yield names of other VMs."""
    yield from (f"vm_{number}" for number in range(MAX_NAMES + 1))
    yield from (f"{name}{number}" for name in names for number in range(_MOST_ALIKE))
    yield from (f"{number}{name}" for name in names for number in range(_MOST_ALIKE))


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
