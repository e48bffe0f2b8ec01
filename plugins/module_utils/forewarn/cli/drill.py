# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn drill``: rehearses an event through the running service. docs/drills.md describes it."""

from __future__ import annotations

import argparse
import sys

from ..errors import InputError
from ..events import EVENT_SOURCES, EVENT_TYPE_SINCE, NOTICE_SECONDS, OTHER_NOTICE_SECONDS
from ..runner.clocks import Clocks
from ..runner.drills import drill
from ..runner.drills.store import DrillRequest, check
from ..runner.event_record import LISTED, RECOVERING
from ..texts import duration_text
from .arguments import duration
from .output.console import Console, one_line, write_result
from .runner_state import State, add_state_argument, command_text, list_of, object_of, open_state, text_of

_DURATION = 30.0
_USER, _PLATFORM = "User", "Platform"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type", metavar="TYPE", help=f"EventType: {', '.join(EVENT_TYPE_SINCE)}, or one that your policies declare"
    )
    notices = ", ".join(f"{name} {duration_text(seconds)}" for name, seconds in NOTICE_SECONDS.items())
    parser.add_argument(
        "--notice",
        type=duration,
        metavar="TIME",
        help=f"time until NotBefore, such as 1m30s; 0s lists it as Started at once (default, as documented: {notices})",
    )
    parser.add_argument(
        "--duration",
        type=duration,
        default=_DURATION,
        metavar="TIME",
        help="how long it stays Started before it is gone; announced as DurationInSeconds (default: 30s)",
    )
    parser.add_argument(
        "--source", choices=EVENT_SOURCES, help=f"EventSource (default: {_PLATFORM}, as for most events)"
    )
    parser.add_argument("--resources", nargs="+", metavar="NAME", help="affected VMs (default: this VM alone)")
    parser.add_argument("--description", metavar="TEXT", help="Description of the event")
    parser.add_argument("--cancel", metavar="ID", help="end the drill with this id, instead of beginning one")
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = "Real hooks run, unless the runner is a dry run; nothing is ever sent to the service."


def run(args: argparse.Namespace) -> int:
    """Hand a drill over to the runner, or cancel one."""
    clocks = Clocks()
    if args.cancel is not None:
        return _cancel(args, clocks)
    if args.type is None:
        raise InputError("--type is needed.", f"Name the event to rehearse: {', '.join(EVENT_TYPE_SINCE)}.")
    request = check(
        DrillRequest(
            args.type,
            NOTICE_SECONDS.get(args.type, OTHER_NOTICE_SECONDS) if args.notice is None else args.notice,
            args.duration,
            args.source or _PLATFORM,
            None if args.resources is None else tuple(args.resources),
            args.description,
        )
    )
    state = open_state(args.state, args.dry_run)
    drill.find_runner(state.directory, clocks)  # the events in a stopped runner's journal may be over by now
    _refuse_if_overtaken(state)
    event_id = drill.submit(state.directory, request, clocks)
    for text in _doubts(request, state):
        Console(sys.stderr).warning(text)
    watch = [command_text("status", args), command_text(f"history --event {event_id}", args)]
    content = {"id": event_id, "state": state.directory, "request": request._asdict(), "watch": watch}
    console = write_result(args.json, "drill", content)
    where = "this VM" if request.resources is None else ", ".join(request.resources)
    when = (
        f"starts in {duration_text(request.notice_seconds)} at the latest" if request.notice_seconds else "starts now"
    )
    lasts = f"lasts {duration_text(request.duration_seconds)}"
    console.result("handed over", f"{event_id} ({request.event_type} of {where})", "green")
    console.line(f"It {when}, {lasts}, and is decided, prepared and recovered like a real one. Nothing is sent.")
    console.line(f"Watch it:  {one_line(watch[0])}")
    console.line(f"           {one_line(watch[1])}")
    console.line(f"End it:    {one_line(command_text(f'drill --cancel {event_id}', args))}")
    return 0


def _cancel(args: argparse.Namespace, clocks: Clocks) -> int:
    if any(value is not None for value in (args.type, args.notice, args.source, args.resources, args.description)):
        raise InputError("--cancel ends a drill; --type and its options begin one.", "Use one of them.")
    event_id = args.cancel.strip().lower()
    state = open_state(args.state, args.dry_run)
    drill.cancel(state.directory, event_id, clocks)
    console = write_result(args.json, "drill", {"cancelled": event_id, "state": state.directory})
    console.line(one_line(f"cancelled: {event_id}; any preparation that has begun is recovered"))
    return 0


def _refuse_if_overtaken(state: State) -> None:
    """Raise InputError while a real event affects this VM or is being recovered: it would end the drill at once."""
    vm = text_of(state.beat and state.beat.fields, "vm").lower()
    for record in state.journal.records(open_only=True) if state.journal is not None else ():
        event = object_of(record.data, "event")
        affected = any(isinstance(name, str) and name.lower() == vm for name in list_of(event, "Resources"))
        if record.data.get("drill"):
            continue
        about = f"a real {text_of(event, 'EventType') or 'event'}"
        if record.state == RECOVERING:
            raise InputError(
                f"the preparation for {about} is being recovered, and that would end the drill at once: "
                f"{text_of(event, 'EventId')}.",
                "Wait until 'forewarn status' no longer shows it, or end a recovery that fails: forewarn recover.",
            )
        if affected and record.state in LISTED:
            raise InputError(
                f"{about} is scheduled for this VM, and would end the drill at once: {text_of(event, 'EventId')}.",
                "Wait until 'forewarn status' no longer shows it.",
            )


def _doubts(request: DrillRequest, state: State) -> list[str]:
    fields = state.beat.fields if state.beat else {}
    vm = text_of(fields, "vm")
    doubts = []
    if request.event_type not in EVENT_TYPE_SINCE:
        doubts.append(
            f"Forewarn does not know the type {request.event_type}: the event is held, unless the policies declare "
            "it in extra_values"
        )
    if request.resources is None and not vm:
        doubts.append("the runner does not know the name of this VM yet: the drill begins when it does")
    elif request.resources is not None and vm and vm.lower() not in (name.lower() for name in request.resources):
        doubts.append(f"{vm}, this VM, is not among the resources: here this rehearses an event of other VMs")
    if fields.get("dry_run") is True:
        doubts.append("the runner works with --dry-run: no hook will run; the log names those that would")
    return doubts
