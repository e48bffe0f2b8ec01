# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what tests/lab/hooks/test_hook_*.py have measured into docs/hooks/README.md: make figures."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from forewarn import hook_kinds

from .hook_kinds import PAGES

_ROWS = re.compile(r"(<!-- figures: .* -->\n)(?:.*\n)*?(<!-- end of figures -->)")
_NOT_SHOWN = ("kind", "case", "suite", "failed_get", "failed_post")  # the latter two are parts of "failed"


def table(directory: Path) -> str:
    """Return the rows of a directory of figures: KIND.jsonl, as lab.figures writes them."""
    rows = ["| Kind | Case | Measured |", "| --- | --- | --- |"]
    for name in hook_kinds.NAMES:
        path = directory / f"{name}.jsonl"
        cases: dict[str, list[dict[str, Any]]] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            found = json.loads(line)
            cases.setdefault(found["case"], []).append(found)
        rows += [f"| {name} | {case} | {_measured(runs)} |" for case, runs in cases.items()]
    return "\n".join(rows)


def _measured(runs: list[dict[str, Any]]) -> str:
    """Return what one case measured; of several runs, from the least to the most."""
    return ", ".join(
        f"{key.replace('_', ' ')} {_values([run[key] for run in runs if key in run])}"
        for key in runs[0]
        if key not in _NOT_SHOWN
    )


def _values(values: list[Any]) -> str:
    if all(isinstance(value, (int, float)) for value in values):
        low, high = min(values), max(values)
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return " or ".join(dict.fromkeys(map(str, values)))


def main() -> None:
    """Write them."""
    page = PAGES / "README.md"
    rows = table(Path(sys.argv[1]))
    page.write_text(
        _ROWS.sub(lambda match: f"{match[1]}{rows}\n{match[2]}", page.read_text(encoding="utf-8")), encoding="utf-8"
    )
    sys.stdout.write(f"{rows}\n{page} written\n")


if __name__ == "__main__":
    main()
