# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay out a checkout as an installed collection. Usage: ``link_collection.py DIRECTORY``.

Ansible wants ``ansible_collections/forewarn/azure/`` to be a real directory (one link for all of it is resolved away),
so every entry of the repository's root gets a link of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def link_collection(directory: Path) -> Path:
    """Make or renew ``ansible_collections/forewarn/azure`` below a directory, and return the directory."""
    collection = directory / "ansible_collections" / "forewarn" / "azure"
    collection.mkdir(parents=True, exist_ok=True)
    for link in collection.iterdir():
        link.unlink()
    for entry in REPOSITORY.iterdir():
        if not entry.name.startswith("."):
            (collection / entry.name).symlink_to(entry)
    return directory


if __name__ == "__main__":
    link_collection(Path(sys.argv[1]))
