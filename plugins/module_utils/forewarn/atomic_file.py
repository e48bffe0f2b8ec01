# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces files whole or not at all: a runner, a VM or an editor may read them at any moment."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import InputError
from .system.files import replace


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file durably, and put it in place at once. Raises InputError.

    A link stays one, and a device or a pipe is written to directly. ``mode`` are its permissions; without them it keeps
    its own, and a new file has those that the umask gives it.
    """
    temporary: Path | None = None
    try:
        path = Path(os.path.realpath(path))
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=str(path.parent))
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_mode_of(path) if mode is None else mode)
        replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _mode_of(path: Path) -> int:
    """Return a file's permissions, or those of a new file: a runner trusts none that others may write to."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o644 & ~mask
