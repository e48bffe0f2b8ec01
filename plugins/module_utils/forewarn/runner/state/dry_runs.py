# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory of a dry run, which is never a live runner's.

A dry run has prepared nothing, so a live runner would find nothing to recover in what it has kept; and where a live
runner has prepared, a dry run would recover nothing. So neither starts on the other's directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import InputError
from ..journal.schema import FILE_NAME as JOURNAL
from ..telemetry.heartbeat import FILE_NAME as HEARTBEAT

SUBDIRECTORY = "dry-run"  # of the live runner's state directory: where a dry run works unless another is named
MARK = "mode"
_CONTENT = b"dry-run\n"


def directory_beside(live: str) -> str:
    """Return the state directory of the dry run that belongs to a live runner's."""
    return str(Path(live, SUBDIRECTORY))


def is_marked(directory: str) -> bool:
    """Return whether a state directory is that of a dry run."""
    return os.path.lexists(_mark(directory))


def claim(directory: str, dry_run: bool) -> None:
    """Make sure that a locked state directory is one of this mode, and mark that of a dry run.

    Raises InputError if a runner of the other mode has worked there, or if it cannot be marked.
    """
    marked = is_marked(directory)
    if marked and not dry_run:
        raise InputError(
            f"state directory {directory} is that of a dry run: what is kept there was never done.",
            "Name another with --state, or leave it out.",
        )
    if not dry_run or marked:
        return
    used = (JOURNAL, HEARTBEAT)
    if any(os.path.lexists(Path(directory, name)) for name in used):
        raise InputError(
            f"state directory {directory} is that of a live runner: a dry run would recover nothing that it prepared.",
            f"Name another with --state, or leave it out: then a dry run has one of its own, {SUBDIRECTORY}.",
        )
    try:
        file = os.open(_mark(directory), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, _CONTENT)
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"state directory {directory} cannot be marked as that of a dry run: {error.strerror}.",
            "Name another with --state.",
        ) from error


def _mark(directory: str) -> Path:
    return Path(directory, MARK)
