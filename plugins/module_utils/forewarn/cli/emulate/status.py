# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate status``: the VMs, events and faults of a running emulator, or one event."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ..output.console import Console, one_line, write_result
from ..output.page import iso, resources_text
from .control import add_control_arguments, client_of, report_state, show_faults, show_time

_VM_HEADER = ("VM", "GROUP", "FAULT DOMAIN", "INCARNATION", "LISTED", "AFFECTED BY")
_EVENT_HEADER = ("TYPE", "STATUS", "NOT BEFORE", "SOURCE", "RESOURCES", "NAME", "EVENT ID")
_STYLES = {"Scheduled": "yellow", "Started": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event", nargs="?", metavar="EVENT", help="one event and its history, by EventId or name")
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Show everything, or one event."""
    with client_of(args) as client:
        if args.event is None:
            return report_state(args, client, _show_state)
        _show_event(args, client.event(args.event))
    return 0


def _show_state(console: Console, state: Mapping[str, Any]) -> None:
    show_time(console, state)
    console.line()
    console.table(_VM_HEADER, [_vm_row(vm) for vm in state["vms"]])
    console.line()
    _show_events(console, state["events"])
    console.line()
    show_faults(console, state)


def _vm_row(vm: Mapping[str, Any]) -> tuple[str, ...]:
    listed, affected = str(len(vm["listed"])), ", ".join(vm["impacted_by"]) or "-"
    return vm["name"], vm["group"] or "(alone)", vm["fault_domain"], str(vm["incarnation"]), listed, affected


def _show_events(console: Console, events: Sequence[Mapping[str, Any]]) -> None:
    if not events:
        console.line("No events.")
        return
    rows = [
        (
            event["type"],
            event["status"],
            iso(event["not_before"]),
            event["source"],
            resources_text(event["resources"]),
            event["name"] or "-",
            event["event_id"],
        )
        for event in events
    ]
    console.table(_EVENT_HEADER, rows, _STYLES)


def _show_event(args: argparse.Namespace, event: Mapping[str, Any]) -> None:
    """Write an event, and below it its history, oldest first."""
    console = write_result(args.json, "emulate-event", {"event": event})
    _show_events(console, [event])
    times = [(event["created"], "scheduled")]
    times += [(at, f"shown to {vm}") for vm, at in event["visible_since"].items()]
    times += [(approval["at"], f"approved by {approval['vm']}") for approval in event["approvals"]]
    times += [(event["started"], f"started by {event['started_by']}")] if event["started"] else []
    times += [(event["ended"], event["status"].lower())] if event["ended"] else []
    for at, text in sorted(times, key=lambda one: one[0]["emulated"]):
        console.line(one_line(f"  {iso(at['wall'], 'milliseconds')}  {text}"))
