# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on what a command is waiting for: the first answer of the service can take two minutes (SE-05)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ...imds.client import Client
from ...system.signals import block_signals
from ...texts import duration_text
from .console import Console

FIRST_NOTE_SECONDS = 5.0
NEXT_NOTE_SECONDS = 30.0
WHY = (
    "The first request in a day switches Scheduled Events on for the deployment, which may take two minutes; events "
    "may then take up to five minutes to appear."
)


@contextmanager
def waiting(
    client: Client, console: Console, first: float = FIRST_NOTE_SECONDS, following: float = NEXT_NOTE_SECONDS
) -> Iterator[None]:
    """Note what the command waits for until the client has an answer to a read.

    The first note comes after ``first`` seconds, then one every ``following`` seconds. ``console`` is standard error.
    """
    over = threading.Event()
    begun = time.monotonic()

    def report() -> None:
        # Signals are for the main thread: its system calls have to be interrupted.
        block_signals()
        pause, why = first, f" {WHY}"
        while not over.wait(pause) and not client.answered:
            _note(
                console, f"waiting for {client.endpoint.url}, for {duration_text(time.monotonic() - begun)} now.{why}"
            )
            pause, why = following, ""

    thread = threading.Thread(target=report, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def slow_start(console: Console, clock: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """Return a function to call once the service has answered that nothing is scheduled.

    If the answer was slow, the function notes that events may follow.
    """
    begun = clock()

    def answered() -> None:
        if (took := clock() - begun) >= FIRST_NOTE_SECONDS:
            _note(console, f"the answer took {duration_text(took)}. {WHY} Ask again then.")

    return answered


def _note(console: Console, text: str) -> None:
    with suppress(OSError, ValueError):  # the reader is gone, or the stream is closed
        console.note(text)
        console.stream.flush()
