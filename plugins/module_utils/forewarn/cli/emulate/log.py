# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate log``: the requests to the emulated service, and how they were answered."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ..arguments import count
from ..output.console import write_result
from ..output.page import iso
from .control import add_control_arguments, client_of

_HEADER = ("NUMBER", "RECEIVED", "VM", "METHOD", "PATH", "API VERSION", "STATUS", "INCARNATION", "TOOK", "NOTES")
_STYLES = {"2": "green", "3": "cyan", "4": "yellow", "5": "red", "-": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", type=count, metavar="N", help="only the requests after that number")
    parser.add_argument("--clear", action="store_true", help="forget the requests so far, instead of showing them")
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Show the requests, or forget them."""
    if args.clear and args.since is not None:
        raise InputError("--since shows requests, and --clear forgets all of them.", "Use one of them.")
    with client_of(args) as client:
        if args.clear:
            client.clear_requests()
        requests = client.requests(args.since or 0)
    console = write_result(args.json, "emulate-log", {"requests": requests})
    if not requests:
        console.line("No requests." if args.since is None else f"No requests after number {args.since}.")
        return 0
    rows = [_row(request) for request in requests]
    status = _HEADER.index("STATUS")
    console.table(_HEADER, rows, {row[status]: _STYLES[row[status][0]] for row in rows})
    return 0


def _row(request: Mapping[str, Any]) -> tuple[str, ...]:
    received, answered = request["received"], request["answered"]
    notes = [f"approves {', '.join(request['event_ids'])}"] if request["event_ids"] else []
    notes += [f"fault {request['fault']}"] if request["fault"] else []
    notes += [request["error"]] if request["error"] else []
    return (
        str(request["number"]),
        iso(received["wall"], "milliseconds"),
        request["vm"] or "?",
        request["method"],
        request["path"],
        request["api_version"] or "-",
        "-" if request["status"] is None else str(request["status"]),
        "-" if request["incarnation"] is None else str(request["incarnation"]),
        "-" if answered is None else f"{(answered['monotonic'] - received['monotonic']) * 1000:.1f} ms",
        "; ".join(notes),
    )
