# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM is shown: Scheduled Events in every api-version, their DocumentIncarnation, and ``/metadata/instance``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import formatdate
from typing import Any

from ..events import API_VERSIONS, EVENT_TYPE_SINCE, format_time, has_field
from .lifecycle import ListedEvent
from .spec import BY_VERSION, VmSpec

INSTANCE_API_VERSION = re.compile(r"20\d\d-\d\d-\d\d", re.ASCII)
FIRST_INSTANCE_API_VERSION = "2017-04-02"
FIRST_INCARNATION = 1


@dataclass
class View:
    """The events that one VM is shown, in ``listing``. The array of an api-version may lack some of them.

    An api-version's number rises with every change of its array, and only then (SE-10).
    """

    vm: VmSpec
    listing: tuple[ListedEvent, ...] = ()
    incarnations: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over, as when the service is switched off."""
        self.listing = ()
        self.incarnations = dict.fromkeys(API_VERSIONS, FIRST_INCARNATION)

    def show(self, listing: tuple[ListedEvent, ...], step: int) -> None:
        """Replace the listing; the numbers of the api-versions whose arrays change rise by ``step``."""
        before = {event.event_id: event for event in self.listing}
        after = {event.event_id: event for event in listing}
        self.listing = listing
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        gone = [before[key] for key in changed if key in before]
        come = [after[key] for key in changed if key in after]
        for version in API_VERSIONS:
            if array(gone, version) != array(come, version):
                self.incarnations[version] += step


def render(
    incarnation: int, events: Iterable[ListedEvent], api_version: str, not_before_format: str = BY_VERSION
) -> bytes:
    """Return the body of a document."""
    listed = array(events, api_version, not_before_format)
    return json.dumps({"DocumentIncarnation": incarnation, "Events": listed}).encode()


def array(events: Iterable[ListedEvent], api_version: str, not_before_format: str = BY_VERSION) -> list[dict[str, Any]]:
    """Return the array Events of an api-version, without newer types and fields."""
    return [
        _render_event(event, api_version, not_before_format)
        for event in events
        if EVENT_TYPE_SINCE.get(event.spec.event_type, API_VERSIONS[-1]) <= api_version
    ]


def _render_event(event: ListedEvent, api_version: str, not_before_format: str) -> dict[str, Any]:
    spec = event.spec
    preview = api_version == API_VERSIONS[0]
    spelling = ("iso8601" if preview else "rfc1123") if not_before_format == BY_VERSION else not_before_format
    fields: dict[str, Any] = {
        "EventId": event.event_id,
        "EventStatus": event.status,
        "EventType": spec.event_type,
        "ResourceType": "VirtualMachine",
        "Resources": list(event.preview_resources if preview else spec.resources),
        "NotBefore": "" if event.not_before is None else _format_not_before(event.not_before, spelling),
        "Description": spec.listed_description,
        "EventSource": spec.source,
        "DurationInSeconds": spec.listed_duration,
    }
    fields = {name: value for name, value in fields.items() if has_field(api_version, name)}
    fields.update(spec.fields)
    return {name: value for name, value in fields.items() if name not in spec.fields or value is not None}


def _format_not_before(seconds: int, spelling: str) -> str:
    """Write either spelling of SE-16."""
    if spelling == "iso8601":
        return format_time(datetime.fromtimestamp(seconds, timezone.utc))
    return formatdate(seconds, usegmt=True)


def etag(body: bytes) -> str:
    """Return an entity tag: a hash of the content, so that it survives a reset of DocumentIncarnation."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def instance(vm: VmSpec, api_version: str) -> dict[str, Any]:
    """Return the content of ``/metadata/instance`` on a VM."""
    tags = sorted(vm.tags.items())
    digest = hashlib.sha256(vm.name.encode()).hexdigest()
    compute = {  # each field with the api-version of the instance metadata that introduced it
        "azEnvironment": ("2018-10-01", "AzurePublicCloud"),
        "location": ("2017-04-02", vm.location),
        "name": ("2017-04-02", vm.name),
        "osType": ("2017-04-02", "Linux"),
        "placementGroupId": ("2017-08-01", ""),
        "platformFaultDomain": ("2017-04-02", vm.fault_domain),
        "platformUpdateDomain": ("2017-04-02", vm.fault_domain),
        "provider": ("2018-10-01", "Microsoft.Compute"),
        "resourceGroupName": ("2017-08-01", "emulated"),
        "subscriptionId": ("2017-08-01", "00000000-0000-0000-0000-000000000000"),
        "tags": ("2017-08-01", ";".join(f"{name}:{value}" for name, value in tags)),
        "tagsList": ("2019-06-04", [{"name": name, "value": value} for name, value in tags]),
        "vmId": ("2017-04-02", "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))),
        "vmScaleSetName": ("2017-12-01", vm.scale_set),
        "vmSize": ("2017-04-02", vm.size),
        "zone": ("2017-12-01", vm.zone),
    }
    known = {name: value for name, (since, value) in compute.items() if since <= api_version}
    return {"compute": known, "network": {"interface": []}}
