# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenario files: YAML, checked against ``scenario.schema.json`` and then by a rehearsal of the timeline."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Tuple

from ..errors import InputError
from .actions import SCHEMA_PATH, missing, perform, schema, settings, vm_spec
from .clock import ManualClock
from .emulation import Scenario, TimelineStep
from .faults import Faults
from .model import DEFAULT_VM, Model
from .spec import Settings, VmSpec, parse_duration

_Path = Tuple[Any, ...]  # of keys and indexes, from the top of the file
_MOST_VALUES = 50_000


@dataclass(frozen=True)
class Flaw:
    """Something wrong in the file; ``line`` and ``column`` count from 1."""

    line: int
    column: int
    message: str


class ScenarioError(InputError):
    """The scenario cannot be used; the text has one line ``file:line:column: …`` for each flaw."""

    def __init__(self, source: str, flaws: list[Flaw]) -> None:
        ordered = sorted(flaws, key=lambda flaw: (flaw.line, flaw.column))
        lines = [f"{source}:{flaw.line}:{flaw.column}: {flaw.message}" for flaw in ordered]
        super().__init__("\n".join(lines), f"docs/emulator.md explains scenarios; their schema is {SCHEMA_PATH.name}.")


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises InputError if it cannot be read, ScenarioError for flaws in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}).", "Save it as UTF-8.") from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str, source: str = "scenario") -> Scenario:
    """Return the scenario of a YAML text; ``source`` is its name in errors. Raises ScenarioError."""
    tree = _Tree(text, source)
    flaws = _schema_flaws(tree)
    if flaws:
        raise ScenarioError(source, flaws)
    data = tree.data
    vms = tuple(vm_spec(vm) for vm in data.get("vms", ())) or (DEFAULT_VM,)
    setup, timeline = Settings(), []
    try:
        setup = settings(data.get("settings", {}))
    except InputError as error:  # a duration of centuries, which the schema cannot detect
        flaws.append(tree.flaw(("settings",), str(error)))
    for index, step in enumerate(data.get("timeline", ())):
        try:
            timeline.append(_step(step))
        except InputError as error:  # noqa: PERF203 - each step's flaw is wanted
            flaws.append(tree.flaw(("timeline", index, "at"), str(error)))
    flaws = flaws or _rehearse(vms, setup, timeline, tree)
    if flaws:
        raise ScenarioError(source, flaws)
    return Scenario(vms, setup, tuple(timeline), data.get("name", source))


def _step(data: Mapping[str, Any]) -> TimelineStep:
    (action,) = (name for name in data if name != "at")
    return TimelineStep(parse_duration(data["at"], "at"), action, data[action])


def _schema_flaws(tree: _Tree) -> list[Flaw]:
    try:
        from jsonschema import Draft202012Validator
    except ImportError as absent:
        raise missing("jsonschema") from absent

    flaws = []
    for error in Draft202012Validator(schema()).iter_errors(tree.data):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties" and isinstance(error.instance, dict):
            known = sorted(error.schema.get("properties", ()))
            for key in error.instance:
                if key not in known:
                    near = difflib.get_close_matches(str(key), known, 1)
                    advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
                    flaws.append(tree.flaw((*path, key), f"there is no key {key!r} here: {advice}"))
        elif error.validator == "anyOf":  # only durations can be written in two ways
            flaws.append(tree.flaw(path, f'{error.instance!r} is not a duration: write it like "15m", "90s" or "7d".'))
        elif error.validator == "maxProperties":
            flaws.append(tree.flaw(path, "a step does one thing: write a step for each."))
        elif error.validator == "minProperties":
            if isinstance(error.instance, dict) and set(error.instance) - {"at"}:
                continue  # the missing "at" is a separate flaw
            known = sorted(set(error.schema.get("properties", ())) - {"at"})
            flaws.append(tree.flaw(path, f"the step does nothing: add one of {', '.join(known)}."))
        else:
            flaws.append(tree.flaw(path, f"{error.message}."))
    return flaws


