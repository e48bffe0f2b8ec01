# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn pause``: for a while, this VM approves nothing. See docs/operations.md, "Pausing approvals"."""

from __future__ import annotations

import argparse
import os

from ..policy import pause
from ..policy.pause import Pause
from ..runner.clocks import Clocks
from ..runner.hooks.recovery_requests import requesting_user
from ..texts import duration_text, exact_text
from . import approval_pause
from .approval_pause import NO_RUNNER, UNCONFIRMED
from .arguments import duration
from .output.console import one_line, write_result
from .output.page import iso
from .runner_state import add_state_argument, command_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for", dest="seconds", type=duration, required=True, metavar="TIME", help="how long, such as 2h or 1h30m"
    )
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, in a line; status and history show it")
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Exit codes: 0 if nothing is approved from now on, or no runner works and the next one will approve nothing "
        "either; 1 if the runner has not confirmed it, so that an approval may still be sent; 2 for bad usage. Hooks "
        "run as the policies say. forewarn resume ends it early."
    )


def run(args: argparse.Namespace) -> int:
    """Begin a pause, and wait until the runner confirms it."""
    clocks, directory = Clocks(), approval_pause.directory_of(args)
    now = round(clocks.wall(), 3)
    begun = Pause(
        f"pause-{os.urandom(4).hex()}",
        requesting_user(os.environ),
        args.reason.strip(),
        now,
        round(now + args.seconds, 3),
    )
    pause.check_pause(begun)
    before = pause.read_pause(directory)
    approval_pause.hand_over(directory, begun)
    result = approval_pause.confirmation(directory, begun.identifier, clocks)
    replaced = before is not None and before.is_active(now)
    content = {"state": directory, "result": result, "pause": approval_pause.as_json(begun), "replaced": replaced}
    console = write_result(args.json, "pause", content)
    until = f"until {iso(begun.until)} ({duration_text(args.seconds)})"
    if result == UNCONFIRMED:
        waited = exact_text(approval_pause.PATIENCE_SECONDS)
        text = f"{until}: the runner has not confirmed it within {waited}. An approval may be under way."
        console.result("not confirmed", text, "bold", "red")
    elif result == NO_RUNNER:
        console.result("paused", f"{until}. No runner works now: it holds when one starts.", "yellow")
    else:
        console.result("paused", f"{until}. This VM approves nothing; its hooks go on.", "green")
    if replaced and before is not None:
        console.line(one_line(f"It replaces an earlier one: {before.describe()}"))
    console.line(one_line(f"End it:  {command_text('resume', args)}"))
    return 1 if result == UNCONFIRMED else 0
