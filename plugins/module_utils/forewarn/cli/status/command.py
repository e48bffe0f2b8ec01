# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status``: the state of the runner, the pending events, and what they wait for. See docs/seeing.md."""

from __future__ import annotations

import argparse

from ...runner.clocks import Clocks
from ..output.console import write_result
from ..output.page import Page
from ..runner_state import add_state_argument, open_state, which_state
from .page import show
from .report import examine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Exit codes: 0 if the runner works and the service answers it; 1 if not, or if nothing can be kept, something "
        "was lost, the service's document cannot be read in full, a reload was refused, a hook lacks what it needs, a "
        "preparation or a recovery has failed, or what is on disk is not what runs, or would not start; 2 for bad "
        "usage, or if no runner has worked here."
    )


def run(args: argparse.Namespace) -> int:
    """Show the status; return 1 if something needs attention."""
    report = examine(open_state(args.state, args.dry_run), Clocks(), which_state(args))
    show(Page(write_result(args.json, "status", report)), report)
    return 1 if report["problems"] else 0
