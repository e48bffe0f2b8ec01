# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the task does on a VM, or by requests from the control node if the VM has no Python: read, and approve."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ..errors import ForewarnError, InputError
from ..events import API_VERSIONS, LATEST_API_VERSION, Document, Event, Vm, format_time
from ..imds import azure
from ..imds.approval_retries import approve_with_retries
from ..imds.client import FIRST_PATIENCE_SECONDS, FIRST_READ_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, Client
from ..imds.endpoint import AUTO, ENVIRONMENT_VARIABLE, Endpoint, parse_endpoint, resolve_endpoint
from ..imds.errors import CONNECTION, HTTP, TIMEOUT, Fault, PassingFault
from ..imds.transport import Transport
from ..policy import pause
from ..system import paths
from ..texts import duration_text

ARGUMENTS: dict[str, dict[str, Any]] = {
    "endpoint": {"type": "str"},
    "api_version": {"type": "str", "choices": list(API_VERSIONS)},
    "vm_name": {"type": "str"},
    "timeout": {"type": "int", "default": int(FIRST_READ_TIMEOUT_SECONDS)},
    "patience": {"type": "int", "default": int(FIRST_PATIENCE_SECONDS)},
    "approve": {"type": "list", "elements": "str", "default": []},
    "document_incarnation": {"type": "str"},
    "events_digest": {"type": "str"},
}
# Options that only the control node's part of the task knows: it decides by policies.
POLICY_ARGUMENTS: dict[str, dict[str, Any]] = {
    "policies": {"type": "list", "elements": "path", "default": []},
    "params": {"type": "dict", "default": {}},
    "apply": {"type": "bool", "default": False},
}
# Fields of an event that the result has as they are; it has resources, not_before and problems in another form.
EVENT_FIELDS = (
    *("event_id", "event_type", "event_status", "resource_type", "duration_in_seconds", "event_source", "description"),
)
SHOWN_EVENTS = 3  # in one line
_SLOW_SECONDS = 10.0  # an answer usually takes milliseconds

# What to do about a status, in addition to the client's message.
_ADVICE = {
    403: "Check the VM's metadata security policy (proxyAgentSettings: allow this request, or set the mode to Audit) "
    "and its firewall rules for 169.254.169.254.",
    404: "Run it again in some minutes, or raise patience.",
    410: "Run it again in some minutes, or raise patience.",
}


class TaskError(Exception):
    """The task cannot be performed. The text is for the operator, ``more`` goes into the result."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message)
        self.more = more


def perform(
    params: Mapping[str, Any],
    check_mode: bool,
    warn: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
    transport: Callable[[Endpoint], Transport] | None = None,
    clock: Callable[[], datetime] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Perform a task whose options ``params`` were checked against ARGUMENTS; return its result.

    ``failed`` in the result means that it failed. ``environ`` is the VM's. If this process does not run on the VM,
    ``transport`` returns what carries the requests, and ``clock`` the VM's time after the document was read.
    """
    begin = monotonic()
    patience_seconds: int = params["patience"]
    result: dict[str, Any] = {"api_version": params["api_version"] or LATEST_API_VERSION}

    def patience() -> float:
        return max(0.0, begin + patience_seconds - monotonic())

    try:
        _check(params)
        with _client(params, os.environ if environ is None else environ, transport, clock, warn) as client:
            document = client.read(patience())
            if (took := monotonic() - begin) > _SLOW_SECONDS and not document.events:
                warn(
                    f"The answer took {duration_text(took)}. The first request in a day switches Scheduled Events "
                    "on for the deployment, and events may then take up to five minutes to appear: ask again in five "
                    "minutes."
                )
            read_at = clock() if clock else datetime.now(timezone.utc)
            vm, vm_problems = identify(client, params["vm_name"], patience())
            events = [describe_event(event, vm.name, read_at) for event in document.events]
            result.update(
                ahead=ahead(events, problems=document.problems),
                msg=summary(document),
                read_at=format_time(read_at),
                document_incarnation=document.incarnation,
                events_digest=digest(events),
                events=events,
                vm=vm._asdict(),
                problems=list(document.problems),
                vm_problems=vm_problems,
                approved=[],
                changed=False,
                pause=None if transport else _pause(),
            )
            if params["approve"]:
                approve(params, check_mode, client, document, patience(), result, warn)
    except TaskError as refusal:
        result.update(refusal.more, failed=True, msg=str(refusal))
    except ForewarnError as error:
        result.update(_failure(error, monotonic() - begin))
    return result


def _check(params: Mapping[str, Any]) -> None:
    if params["timeout"] < 1:
        raise TaskError("timeout must be at least 1 second.")
    if params["patience"] < 0:
        raise TaskError("patience must not be negative.")


