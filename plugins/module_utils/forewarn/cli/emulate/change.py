# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of ``forewarn emulate`` that change a running emulation: an event, the time, or all of it."""

from __future__ import annotations

import argparse
from typing import Callable, Mapping

from ...emulator.client import EmulatorClient
from ...errors import InputError
from ...texts import exact_text
from .control import add_control_arguments, client_of, report_event, report_state, seconds, show_time

# What becomes of an event, in a word, and in the client's; any other command is about the whole emulation.
_OF_EVENTS: Mapping[str, tuple[str, Callable[[EmulatorClient, argparse.Namespace], None]]] = {
    "cancel": ("cancelled", lambda client, args: client.cancel(args.event)),
    "start": ("started", lambda client, args: client.start(args.event)),
    "finish": ("finished", lambda client, args: client.finish(args.event)),
    "impact": ("affected", lambda client, args: client.secondary_impact(args.event, args.duration)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command = parser.prog.rpartition(" ")[2]
    if command in _OF_EVENTS:
        parser.add_argument("event", metavar="EVENT", help="EventId or name of the event")
    if command == "impact":
        parser.add_argument("--duration", type=seconds, required=True, metavar="TIME", help="how long it lasts")
    if command == "time":
        parser.add_argument("--advance", type=seconds, metavar="TIME", help="jump ahead by this time")
        parser.add_argument(
            "--scale", type=float, metavar="N", help="run it N times as fast as real time; 0: only when it is advanced"
        )
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Make the change, and report what has changed."""
    if args.command == "time" and args.advance is None and args.scale is None:
        raise InputError("--advance or --scale is needed.", "See the time with: forewarn emulate status.")
    with client_of(args) as client:
        if args.command in _OF_EVENTS:
            done, change = _OF_EVENTS[args.command]
            change(client, args)
            if args.command == "impact":
                done += f" for another {exact_text(args.duration)}"
            return report_event(args, client, args.event, done)
        if args.command == "time":
            if args.scale is not None:
                client.set_time_scale(args.scale)
            if args.advance is not None:
                client.advance(args.advance)
            return report_state(args, client, show_time)
        if args.command == "reset":
            client.reset()
            done = "The scenario begins again. Events, faults and the log are forgotten."
        else:
            client.switch_off()
            done = "The service is off. The next request switches it on again."
        return report_state(args, client, lambda console, _state: console.line(done))
