# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate cancel``, ``start`` and ``finish``: cancel, start or finish one event, approved or not."""

from __future__ import annotations

import argparse

from .control import add_control_arguments, client_of, report_event

_DONE = {"cancel": "cancelled", "start": "started", "finish": "finished"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event", metavar="EVENT", help="EventId or name of the event")
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Change the event, and report it."""
    with client_of(args) as client:
        {"cancel": client.cancel, "start": client.start, "finish": client.finish}[args.command](args.event)
        return report_event(args, client, args.event, _DONE[args.command])