def _pause() -> str | None:
    """Return why nothing may be approved on this VM now, as its operator has paused that, or None."""
    found = pause.read_pause(paths.SERVICE_STATE)
    return found.describe() if found is not None and found.is_active(time.time()) else None


def _client(
    params: Mapping[str, Any],
    environ: Mapping[str, str],
    transport: Callable[[Endpoint], Transport] | None,
    clock: Callable[[], datetime] | None,
    warn: Callable[[str], None],
) -> Client:
    endpoint = params["endpoint"]
    if endpoint == AUTO and transport is not None:
        raise InputError("endpoint auto looks into the DHCP leases of Linux.", "Give the address, or leave it out.")
    if endpoint is None or endpoint == AUTO:
        endpoint = resolve_endpoint(endpoint, environ)
        why = None if transport else azure.platform_problem(params["endpoint"], endpoint, environ)
        if why is not None:
            warn(
                f"{why}. {endpoint} is asked anyway: name the service with endpoint or {ENVIRONMENT_VARIABLE}; "
                f"in Azure, set {azure.PLATFORM_VARIABLE}={azure.AZURE} on the VM."
            )
    return Client(
        endpoint,
        params["api_version"] or LATEST_API_VERSION,
        read_timeout=min(READ_TIMEOUT_SECONDS, params["timeout"]),
        first_read_timeout=params["timeout"],
        wall=(lambda: clock().timestamp()) if clock else time.time,
        transport=transport(parse_endpoint(endpoint)) if transport else None,
    )


def describe_event(event: Event, vm_name: str | None, now: datetime) -> dict[str, Any]:
    """Return an event in the form of the task's result: all that is needed to decide on it elsewhere."""
    place = event.place_of(vm_name)
    return {
        **{name: getattr(event, name) for name in EVENT_FIELDS},
        "resources": list(event.resources),
        "not_before": None if event.not_before is None else format_time(event.not_before),
        "notice_seconds": event.notice_seconds(now),
        "affects_me": None if vm_name is None else place is not None,
        "leader": None if vm_name is None else place == 0,
        "problems": list(event.problems),
    }


def digest(events: list[dict[str, Any]]) -> str:
    """Return a text that changes with anything that a decision on these events depends on: with everything that the
    service sent, but not with the time left. ``events`` are as ``describe_event`` returns them.
    """
    counted = ("notice_seconds", "affects_me", "leader")  # these depend on the time and on the name of the VM
    said = [{name: value for name, value in event.items() if name not in counted} for event in events]
    said.sort(key=lambda event: str(event["event_id"]))
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def select(document: Document, event_ids: list[str]) -> tuple[list[Event], list[str]]:
    """Return the listed events with these ids, each once, and the ids that are not listed."""
    listed = {event.key: event for event in document.events}
    wanted = list(dict.fromkeys(event_id.strip().lower() for event_id in event_ids))
    return [listed[key] for key in wanted if key in listed], [key for key in wanted if key not in listed]


def identify(client: Client, override: str | None, patience: float) -> tuple[Vm, list[str]]:
    """Return the identity of this VM, and problems with it. Without a name no policy approves anything."""
    problems = []
    try:
        vm = client.read_instance(patience)
    except Fault as fault:
        vm = Vm()
        problems.append(f"the instance metadata could not be read: {fault}")
    if override:
        vm = vm._replace(name=override)
    if vm.name is None:
        problems.append("the name of this VM is unknown, so it is unknown which events affect it: set vm_name")
    return vm, problems


def summary(document: Document) -> str:
    """Summarize in one line what is scheduled."""
    if not document.events:
        return nothing_text(document.problems)
    texts = [f"{event.event_type} {event.event_status} {event.event_id}" for event in document.events[:SHOWN_EVENTS]]
    texts += ["…"] if len(document.events) > SHOWN_EVENTS else []
    number = len(document.events)
    unread = [unread_text(document.problems)] if document.problems else []
    return "; ".join([f"{number} {'event' if number == 1 else 'events'}: {', '.join(texts)}", *unread])


def nothing_text(problems: Sequence[str]) -> str:
    """Return a sentence on a document without events; ``problems`` are those of the document."""
    return f"nothing is scheduled that can be read; {unread_text(problems)}" if problems else "nothing is scheduled"


def unread_text(problems: Sequence[str]) -> str:
    """Return a text that a document with these problems cannot be read in full."""
    return f"the document cannot be read in full: {problems[0]}{' …' if len(problems) > 1 else ''}"


