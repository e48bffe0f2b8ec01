# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn resume``: ends an operator's pause. See docs/operations.md, "Pausing approvals"."""

from __future__ import annotations

import argparse
import os

from ..policy import pause
from ..policy.pause import Pause
from ..runner.clocks import Clocks
from ..runner.hooks.recovery_requests import requesting_user
from .approval_pause import UNCONFIRMED, as_json, confirmation, directory_of, hand_over
from .output.console import one_line, write_result
from .runner_state import add_state_argument

NOT_PAUSED = "not-paused"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = "Exit codes: 0 if approvals are not paused any more; 2 for bad usage."


def run(args: argparse.Namespace) -> int:
    """End the pause, if there is one."""
    clocks, directory = Clocks(), directory_of(args)
    now = clocks.wall()
    found = pause.read_pause(directory)
    if found is None or not found.is_active(now):
        result = NOT_PAUSED
    else:
        by = requesting_user(os.environ)
        ended = found._replace(ended_by=by)
        if found.problem is not None:  # a file that can be read takes the place of the one that cannot
            ended = Pause(f"pause-{os.urandom(4).hex()}", by, "its file could not be read", now, now + 1.0, by)
        hand_over(directory, ended)
        result = confirmation(directory, None, clocks)
    ended_pause = as_json(found) if found is not None and result != NOT_PAUSED else None
    content = {"state": directory, "result": result, "pause": ended_pause}
    console = write_result(args.json, "resume", content)
    if result == NOT_PAUSED:
        console.line("Approvals are not paused: nothing to end.")
        return 0
    console.result("resumed", "the policies decide about approvals again.", "green")
    if found is not None:
        console.line(one_line(f"It was: {found.describe()}"))
    if result == UNCONFIRMED:
        console.line("The runner has not taken it up yet. It will in its next cycle.")
    return 0
