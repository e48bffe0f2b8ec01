# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an analysis for a command: with its progress on a terminal, and without a claim if it contradicts itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...analysis.proof import AnalysisError, Progress
from ...errors import ForewarnError
from ..output.progress_line import ProgressLine
from .defect_report import write_report

_ISSUES = "https://github.com/forewarn/forewarn.azure/issues"


def analysed(work: Callable[[Progress], Any], **asked: Any) -> Any:
    """Return the result of ``work``; a defect in the analysis becomes an error with a report, never a finding.

    ``asked`` are expressions that the user asked about, as data for JSON.
    """
    line = ProgressLine(sys.stderr)
    try:
        return work(lambda what, done, total: line.show(lambda: _sentence(what, done, total)))
    except AnalysisError as error:
        path = write_report(error, asked)
        hint = "Please report it with the policies." if path is None else _what_to_do(path)
        defect = ForewarnError(f"internal error: {error}", f"Nothing was proven. {hint}")
        defect.exit_code = 70  # in forewarn, not in its input
        raise defect from error
    finally:
        line.clear()


def _what_to_do(path: Path) -> str:
    return (
        f"{path} has all that it takes to repeat this: the policies as compiled, values given for parameters, an event "
        "that was made up, and versions of packages; no events or credentials of this machine. Please read it, then "
        f"attach it to an issue at {_ISSUES}"
    )


def _sentence(what: str, done: int, total: int) -> str:
    count = f"{done} of {total} " if total else f"{done} " if done else ""
    return f"proving: {count}{what}"
