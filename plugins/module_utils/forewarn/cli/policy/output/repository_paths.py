# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as the annotations of code hosts name them: relative to the repository, wherever the command was started."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


def repository_of(path: Path) -> Path:
    """Return the root of the git repository that a file or directory, which need not exist, is in.

    Without one, the working directory if it is below that, else the directory that it is in.
    """
    whole = Path(os.path.normpath(path.absolute()))
    found = next((each for each in (whole, *whole.parents) if (each / ".git").exists()), None)
    if found is not None:
        return found
    here = Path.cwd()
    return here if here in (whole, *whole.parents) else whole.parent


def in_repository(path: Path) -> Path | None:
    """Return a file's path from the root of the git repository that the working directory is in, None if outside it.

    Without a repository, the working directory takes its place.
    """
    try:
        root = repository_of(Path.cwd())
    except OSError:  # the working directory is gone
        return None
    try:
        return Path(os.path.normpath(path.absolute())).relative_to(root)
    except ValueError:
        return None


def uri_of(path: Path) -> str:
    """Return the relative URI of a file in the repository, the whole one of any other."""
    inside = in_repository(path)
    return path.absolute().as_uri() if inside is None else quote(os.fsencode(inside.as_posix()))
