# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate fail``: makes requests to the emulated service fail or take long."""

from __future__ import annotations

import argparse

from ...emulator.faults import KINDS, REQUESTS
from ...errors import InputError
from ..arguments import count
from .control import add_control_arguments, client_of, report_state, seconds, show_faults

_OPTIONS = ("times", "for", "latency", "retry_after", "vms", "requests", "processed")  # as the schema has them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", type=_kind, metavar="KIND", help=f"an HTTP status from 100 to 599, or {', '.join(KINDS)}"
    )
    parser.add_argument("--times", type=count, metavar="N", help="for N requests (default: until --clear)")
    parser.add_argument("--for", type=seconds, metavar="TIME", help="for this time (default: until --clear)")
    parser.add_argument("--latency", type=seconds, metavar="TIME", help="delay answers by this time")
    parser.add_argument("--retry-after", type=seconds, metavar="TIME", help="value of the header Retry-After")
    parser.add_argument(
        "--vm", dest="vms", action="append", metavar="NAME", help="requests of this VM only; may be repeated"
    )
    parser.add_argument(
        "--request",
        dest="requests",
        action="append",
        choices=REQUESTS,
        help="requests of this kind only; may be repeated",
    )
    parser.add_argument(
        "--processed", action="store_true", default=None, help="the request takes effect; only its answer is lost"
    )
    parser.add_argument("--clear", action="store_true", help="end all faults")
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Begin a fault or end all of them, and show the current faults."""
    values = {option: getattr(args, option) for option in _OPTIONS}
    given = [option for option, value in values.items() if value is not None]
    if args.clear and (given or args.kind is not None):
        raise InputError("--clear ends all faults; KIND and its options begin one.", "Use one of them.")
    if args.kind is None and not args.clear:
        raise InputError("KIND is needed.", "Name the fault, such as 503 or drop; --clear ends all faults.")
    if args.kind == "latency" and not args.latency:
        raise InputError("--latency is needed.", "Give the delay of the answers, such as --latency 3s.")
    with client_of(args) as client:
        if args.clear:
            client.clear_faults()
        else:
            client.inject_fault(args.kind, **values)
        return report_state(args, client, show_faults)


def _kind(text: str) -> str:
    if text not in KINDS and not (text.isdecimal() and 100 <= int(text) <= 599):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a status from 100 to 599 nor one of {', '.join(KINDS)}")
    return text
