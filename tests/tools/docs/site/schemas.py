# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the JSON Schemas of policies and tests where their $id says that they are, on the site: schemas.py DIRECTORY.

The addresses are promises: files of users name them. A schema that no longer accepts what it did gets another number.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SITE = "https://forewarn.github.io/forewarn.azure/"
REPOSITORY = Path(__file__).resolve().parents[4]
COMPILER = REPOSITORY / "plugins" / "module_utils" / "forewarn" / "compiler"


def publish(site: Path) -> list[Path]:
    """Copy the schemas into the directory of a site; return the files."""
    published = []
    for schema in sorted(COMPILER.glob("*.schema.json")):
        text = schema.read_text(encoding="utf-8")
        address = json.loads(text)["$id"]
        if not address.startswith(SITE):
            raise ValueError(f"{schema.name}: $id is {address}, which is not below {SITE}")
        path = site / address[len(SITE) :]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        published.append(path)
    return published


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