def _rehearse(vms: tuple[VmSpec, ...], setup: Settings, timeline: list[TimelineStep], tree: _Tree) -> list[Flaw]:
    """Find flaws that the schema cannot: unknown names, impossible events."""
    clock, faults, flaws = ManualClock(), Faults(), []
    try:
        model = Model(clock, vms, setup)
    except InputError as error:
        return [tree.flaw(("vms",) if "vms" in tree.data else (), str(error))]
    for index, step in sorted(enumerate(timeline), key=lambda entry: entry[1].at):
        problem = _rehearse_step(step, model, clock, faults)
        if problem:
            flaws.append(tree.flaw(("timeline", index, step.action), problem))
    return flaws


def _rehearse_step(step: TimelineStep, model: Model, clock: ManualClock, faults: Faults) -> str | None:
    """Return what is wrong with a step after the previous ones, or None. Whether an event has started by the time it
    is cancelled depends on approvals, so that is not rehearsed.
    """
    try:
        if step.action in ("cancel", "start", "finish"):
            model.find(step.data)
        elif step.action == "secondary_impact":
            model.find(step.data["event"])
        else:
            event = perform(step.action, step.data, model, faults)
            if step.action == "fault_domains" and event is not None:
                _serve_all_domains(model, clock, event)
    except InputError as error:
        return str(error)
    return None


def _serve_all_domains(model: Model, clock: ManualClock, event: str) -> None:
    """Create the events of all fault domains, so that later steps can name them."""
    current = model.find(event)
    while current.followers:
        model.start(current.event_id)
        model.finish(current.event_id)
        clock.advance(current.pause)
        model.settle()
        current = list(model.events.values())[-1]


class _Tree:
    """The data of a YAML text, with the place of every value."""

    def __init__(self, text: str, source: str) -> None:
        try:
            import yaml
        except ImportError as absent:
            raise missing("PyYAML") from absent

        self._marks: dict[_Path, tuple[int, int]] = {}
        self._source = source
        self._values = 0
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            self._loader: Any = loader
            self.data: Any = {} if node is None else self._convert(node, (), ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            raise ScenarioError(source, [Flaw(line, column, f"not YAML: {error.problem}.")]) from error
        except yaml.YAMLError as error:
            raise ScenarioError(source, [Flaw(1, 1, f"not YAML: {error}.")]) from error
        except RecursionError as error:
            raise ScenarioError(source, [Flaw(1, 1, "nested too deeply.")]) from error

    def flaw(self, path: _Path, message: str) -> Flaw:
        """Return a flaw at the place of a path, or of the closest value around it."""
        while path and path not in self._marks:
            path = path[:-1]
        line, column = self._marks.get(path, (1, 1))
        return Flaw(line, column, message)

    def _convert(self, node: Any, path: _Path, around: tuple[Any, ...]) -> Any:
        import yaml

        self._values += 1
        if self._values > _MOST_VALUES:  # a few aliases of aliases make billions
            raise self._error(node, f"the file has more than {_MOST_VALUES} values, aliases counted in full")
        self._marks.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if any(node is outer for outer in around):
            raise self._error(node, "an alias refers to a value that contains it")
        inside = (*around, node)
        if isinstance(node, yaml.SequenceNode):
            return [self._convert(item, (*path, index), inside) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = self._scalar(key_node)
                if not isinstance(key, str):
                    raise self._error(key_node, f"the key {key_node.value!r} is not a text: put it in quotes")
                if key in found:
                    raise self._error(key_node, f"the key {key!r} is there twice")
                # A key's place is more useful than its value's.
                place = (*path, key)
                self._marks[place] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
                found[key] = self._convert(value_node, place, inside)
            return found
        return self._scalar(node)

    def _scalar(self, node: Any) -> Any:
        try:
            value = self._loader.construct_object(node, deep=True)
        except (ValueError, TypeError) as error:
            raise self._error(node, f"{str(node.value)[:40]!r} cannot be read: {error}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(node, f"{node.value} is not a finite number")
        return value

    def _error(self, node: Any, message: str) -> ScenarioError:
        mark = node.start_mark
        return ScenarioError(self._source, [Flaw(mark.line + 1, mark.column + 1, f"{message}.")])
