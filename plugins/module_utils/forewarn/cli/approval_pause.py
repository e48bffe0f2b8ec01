# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator's pause of approvals, as commands hand it to the runner and show it (docs/operations.md)."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

from ..errors import InputError
from ..policy import pause
from ..policy.pause import Pause
from ..runner.clocks import Clocks
from ..runner.operator_pause import FACT
from ..runner.state import directories
from ..runner.state.inbox import Inbox
from ..runner.telemetry import heartbeat
from ..system import paths
from .output.page import iso
from .runner_state import object_of, poll, state_directory

# How long to wait for a running runner: it looks at least once an interval, but not while an approval is under way.
PATIENCE_SECONDS = 20.0

CONFIRMED, NO_RUNNER, UNCONFIRMED = "confirmed", "no-runner", "unconfirmed"


def directory_of(args: argparse.Namespace) -> str:
    """Return the state directory: the live runner's unless a dry run's is asked for. Raises InputError."""
    given = args.state or (None if args.dry_run else paths.state_directory(os.environ))
    return state_directory(given, args.dry_run)


def hand_over(directory: str, changed: Pause) -> None:
    """Replace the latest pause of a state directory. Raises InputError."""
    inbox = Inbox(directory, pause.DIRECTORY, "pause")
    inbox.create()
    inbox.write(pause.FILE_NAME, pause.encode_pause(changed))


def confirmation(directory: str, identifier: str | None, clocks: Clocks) -> str:
    """Wait until the runner reports this pause, or with None no pause any more; return one of the words above."""
    state, elsewhere = directories.StateDirectory(directory), paths.memory_directory(os.environ)

    def answer() -> str | None:
        used = state.in_use()  # before the heartbeat: a runner that starts later finds the file as it is now
        beat = heartbeat.read(directory, elsewhere)
        if not used:
            return NO_RUNNER
        if beat is None or FACT not in beat.fields or beat.stamp.boot_id != clocks.boot_id:
            return None
        return CONFIRMED if object_of(beat.fields, FACT).get("identifier") == identifier else None

    return poll(answer, PATIENCE_SECONDS, clocks) or UNCONFIRMED


def as_json(found: Pause) -> dict[str, object]:
    """Return a pause for programs, with times in ISO 8601."""
    return {
        "id": found.identifier or None,
        "by": found.by or None,
        "reason": found.reason or None,
        "began_at": iso(found.began) if found.problem is None else None,
        "until": iso(found.until) if found.problem is None else None,
        "problem": found.problem,
        "text": found.describe(),
    }


def refuse_if_paused() -> None:
    """Raise InputError while approvals are paused on this VM, or if this user cannot tell."""
    own = ""
    with suppress(InputError):  # without a home there is no runner of one's own
        own = paths.state_directory(os.environ)
    for directory in sorted({own or paths.SERVICE_STATE, paths.SERVICE_STATE}):
        found = pause.read_pause(directory)
        if found is not None and found.is_active(Clocks().wall()):
            raise InputError(
                f"{found.describe()}. Nothing was approved.",
                "End it with forewarn resume, or approve in spite of it: --despite-pause.",
            )
