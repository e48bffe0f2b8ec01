# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs of an emulation: VMs, events, settings. All durations are in emulated seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from ..events import NOTICE_SECONDS, OTHER_NOTICE_SECONDS

RECORDED_IMPACT = 7.0  # SE-20
RECORDED_GONE_AFTER = 600.0
LIVE_MIGRATION_SECONDS = 5
DEFAULT_GROUP = "default"

START_ON = ("any_approval", "all_approvals", "not_before")
SEEN_BY = ("group", "resources")
BY_VERSION = "by_version"  # iso8601 in 2017-03-01, rfc1123 in all others

_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_LONGEST = 10 * 365 * 86400.0
_VM_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}", re.ASCII)  # as in the scenario's schema: it is part of a path
_GPU_SIZE = re.compile(r"(?:Standard|Basic)_N[CDGV]", re.ASCII | re.IGNORECASE)
_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)

_DESCRIPTIONS: Mapping[tuple[str, str], str] = {
    ("Platform", "Freeze"): "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
    ("Platform", "Reboot"): "Virtual machine is to be restarted because of maintenance of its host.",
    ("Platform", "Redeploy"): "Virtual machine is to be moved to another host because of maintenance.",
    ("Platform", "Preempt"): "Spot virtual machine is to be evicted because its capacity is needed.",
    ("Platform", "Terminate"): "Scale set instance is to be deleted.",
    ("User", "Freeze"): "Virtual machine is to be paused as asked for by an authorized user.",
    ("User", "Reboot"): "Virtual machine is to be restarted as asked for by an authorized user.",
    ("User", "Redeploy"): "Virtual machine is to be redeployed as asked for by an authorized user.",
    ("User", "Preempt"): "Spot virtual machine is to be evicted as asked for by an authorized user.",
    ("User", "Terminate"): "Scale set instance is to be deleted as asked for by an authorized user.",
}
HARDWARE_FAILURE = "Virtual machine is being restarted because its host has failed."


@dataclass(frozen=True)
class VmSpec:
    """One VM. Those of one ``group`` (availability set, placement group) see each other's events (SE-14).

    A VM that is ``alone`` sees only its own; if None, ``with_loneliness`` decides. ``cloud_service``: a role instance
    of a classic cloud service, whose name has no ``_`` in api-version 2017-03-01: only names of IaaS resources have
    one. The other fields are those of ``/metadata/instance``.
    """

    name: str
    group: str = DEFAULT_GROUP
    alone: bool | None = None
    location: str = "westeurope"
    zone: str = ""
    size: str = "Standard_D2s_v5"
    scale_set: str = ""
    fault_domain: str = "0"
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    cloud_service: bool = False

    @property
    def preview_name(self) -> str:
        """The name as api-version 2017-03-01 lists it."""
        return self.name if self.cloud_service else f"_{self.name}"

    @property
    def deployment(self) -> str:
        """The group that is switched on and off together (SE-05); a VM alone is its own group."""
        return f"vm {self.name}" if self.alone else f"group {self.group}"


@dataclass(frozen=True)
class EventSpec:
    """An event to be scheduled; None means the default of its type.

    ``notice`` is the time until NotBefore, ``duration`` is DurationInSeconds (a whole number, -1 unknown),
    ``impact`` how long the VMs are actually affected, ``gone_after`` how long after its start the event stays listed.
    ``start_on``: ``any_approval`` (SE-32), ``all_approvals`` (every VM in Resources, on shared hardware: SE-20), or
    ``not_before``: approvals are accepted without effect, as when a neighbour on the host does not approve.
    ``start_delay`` is the time between the deciding approval and the start (SE-33). ``seen_by``: the whole ``group``,
    or only the VMs in ``resources``. ``fields`` overrides listed fields, None removes one: for what the service sends
    although it should not. ``hardware_failure``: Started from the first moment (SE-22). ``name``: another name for the
    event, besides its EventId, for commands.
    """

    event_type: str
    resources: tuple[str, ...]
    source: str = "Platform"
    notice: float | None = None
    duration: int | None = None
    description: str | None = None
    impact: float | None = None
    gone_after: float | None = None
    start_on: str = "any_approval"
    start_delay: float | None = None
    seen_by: str | None = None
    event_id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    hardware_failure: bool = False
    name: str | None = None

    @property
    def listed_duration(self) -> int:
        """DurationInSeconds: a live migration's for a Freeze, unknown for all others, unless given."""
        if self.duration is not None:
            return self.duration
        return LIVE_MIGRATION_SECONDS if self.event_type == "Freeze" else -1

    @property
    def listed_description(self) -> str:
        """Description, by source and type unless given."""
        if self.description is not None:
            return self.description
        if self.hardware_failure:
            return HARDWARE_FAILURE
        return _DESCRIPTIONS.get((self.source, self.event_type), f"{self.event_type} of the virtual machine.")

    @property
    def audience(self) -> str:
        """Who sees the event: only the VM itself sees a Terminate, unless ``seen_by`` is set."""
        return self.seen_by or ("resources" if self.event_type == "Terminate" else "group")


