# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an analysis for a command: with its progress on a terminal, and without a claim if it contradicts itself."""

from __future__ import annotations

import itertools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from ... import __version__
from ...analysis.proof import AnalysisError, Progress
from ...system.files import open_to_write
from .common import defect
from .output.progress_line import ProgressLine

_PACKAGES = ("z3-solver", "cel-python")  # whose versions matter
_ISSUES = "https://github.com/forewarn/forewarn.azure/issues"


def analysed(work: Callable[[Progress], Any], **asked: Any) -> Any:
    """Return the result of ``work``; a defect in the analysis becomes an error with a report, never a finding.

    ``asked`` are expressions that the user asked about, as data for JSON.
    """
    line = ProgressLine(sys.stderr)
    try:
        return work(lambda what, done, total: line.show(lambda: _sentence(what, done, total)))
    except AnalysisError as error:
        path = _write_report(error, asked)
        hint = "Please report it with the policies." if path is None else _what_to_do(path)
        raise defect(str(error), f"Nothing was proven. {hint}") from error
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


def _write_report(error: AnalysisError, asked: Mapping[str, Any]) -> Path | None:
    """Write a new file in the current directory, or else in that for temporary files; return None if neither works.

    ``asked`` are the expressions that the user asked about, as data for JSON.
    """
    report = {
        "forewarn": {"schema": "defect-report", "version": 1},
        "message": str(error),
        "versions": _versions(),
        "asked": dict(asked),
        **error.details,
    }
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    name = f"forewarn-defect-{stamp}"
    with suppress(OSError):
        return _write_file(Path.cwd(), name, text)
    with suppress(OSError):
        return _write_file(Path(tempfile.gettempdir()), name, text)
    return None


def _write_file(directory: Path, name: str, text: str) -> Path:
    """Write a file that did not exist, for its owner only. Raises OSError."""
    for number in itertools.count(1):
        path = directory / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            opened = open_to_write(path, exclusive=True)
        except FileExistsError:
            continue
        with os.fdopen(opened, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    raise AssertionError


def _versions() -> dict[str, str | None]:
    own = {"forewarn": __version__, "python": platform.python_version(), "platform": platform.platform()}
    return {**own, **{package: _version(package) for package in _PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
