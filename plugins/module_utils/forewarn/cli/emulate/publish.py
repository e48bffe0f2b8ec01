# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate publish``: makes the emulated service announce an event."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from ...emulator.lifecycle import SCHEDULED
from ...emulator.spec import SEEN_BY, START_ON
from ...errors import InputError
from ...events import EVENT_TYPE_SINCE, NOTICE_SECONDS, UNKNOWN_DURATION
from ...texts import duration_text
from ..output.page import iso
from .control import add_control_arguments, client_of, report_event, seconds

_TIME: Mapping[str, Any] = {"type": seconds, "metavar": "TIME"}
# Keys that --hardware-failure excludes.
_NOT_OF_FAILED_HARDWARE = ("notice", "duration", "source", "start_on", "start_delay", "seen_by")


def _announced(text: str) -> int:
    """Read DurationInSeconds for argparse: a whole number of seconds, or -1 (SE-19)."""
    duration = UNKNOWN_DURATION if text == str(UNKNOWN_DURATION) else seconds(text)
    if duration != int(duration):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(duration)


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise argparse.ArgumentTypeError(f"""{text[:40]!r} is not a JSON object such as {{"EventStatus": null}}""")
    return fields


_NOTICES = ", ".join(f"{name} {duration_text(notice)}" for name, notice in NOTICE_SECONDS.items())
# The keys of an event in the scenario's schema, which are options, and what argparse has to know of them.
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "type": {"metavar": "TYPE", "help": f"EventType: {', '.join(EVENT_TYPE_SINCE)}, or any other"},
    "resources": {
        "nargs": "+",
        "action": "extend",
        "metavar": "NAME",
        "help": "affected VMs, separated by spaces or commas (default: the emulator's first VM)",
    },
    "notice": {**_TIME, "help": f"time until NotBefore (default, as documented: {_NOTICES})"},
    "duration": {
        "type": _announced,
        "metavar": "TIME",
        "help": "DurationInSeconds, -1 for unknown (default: 5 for a Freeze, else unknown)",
    },
    "source": {"metavar": "SOURCE", "help": "EventSource (default: Platform)"},
    "description": {"metavar": "TEXT", "help": "Description (default: one for type and source)"},
    "name": {"help": "a name for the event, for the commands that take an EVENT"},
    "impact": {**_TIME, "help": "how long the VMs are in fact affected (default: --duration)"},
    "gone_after": {**_TIME, "help": "how long it is listed as Started (default: 10m)"},
    "start_on": {"choices": START_ON, "help": "what starts it before NotBefore (default: one approval of any VM)"},
    "start_delay": {**_TIME, "help": "time between the approval and the start (default: 2s)"},
    "seen_by": {"choices": SEEN_BY, "help": "who is shown it (default: the group; a Terminate: its VM)"},
    "event_id": {"metavar": "GUID", "help": "its EventId (default: a new one)"},
    "fields": {
        "type": _fields,
        "metavar": "JSON",
        "help": "fields to list with other values; null leaves a field out",
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for key, keywords in _KEYS.items():
        parser.add_argument(f"--{key.replace('_', '-')}", **keywords)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--hardware-failure", action="store_true", help="list it as Started at once; a Reboot unless --type is given"
    )
    kind.add_argument(
        "--fault-domains", action="store_true", help="an event for each fault domain of the VMs, one after another"
    )
    parser.add_argument(
        "--pause",
        type=seconds,
        metavar="TIME",
        help="with --fault-domains: time between one and the next (default: 0s)",
    )
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Publish the event, and report it."""
    event: dict[str, Any] = {key: getattr(args, key) for key in _KEYS if getattr(args, key) is not None}
    _check(args, event)
    if args.resources is not None:
        event["resources"] = [name for names in args.resources for name in names.split(",") if name]
    with client_of(args) as client:
        if args.hardware_failure:
            event_id = client.hardware_failure(**event)
        elif args.fault_domains:
            event_id = client.schedule_fault_domains(event, args.pause or 0.0)
        else:
            event_id = client.schedule_event(event)
        return report_event(args, client, event_id, "published", f", {_start(client.event(event_id))}")


def _check(args: argparse.Namespace, event: dict[str, Any]) -> None:
    """Raise InputError for options that do not go together."""
    if args.pause is not None and not args.fault_domains:
        raise InputError("--pause is the time between fault domains.", "Give --fault-domains as well.")
    if args.hardware_failure:
        for key in _NOT_OF_FAILED_HARDWARE:
            if key in event:
                raise InputError(
                    f"--{key.replace('_', '-')} does not go with --hardware-failure: the event is Started at once."
                )
    elif args.type is None:
        raise InputError("--type is needed.", f"Name the event to publish: {', '.join(EVENT_TYPE_SINCE)}.")


def _start(event: dict[str, Any]) -> str:
    if event["status"] != SCHEDULED:
        return f"started by {event['started_by']}"
    notice = duration_text(event["not_before"] - event["created"]["wall"])
    return f"NotBefore {iso(event['not_before'])} (in {notice})"
