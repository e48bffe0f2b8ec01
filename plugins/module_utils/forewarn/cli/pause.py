# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn pause``: for a while, this VM approves nothing. See docs/operations.md, "Pausing approvals"."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress

from ..errors import InputError
from ..policy import pause
from ..policy.functions.timevalues import SECOND, parse_duration
from ..policy.pause import Pause
from ..runner.clocks import Clocks
from ..runner.hooks.recovery_requests import requesting_user
from ..runner.operator_pause import FACT
from ..runner.state import directories
from ..runner.state.inbox import Inbox
from ..runner.telemetry import heartbeat
from ..texts import duration_text, exact_text
from .output.console import Console, one_line, write_json
from .output.page import iso
from .runner_state import add_state_argument, command_text, object_of, state_directory

# How long to wait for a running runner: it looks at least once an interval, but not while an approval is under way.
PATIENCE_SECONDS = 20.0
_PAUSE_SECONDS = 0.05

CONFIRMED, NO_RUNNER, UNCONFIRMED = "confirmed", "no-runner", "unconfirmed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for", dest="seconds", type=_seconds, required=True, metavar="TIME", help="how long, such as 2h or 1h30m"
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
    clocks, directory = Clocks(), directory_of(args)
    now = clocks.wall()
    begun = Pause(
        f"pause-{os.urandom(4).hex()}",
        requesting_user(os.environ),
        args.reason.strip(),
        now,
        round(now + args.seconds, 3),
    )
    pause.check(begun)
    before = pause.look(directory)
    hand_over(directory, begun)
    result = wait(directory, begun.identifier, clocks)
    replaced = before is not None and before.lasts(now)
    if args.json:
        content = {"state": directory, "result": result, "pause": as_json(begun), "replaced": replaced}
        write_json("pause", content)
        return 1 if result == UNCONFIRMED else 0
    console = Console(sys.stdout)
    until = f"until {iso(begun.until)} ({duration_text(args.seconds)})"
    if result == UNCONFIRMED:
        waited = exact_text(PATIENCE_SECONDS)
        said = f" {until}: the runner has not confirmed it within {waited}. An approval may be under way."
        console.line(console.style("not confirmed:", "bold", "red") + said)
    elif result == NO_RUNNER:
        console.line(console.style("paused:", "yellow") + f" {until}. No runner works now: it holds when one starts.")
    else:
        console.line(console.style("paused:", "green") + f" {until}. This VM approves nothing; its hooks go on.")
    if replaced and before is not None:
        console.line(one_line(f"It replaces an earlier one: {before.in_words()}"))
    console.line(one_line(f"End it:  {command_text('resume', args)}"))
    return 1 if result == UNCONFIRMED else 0


def directory_of(args: argparse.Namespace) -> str:
    """Return the state directory: the live runner's unless a dry run's is asked for. Raises InputError."""
    given = args.state or (None if args.dry_run else directories.default(os.environ, os.getuid()))
    return state_directory(given, args.dry_run)


def hand_over(directory: str, changed: Pause) -> None:
    """Replace the latest pause of a state directory. Raises InputError."""
    inbox = Inbox(directory, pause.DIRECTORY, "pause")
    inbox.make()
    inbox.write(pause.FILE_NAME, pause.encoded(changed))


def wait(directory: str, identifier: str | None, clocks: Clocks) -> str:
    """Wait until the runner reports this pause, or with None no pause any more; return one of the results above."""
    state, elsewhere = directories.StateDirectory(directory), directories.in_memory(os.environ, os.getuid())
    end = clocks.monotonic() + PATIENCE_SECONDS
    while True:
        used = state.in_use()  # before the look: a runner that starts later finds the file as it is now
        beat = heartbeat.read(directory, elsewhere)
        reported = object_of(beat.fields if beat is not None else {}, FACT)
        if not used:
            return NO_RUNNER
        known = beat is not None and FACT in beat.fields and beat.stamp.boot_id == clocks.boot_id
        if known and reported.get("identifier") == identifier:
            return CONFIRMED
        if clocks.monotonic() >= end:
            return UNCONFIRMED
        time.sleep(_PAUSE_SECONDS)  # for another process: it answers with its heartbeat


def as_json(found: Pause) -> dict[str, object]:
    """Return a pause for programs, with times in ISO 8601."""
    return {
        "id": found.identifier or None,
        "by": found.by or None,
        "reason": found.reason or None,
        "began_at": iso(found.began) if found.problem is None else None,
        "until": iso(found.until) if found.problem is None else None,
        "problem": found.problem,
        "text": found.in_words(),
    }


def refuse_if_paused() -> None:
    """Raise InputError while approvals are paused on this VM, or if this user cannot tell."""
    own = ""
    with suppress(InputError):  # without a home there is no runner of one's own
        own = directories.default(os.environ, os.getuid())
    for directory in sorted({own or pause.SERVICE_STATE, pause.SERVICE_STATE}):
        found = pause.look(directory)
        if found is not None and found.lasts(Clocks().wall()):
            raise InputError(
                f"{found.in_words()}. Nothing was approved.",
                "End it with forewarn resume, or approve in spite of it: --despite-pause.",
            )


def _seconds(text: str) -> float:
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time")
    return value / SECOND