@dataclass(frozen=True)
class Settings:
    """How the emulated service behaves.

    ``first_response``: how long the answer to a deployment's first request takes, up to 120 in reality (SE-05).
    ``first_events``: how long after that request events are listed, up to 300 in reality.
    ``switch_off``: time without requests that disables the service and resets DocumentIncarnation; None: never.
    ``start_delay``, ``gone_after``, ``notice``: defaults of events. ``incarnation_step``: how far DocumentIncarnation
    jumps. ``requests_per_second``: a VM's limit, in real seconds, beyond which the answer is 429; 0: unlimited.
    """

    first_response: float = 0.0
    first_events: float = 0.0
    switch_off: float | None = 86400.0
    start_delay: float = 2.0
    gone_after: float = RECORDED_GONE_AFTER
    notice: Mapping[str, float] = field(default_factory=dict, hash=False)
    incarnation_step: int = 1
    not_before_format: str = BY_VERSION
    unknown_version_status: int = 400
    etag: bool = True
    requests_per_second: int = 0

    def notice_of(self, event_type: str) -> float:
        """Return the seconds between scheduling and NotBefore."""
        return self.notice.get(event_type, NOTICE_SECONDS.get(event_type, OTHER_NOTICE_SECONDS))


def parse_duration(value: object, what: str = "duration") -> float:
    """Read ``15m``, ``1h30m``, ``2.5s``, ``7d`` or a number of seconds. Raises InputError."""
    seconds = -1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value) if 0 <= value <= _LONGEST else -1.0  # an int may be too large for a float
    elif isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match:
            days, hours, minutes, rest = (float(part or 0) for part in match.groups())
            seconds = days * 86400 + hours * 3600 + minutes * 60 + rest
    if not 0 <= seconds <= _LONGEST:
        raise InputError(
            f"the {what} {str(value)[:40]!r} is not a duration.", 'Write it like "15m", "90s", "1h30m" or "7d".'
        )
    return seconds


def with_loneliness(vms: Sequence[VmSpec]) -> tuple[VmSpec, ...]:
    """Return the VMs with ``alone`` set: as given, or for GPU VMs in a scale set with one fault domain (SE-14)."""
    domains: dict[str, set[str]] = {}
    for vm in vms:
        domains.setdefault(vm.scale_set, set()).add(vm.fault_domain)
    return tuple(
        replace(vm, alone=bool(vm.scale_set and _GPU_SIZE.match(vm.size) and len(domains[vm.scale_set]) == 1))
        if vm.alone is None
        else vm
        for vm in vms
    )


def is_guid(text: str) -> bool:
    """Return whether a text has the form of an EventId (SE-11)."""
    return _GUID.fullmatch(text) is not None


def check_vms(vms: Sequence[VmSpec]) -> None:
    """Raise InputError for a name that is not allowed, for a name given twice, and for no VM at all."""
    for vm in vms:
        if not _VM_NAME.fullmatch(vm.name):
            raise InputError(f"{vm.name[:90]!r} is not the name of a VM.", "Use letters, digits, '_', '.' and '-'.")
    if not vms or len({vm.name.lower() for vm in vms}) != len(vms):
        raise InputError("the VMs must have different names, and there must be at least one.")


def check_event(spec: EventSpec) -> None:
    """Raise InputError for an event that is impossible whatever the VMs and events."""
    if spec.event_type == "Terminate" and len(spec.resources) > 1:
        raise InputError("Terminate is an event of one VM.", "Schedule one for each VM.")
    if spec.start_on not in START_ON or spec.audience not in SEEN_BY:
        raise InputError(f"start_on is one of {', '.join(START_ON)}; seen_by is one of {', '.join(SEEN_BY)}.")
    for what in ("notice", "impact", "gone_after", "start_delay"):
        seconds = getattr(spec, what)
        if seconds is not None and not 0 <= seconds < math.inf:
            raise InputError(f"{what} is {seconds}: give seconds, 0 or more.")
