# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario's steps and the control API share: actions, and the schema that checks their data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from .faults import Faults, InjectedFault
from .model import Model
from .spec import EventSpec, Settings, VmSpec, parse_duration

SCHEMA_PATH = Path(__file__).with_name("scenario.schema.json")
_DURATIONS = ("notice", "impact", "gone_after", "start_delay")


def schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario."""
    loaded: dict[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return loaded


def missing(package: str) -> InputError:
    """Return the error for a library that is not installed; emulating a plain VM needs none."""
    return InputError(
        f"scenarios, and events scheduled by hand, need the Python package {package}, which is not installed.",
        f"Install it: {sys.executable} -m pip install {package}",
    )


def check(data: object, definition: str) -> None:
    """Check data against a definition of the schema (``event``, ``fault``, …). Raises InputError for the worst flaw."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match
    except ImportError as absent:
        raise missing("jsonschema") from absent

    whole = schema()
    validator = Draft202012Validator({**whole["$defs"][definition], "$defs": whole["$defs"]})
    error = best_match(validator.iter_errors(data))
    if error is not None:
        raise InputError(f"{error.json_path.replace('$', definition)}: {error.message}")


def vm_spec(data: Mapping[str, Any]) -> VmSpec:
    """Return a VM made of checked data."""
    values = {name: value for name, value in data.items() if name != "fault_domain"}
    return VmSpec(fault_domain=str(data.get("fault_domain", "0")), **values)


def settings(data: Mapping[str, Any]) -> Settings:
    """Return settings made of checked data."""
    values = dict(data)
    for name in ("first_response", "first_events", "switch_off", "start_delay", "gone_after"):
        if values.get(name) is not None:
            values[name] = parse_duration(values[name], name)
    if "notice" in values:
        values["notice"] = {
            event_type: parse_duration(value, "notice") for event_type, value in values["notice"].items()
        }
    return Settings(**values)


def event_spec(data: Mapping[str, Any], default_vm: str, hardware_failure: bool = False) -> EventSpec:
    """Return an event made of checked data."""
    values = {name: value for name, value in data.items() if name not in ("type", "resources")}
    for name in _DURATIONS:
        if name in values:
            values[name] = parse_duration(values[name], name)
    return EventSpec(
        event_type=data.get("type", "Reboot"),
        resources=tuple(data.get("resources", (default_vm,))),
        hardware_failure=hardware_failure,
        **values,
    )


def fault(data: Mapping[str, Any], now: float) -> InjectedFault:
    """Return a fault that begins now, made of checked data."""
    names = ("kind", "status", "processed")
    return InjectedFault(
        **{name: data[name] for name in names if name in data},
        latency=parse_duration(data.get("latency", 0), "latency"),
        retry_after=parse_duration(data["retry_after"], "retry_after") if "retry_after" in data else None,
        until=now + parse_duration(data["for"], "for") if "for" in data else None,
        left=data.get("times"),
        vms=tuple(data["vms"]) if "vms" in data else None,
        requests=tuple(data["requests"]) if "requests" in data else None,
    )


def perform(action: str, data: Any, model: Model, faults: Faults) -> str | None:
    """Perform an action of checked data; return the EventId if it creates an event. Raises InputError."""

    def inject() -> None:
        for name in data.get("vms", ()):
            model.vm(name)
        faults.add(fault(data, model.time))

    simple: Mapping[str, Callable[[], str | None]] = {
        "schedule": lambda: model.schedule(event_spec(data, model.default_vm)),
        "hardware_failure": lambda: model.schedule(event_spec(data, model.default_vm, hardware_failure=True)),
        "fault_domains": lambda: model.schedule_fault_domains(
            event_spec(data["event"], model.default_vm), parse_duration(data.get("pause", 0), "pause")
        ),
        "cancel": lambda: model.cancel(data),
        "start": lambda: model.start(data),
        "finish": lambda: model.finish(data),
        "secondary_impact": lambda: model.secondary_impact(data["event"], parse_duration(data["duration"])),
        "fault": inject,
        "clear_faults": faults.clear,
        "switch_off": model.switch_off,
    }
    return simple[action]()
