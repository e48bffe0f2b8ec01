# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate time``: jumps ahead in emulated time, or changes its pace."""

from __future__ import annotations

import argparse

from ...errors import InputError
from .control import add_control_arguments, client_of, report_state, seconds, show_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--advance", type=seconds, metavar="TIME", help="jump ahead by this time")
    parser.add_argument(
        "--scale", type=float, metavar="N", help="run it N times as fast as real time; 0: only when it is advanced"
    )
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Change the time, and report it."""
    if args.advance is None and args.scale is None:
        raise InputError("--advance or --scale is needed.", "See the time with: forewarn emulate status.")
    with client_of(args) as client:
        if args.scale is not None:
            client.set_time_scale(args.scale)
        if args.advance is not None:
            client.advance(args.advance)
        return report_state(args, client, show_time)