def ahead(events: list[dict[str, Any]], outcomes: list[str] | None = None, problems: Sequence[str] = ()) -> str:
    """Summarize what is ahead of a VM, for an overview of a fleet. ``outcomes`` has a word or two about each event, and
    ``problems`` are those of the document.

    Callbacks sort what they print, and this key comes first.
    """
    if not events:
        return "unknown: the document cannot be read in full" if problems else "nothing"
    texts = []
    for number, event in enumerate(events[:SHOWN_EVENTS]):
        where = {True: "here", False: "elsewhere", None: "here?"}[event["affects_me"]]
        outcome = f": {outcomes[number]}" if outcomes else ""
        texts.append(f"{event['event_type'] or '?'} {_when(event)}, {where}{outcome}")
    if len(events) > SHOWN_EVENTS:
        texts.append(f"and {len(events) - SHOWN_EVENTS} more")
    if problems:
        texts.append("and what cannot be read")
    return "; ".join(texts)


def _when(event: Mapping[str, Any]) -> str:
    if event["event_status"] == "Started":
        return "under way"
    seconds = event["notice_seconds"]
    if seconds is None:
        return "at an unknown time"
    if seconds <= 0:
        return "any moment"
    return f"in {duration_text(round(seconds) if seconds < 120 else round(seconds / 60) * 60)}"


def approve(
    params: Mapping[str, Any],
    check_mode: bool,
    client: Client,
    document: Document,
    patience: float,
    result: dict[str, Any],
    warn: Callable[[str], None],
) -> None:
    """Send the approvals that the task asks for, and add them to the result. Raises TaskError."""
    expected = params["document_incarnation"]
    # Nobody can refer to a document without an incarnation.
    if expected is not None and (document.incarnation is None or expected != str(document.incarnation)):
        raise TaskError(
            f"The document has changed: its incarnation is {document.incarnation}, no longer {expected}. "
            "Nothing was approved. Check the events again.",
            superseded=True,
        )
    if params["events_digest"] not in (None, result["events_digest"]):
        raise TaskError(
            "The events have changed since the decision. Nothing was approved. Check the events again.",
            superseded=True,
        )
    events, unknown = select(document, params["approve"])
    if unknown:
        listed = ", ".join(event.event_id for event in document.events) or "none"
        raise TaskError(
            f"Not listed: {', '.join(unknown)}. Nothing was approved. Listed: {listed}. "
            "An event that has ended or was cancelled is no longer listed."
            + (f" And {unread_text(document.problems)}." if document.problems else "")
        )
    waiting = [event for event in events if event.event_status != "Started"]
    if waiting and result["pause"] is not None:
        raise TaskError(f"{result['pause']}. Nothing was approved. To end a pause: forewarn resume, on the VM.")
    started = [event.event_id for event in events if event.event_status == "Started"]
    ids = [event.event_id for event in waiting]
    for event in waiting:  # a person who names an event has the last word
        for text in event.doubts:
            warn(f"event {event.event_id}: {text}; approving it anyway")
    if waiting and not check_mode:
        try:
            by_policies = params["events_digest"] is not None  # these do not approve after NotBefore
            approve_with_retries(client, document, waiting, patience, in_time=by_policies)
        except Fault as fault:
            if not (fault.unsure or isinstance(fault, PassingFault)):
                raise
            more = f"It is not known whether the approval of {', '.join(ids)} arrived."
            raise TaskError(f"{fault} {more}", **_failure(fault, None)) from fault
    texts = []
    if waiting:
        texts.append(f"{'would approve' if check_mode else 'approved'} {', '.join(ids)}")
    if started:
        texts.append(f"already started: {', '.join(started)}")
    result.update(msg="; ".join(texts), approved=ids, changed=bool(ids))
    if waiting:
        result["diff"] = {
            "before_header": "scheduled events",
            "after_header": "scheduled events, approved",
            "before": "".join(f"{event.event_id}: {event.event_type} {event.event_status}\n" for event in waiting),
            "after": "".join(f"{event.event_id}: {event.event_type} approved\n" for event in waiting),
        }


def _failure(error: ForewarnError, seconds: float | None) -> dict[str, Any]:
    """Return the part of a result on why the task failed and what to do; ``seconds`` is how long it tried."""
    failure: dict[str, Any] = {"failed": True, "msg": str(error)}
    if not isinstance(error, Fault):
        return failure
    passing = isinstance(error, PassingFault)
    failure["fault"] = {"kind": error.kind, "status": error.status, "passing": passing}
    texts = [str(error)]
    if passing and seconds is not None:
        texts.append(f"Tried for {duration_text(seconds)}.")
    if error.kind == HTTP and error.status in _ADVICE:
        texts.append(_ADVICE[error.status])
    elif error.kind in (TIMEOUT, CONNECTION):
        texts.append("Is this host a VM in Azure? Outside Azure nobody answers.")
    failure["msg"] = " ".join(texts)
    return failure
