# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory of a dry run, which is never a live runner's.

After a dry run there is nothing for a live runner to recover, and what a live runner has prepared, a dry run would not
recover. So neither starts on the other's directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import InputError
from ...system.files import open_to_write
from ..journal.schema import FILE_NAME as JOURNAL
from ..telemetry.heartbeat import FILE_NAME as HEARTBEAT

SUBDIRECTORY = "dry-run"  # of the live runner's state directory: the default for a dry run
MARK = "mode"
_CONTENT = b"dry-run\n"


def directory_beside(live: str) -> str:
    """Return the state directory of the dry run that belongs to a live runner's."""
    return str(Path(live, SUBDIRECTORY))


def is_marked(directory: str) -> bool:
    """Return whether a state directory belongs to a dry run."""
    return os.path.lexists(Path(directory, MARK))


def check(directory: str, dry_run: bool) -> None:
    """Raise InputError if a runner of the other mode has worked in a state directory, which may be missing."""
    marked = is_marked(directory)
    if marked and not dry_run:
        raise InputError(
            f"state directory {directory} is that of a dry run: what is kept there was never done.",
            "Name another with --state, or leave it out.",
        )
    if dry_run and not marked and any(os.path.lexists(Path(directory, name)) for name in (JOURNAL, HEARTBEAT)):
        raise InputError(
            f"state directory {directory} is that of a live runner: a dry run would recover nothing that it prepared.",
            f"Name another with --state, or leave it out: then a dry run has one of its own, {SUBDIRECTORY}.",
        )


def claim(directory: str, dry_run: bool) -> None:
    """Make sure that a locked state directory is one of this mode, and mark it for a dry run.

    Raises InputError if ``check`` does, or if it cannot be marked.
    """
    check(directory, dry_run)
    if not dry_run or is_marked(directory):
        return
    try:
        with os.fdopen(open_to_write(Path(directory, MARK), exclusive=True), "wb", buffering=0) as file:
            file.write(_CONTENT)
            os.fsync(file)
    except OSError as error:
        raise InputError(
            f"state directory {directory} cannot be marked as that of a dry run: {error.strerror}.",
            "Name another with --state.",
        ) from error
