# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that a policy's expressions see, typed (the policy language of the documentation)."""

from __future__ import annotations

from collections.abc import Mapping

from ...events import EVENT_SOURCES, EVENT_STATUSES, EVENT_TYPE_SINCE, FIELD_SINCE, RESOURCE_TYPES, VM_FACTS, has_field
from ...policy.decision import OCCASIONS
from ...policy.hook_body import NOTIFY_NAMES
from . import types as t
from .types import Declarations, RecordField, Type

EVENT = Type("record", name="event")
VM = Type("record", name="vm")
PARAMS = Type("record", name="params")
# Labels of types whose texts may differ in case and still mean the same VM.
RESOURCES, VM_NAME = "Resources", "vm.name"

_EVENT_FIELDS = {
    "EventId": t.STRING,
    "ResourceType": Type("string", values=RESOURCE_TYPES, label="ResourceType"),
    "Resources": t.list_of(Type("string", label=RESOURCES)),
    "NotBefore": t.TIMESTAMP,
    "Description": t.STRING,
    "EventSource": Type("string", values=EVENT_SOURCES, label="EventSource"),
    "DurationInSeconds": t.INT,
}
_VM_FIELDS = {
    **dict.fromkeys(VM_FACTS, t.STRING),
    "name": Type("string", label=VM_NAME),
    "tags": t.map_of(t.STRING, t.STRING),
}
_ALWAYS_SENT = ("EventId", "EventType", "EventStatus", "Resources")
# Known values of the event's fields that a policy may extend (extra_values).
EXTENSIBLE: Mapping[str, tuple[str, ...]] = {"EventType": tuple(EVENT_TYPE_SINCE), "EventStatus": EVENT_STATUSES}


def policy_declarations(
    api_version: str,
    params: Mapping[str, Type],
    variables: Mapping[str, Type],
    extra_values: Mapping[str, tuple[str, ...]],
) -> Declarations:
    """Return the names that a policy's conditions, variables and explanations may use.

    ``params`` and ``variables`` map the policy's own names to types; ``extra_values`` has the further values of
    EventType and EventStatus that the policy declares.
    """
    types = dict(_EVENT_FIELDS)
    for name, known in EXTENSIBLE.items():
        extra = extra_values.get(name, ())
        types[name] = Type("string", values=(*known, *extra), label=name, later=_later(name, api_version, extra))
    event = {name: RecordField(types[name], name in _ALWAYS_SENT) for name in FIELD_SINCE}
    for name, since in FIELD_SINCE.items():
        if not has_field(api_version, name):
            reason = f"event has no {name} in api-version {api_version}; it came with {since}"
            event[name] = RecordField(types[name], missing_reason=reason)
    return Declarations(
        variables={
            "event": EVENT,
            "events": t.list_of(EVENT),
            "notice": t.DURATION,
            "age": t.DURATION,
            "now": t.TIMESTAMP,
            "affects_me": t.BOOL,
            "leader": t.BOOL,
            "vm": VM,
            "params": PARAMS,
        },
        records={
            "event": event,
            "vm": {name: RecordField(type_, always_exists=True) for name, type_ in _VM_FIELDS.items()},
            "params": {name: RecordField(type_, always_exists=True) for name, type_ in params.items()},
        },
        policy_variables=variables,
    )


def value_types(api_version: str, extra_values: Mapping[str, tuple[str, ...]]) -> dict[str, Type]:
    """Return the types that a parameter may have of a field of the event: texts that the field can be."""
    fields = policy_declarations(api_version, {}, {}, extra_values).records["event"]
    return {name: fields[name].type for name in ("EventType", "EventSource", "EventStatus")}


def _later(field: str, api_version: str, extra: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the values that are newer than an api-version, except those that the policy declares."""
    newer = EVENT_TYPE_SINCE.items() if field == "EventType" else ()
    return tuple((value, since) for value, since in newer if since > api_version and value not in extra)


# The names of other places, from those of conditions


def hook_declarations(base: Declarations) -> Declarations:
    """Return the names that a text of a hook may use: what stays the same from its preparation to its recovery."""
    lasting = {name: base.variables[name] for name in ("event", "vm", "params")}
    event = {name: field for name, field in base.records["event"].items() if name not in ("EventStatus", "NotBefore")}
    return Declarations(lasting, {**base.records, "event": event}, named_zones=base.named_zones)


def notification_declarations(base: Declarations) -> Declarations:
    """Return the names that the body of a notify hook may use: all but the time, and ``occasion``."""
    names = {name: base.variables[name] for name in NOTIFY_NAMES if name in base.variables}
    names["occasion"] = Type("string", values=OCCASIONS, label="occasion")
    return Declarations(names, base.records, named_zones=base.named_zones)


def invariant_declarations(base: Declarations) -> Declarations:
    """Return the names that an invariant may use: those of conditions, and ``decision``, ``approve``, ``hold``."""
    decision = Type("string", values=("approve", "hold"), label="decision")
    names = {**base.variables, "decision": decision, "approve": decision, "hold": decision}
    return Declarations(names, base.records)


def question_declarations(base: Declarations, *, change: bool = False) -> Declarations:
    """Return the names that a question about policies may use: those of an invariant, and ``prepare``.

    In a question about a ``change``, ``decision`` is the new decision, and ``was`` the old one.
    """
    invariant = invariant_declarations(base)
    further = {"prepare": t.BOOL, **({"was": invariant.variables["decision"]} if change else {})}
    return Declarations({**invariant.variables, **further}, base.records)
