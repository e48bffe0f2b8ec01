# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of models: what z3 found, as an event that a runner could get, with all that a decision about it reads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from ....events import API_VERSIONS, MAX_NAMES, Vm, format_time, has_field, parse_document
from ....policy.decision import Facts
from ...event_space.concrete import EVENT_ID, Witness
from ..encode.inputs import TEXT_FIELDS, Inputs
from ..encode.params import Params, as_json
from ..encode.problem import Problem
from ..encode.resources import NameCount, Resources
from ..encode.texts import Guess
from ..terms import Formula, is_constant
from .model_values import ModelValues

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
        self._problem.invented.clear()
        has_lists = any(members.asked for members, _given, _defaults in self._params.lists().values())
        names = _Names(reads, inputs.resources, texts, self._problem.invented if has_lists else None).make()
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
            params = self._params if one.params is None else one.params
            varying = params.varying().items()
            terms.update(
                {_of(one, f"params.{name}"): term for name, (kind, term, _given) in varying if kind == "string"}
            )
            for members, _given, _defaults in params.lists().values():
                terms.update(members.asked)
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
        for name, (members, given, defaults) in params.lists().items():
            asked = members.texts(reads.truth, texts)
            is_default = given is True and all(there == (text in defaults[0]) for text, there in asked.items())
            if reads.truth(given) and not is_default:
                found[name] = [text for text, is_there in asked.items() if is_there]
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


class _Names:
    """Makes up the names of VMs in Resources of a model: those that it has, and others like them."""

    def __init__(
        self, reads: _Model, resources: Resources, texts: Mapping[str, str], invented: set[str] | None
    ) -> None:
        """``invented`` are names of no model that are in all lists of texts, None if nothing reads such a list."""
        self._reads, self._resources, self._texts, self._invented = reads, resources, texts, invented
        known = [(texts[f"name {key}"], name) for key, name in list(resources.names.items())]
        self._known = {text: name for text, name in known if reads.truth(resources.has(name))}  # names, and their terms
        self._missing = reads.number(resources.count) - len(self._known)  # entries
        self._differing = self._missing  # at most so many of them are further names
        if resources.distinct is not None:
            self._differing = reads.number(resources.distinct.count) - len(self._known)
        self._counted = {
            one.key: (one, reads.number(one.number) - sum(self._has(one, name) for name in self._known.values()))
            for one in resources.counts.values()
        }

    def make(self) -> list[str] | None:
        """Return the names, None where too few were found that agree with all loops."""
        first, known = self._resources.first, list(self._known)
        if first is not None:
            known = list(dict.fromkeys([self._texts[f"name {first.get_id()}"], *known]))
        found: dict[str, Any] = {}
        for text, name in self._others(known):
            if self._missing <= 0 or len(found) >= self._differing:
                break
            self._try(text, name, found)
        more = list(found)
        if not self._reads.truth(self._resources.each_once):
            listed = {**found, **dict(reversed(self._known.items()))}
            while self._missing > 0:
                again = next((text for text, name in listed.items() if self._fits(name)), None)
                if again is None:
                    return None
                more.append(again)
                self._count(listed[again])
        if self._missing or any(needed for _one, needed in self._counted.values()):
            return None  # a model may have names that are more than their number: it knows few of them at a time
        return [*more, *known] if first is None else [*known, *more]

    def _others(self, known: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield names beside those of the model, each with its term: this VM leads if nothing else is asked."""
        asked = {text.lower() for what, text in self._texts.items() if what.startswith("name ")}
        own = self._texts["vm.name"]
        # Of a list of texts, a model does not know whether it has a term that was not asked for.
        if self._resources.first is None and self._invented is None and own.lower() not in asked:
            yield own, self._resources.own
        taken = {text.lower() for text in self._texts.values()}  # with these a predicate may compare a name
        yield from ((one, one) for one in _others(known) if one.lower() not in taken)

    def _try(self, text: str, name: Any, found: dict[str, Any]) -> None:
        """Add a name where it agrees with the model, in no list of texts or else in all of them."""
        if self._agrees(name):
            found[text] = name
        elif self._invented is not None:
            self._invented.add(text)
            if self._agrees(name):
                found[text] = name
            else:
                self._invented.remove(text)
        if text in found:
            self._count(name)

    def _agrees(self, name: Any) -> bool:
        return self._resources.allows(self._reads.truth, name) and self._fits(name)

    def _fits(self, name: Any) -> bool:
        """Return whether what is counted allows a further entry."""
        return all(
            needed > 0 if self._has(one, name) else needed < self._missing for one, needed in self._counted.values()
        )

    def _count(self, name: Any) -> None:
        self._missing -= 1
        for key, (one, needed) in self._counted.items():
            self._counted[key] = one, needed - self._has(one, name)

    def _has(self, one: NameCount, name: Any) -> bool:
        return self._reads.truth(one.counts(name))


def _others(names: Sequence[str]) -> Iterator[str]:
    """Yield names of other VMs."""
    yield from (f"vm_{number}" for number in range(MAX_NAMES + 1))
    yield from (f"{name}{number}" for name in names for number in range(_MOST_ALIKE))
    yield from (f"{number}{name}" for name in names for number in range(_MOST_ALIKE))


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
