# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate impact``: makes a started event affect its VMs once more (SE-23)."""

from __future__ import annotations

import argparse

from ...texts import exact_text
from .control import add_control_arguments, client_of, report_event, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event", metavar="EVENT", help="EventId or name of the event")
    parser.add_argument("--duration", type=seconds, required=True, metavar="TIME", help="how long it lasts")
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Make the event affect its VMs again, and report it."""
    with client_of(args) as client:
        client.secondary_impact(args.event, args.duration)
        return report_event(args, client, args.event, f"affected for another {exact_text(args.duration)}")
