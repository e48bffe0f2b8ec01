# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what tests of hooks have measured, for the table of docs/hooks: a line of JSON for each case."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def record(kind: str, case: str, values: Mapping[str, float | int | str]) -> None:
    """Append what was measured to KIND.jsonl in the directory FOREWARN_FIGURES; without one, nothing."""
    directory = os.environ.get("FOREWARN_FIGURES")
    if directory:
        path = Path(directory, f"{kind}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "case": case, **values}) + "\n")
