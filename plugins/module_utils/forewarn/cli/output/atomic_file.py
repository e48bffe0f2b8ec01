# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces files: whole or not at all, since a runner or an editor may read them at any moment."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ...errors import InputError


def replace_file(path: Path, content: str) -> None:
    """Write a file whole or not at all; a link stays one, and permissions stay. Raises InputError.

    A device or a pipe is written to directly.
    """
    temporary: str | None = None
    try:
        path = Path(os.path.realpath(path))  # a link stays one
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as stream:
                stream.write(content)
            return
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(_mode_of(path))
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _mode_of(path: Path) -> int:
    """Return a file's permissions, or those that the umask gives a new file.

    A runner trusts no file that others may write to.
    """
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o644 & ~mask
