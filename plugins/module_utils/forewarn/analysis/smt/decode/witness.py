# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of models: what z3 found, as an event that a runner could get, with all that a decision about it reads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ....events import API_VERSIONS, Vm, format_time, has_field
from ...witness import EVENT_ID, Witness, as_json, time_of, witness_of
from ..encode.inputs import TEXT_FIELDS, Inputs
from ..encode.members import Members
from ..encode.params import Params
from ..encode.problem import Problem
from ..terms import Formula
from .model_texts import BlockingClause, FoundTexts, Lemma, ModelTexts
from .model_values import ModelValues
from .resource_names import ResourceNames

_USUAL: Mapping[str, str] = {
    "EventId": EVENT_ID,
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "EventStatus": "Scheduled",
    "EventSource": "Platform",
}
_MOST_TAGS = 1000


class ModelDecoder:
    """Makes events of models of one problem."""

    def __init__(self, problem: Problem, params: Params) -> None:
        self._problem, self._params = problem, params

    def witness(self, model: Any, inputs: Inputs, texts: FoundTexts) -> Witness | None:
        """Return the event of a model with its ``texts``, None where no names were found for all of its VMs."""
        values = ModelValues(model)
        self._problem.invented_names.clear()
        has_lists = any(members.read for members, _given, _defaults in self._params.lists().values())
        invented = self._problem.invented_names if has_lists else None
        names = ResourceNames(values, inputs.resources, texts, invented).make()
        if names is None:
            return None
        api_version = inputs.api_version
        event: dict[str, Any] = {}
        for name in TEXT_FIELDS:
            if not inputs.reads(name) and name in _USUAL and has_field(api_version, name):
                event[name] = _USUAL[name]
            elif inputs.reads(name) and values.truth(inputs.text(name)[1]):
                event[name] = texts.of(inputs.text(name)[0])
        event["Resources"] = ["_" + one for one in names] if api_version == API_VERSIONS[0] else names
        has_not_before = values.truth(inputs.has_not_before)
        event["NotBefore"] = format_time(time_of(values.number(inputs.not_before_us))) if has_not_before else ""
        if has_field(api_version, "DurationInSeconds"):
            value, there = inputs.event_field("DurationInSeconds")
            if values.truth(there):
                event["DurationInSeconds"] = values.number(value)
        times = values.number(inputs.now_us), values.number(inputs.age_us)
        params = self._given_params(values, inputs, texts)
        found = witness_of(event, api_version, _vm(values, inputs, texts), *times, params)
        return found if found.document.events else None

    def texts(self, model: Any, inputs: Inputs) -> FoundTexts | Lemma | BlockingClause:
        """Return the texts of a model, those of other VMs too: all are found together."""
        terms = [inputs.text(name)[0] for name in TEXT_FIELDS if inputs.reads(name)]
        names = list(inputs.resources.names.values())
        for one in (inputs, *inputs.others):
            names.append(one.own_name)
            terms += (one.vm_fact(name)[0] for name in one.facts_read())
            terms += (value for _there, value in one.tags.read.values())
            params = self._params if one.params is None else one.params
            terms += (term for kind, term, _given in params.varying().values() if kind == "string")
            for members, _given, _defaults in params.lists().values():
                terms += members.read.values()
        return ModelTexts(self._problem.texts, ModelValues(model), self._problem.effort.spend).find(terms, names)

    def _given_params(self, values: ModelValues, inputs: Inputs, texts: FoundTexts) -> dict[str, Any]:
        found = {}
        params = self._params if inputs.params is None else inputs.params
        for name, (kind, term, given) in params.varying().items():
            if values.truth(given):
                text = texts.of(term) if kind == "string" else ""
                found[name] = as_json(kind, _param_value(values, kind, term, text))
        for name, (members, given, defaults) in params.lists().items():
            listed = self._members(values, members, texts)
            is_default = given is True and all(there == (text in defaults[0]) for text, there in listed.items())
            if values.truth(given) and not is_default:
                found[name] = [text for text, there in listed.items() if there]
        return found

    def _members(self, values: ModelValues, members: Members, texts: FoundTexts) -> dict[str, bool]:
        """Return which texts are in a list: those that something asks for, and names that were invented."""
        asked = {texts.of(one): values.truth(members.has(one)) for one in members.read.values()}
        return {**asked, **dict.fromkeys(sorted(self._problem.invented_names), True)}


def _vm(values: ModelValues, inputs: Inputs, texts: FoundTexts) -> Vm:
    tags: dict[str, str] | None = None
    if values.truth(inputs.tags.known):
        asked = inputs.tags.read
        tags = {key: texts.of(value) for key, (there, value) in asked.items() if values.truth(there)}
        others = (f"other{number or ''}" for number in itertools.count())
        while len(tags) < min(values.number(inputs.tags.count), _MOST_TAGS):
            tags.setdefault(next(one for one in others if one not in asked), "x")
    known = (name for name in inputs.facts_read() if values.truth(inputs.vm_fact(name)[1]))
    facts = {name: texts.of(inputs.vm_fact(name)[0]) for name in known}
    return Vm(name=texts.of(inputs.own_name) if values.truth(inputs.named) else None, tags=tags, **facts)


def _param_value(values: ModelValues, kind: str, term: Formula, text: str) -> Any:
    if kind == "string":
        return text
    return values.truth(term) if kind == "bool" else values.real(term) if kind == "double" else values.number(term)
