# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an analysis for a command: with its progress on a terminal, and without a claim if it contradicts itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..analysis.progress import Progress
from ..analysis.proof import AnalysisError
from ..errors import ForewarnError
from .progress_line import ProgressLine


def analysed(work: Callable[[Progress], Any]) -> Any:
    """Return the result of ``work``; a defect in the analysis becomes an error, never a finding."""
    line = ProgressLine(sys.stderr)
    try:
        return work(lambda what, done, total: line.show(lambda: _sentence(what, done, total)))
    except AnalysisError as error:
        defect = ForewarnError(f"internal error: {error}", "Please report it with the policies; nothing was proven.")
        defect.exit_code = 70  # in forewarn, not in its input
        raise defect from error
    finally:
        line.clear()


def _sentence(what: str, done: int, total: int) -> str:
    count = f"{done} of {total} " if total else f"{done} " if done else ""
    return f"proving: {count}{what}"
