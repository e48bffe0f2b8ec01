# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay out a checkout as an installed collection. Usage: ``link_collection.py DIRECTORY``.

Ansible wants ``ansible_collections/forewarn/azure/`` to be a real directory (one link for all of it is resolved away),
so every entry of the repository's root gets a link of its own.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def link_collection(directory: Path) -> Path:
    """Make or renew ``ansible_collections/forewarn/azure`` below a directory, and return the directory.

    Links that are right stay: another check may be using them.
    """
    collection = directory / "ansible_collections" / "forewarn" / "azure"
    collection.mkdir(parents=True, exist_ok=True)
    entries = {entry.name: entry for entry in REPOSITORY.iterdir() if not entry.name.startswith(".")}
    for link in collection.iterdir():
        if link.name not in entries or link.readlink() != entries[link.name]:
            link.unlink(missing_ok=True)
    for name, entry in entries.items():
        with suppress(FileExistsError):
            (collection / name).symlink_to(entry)
    return directory


if __name__ == "__main__":
    link_collection(Path(sys.argv[1]))
