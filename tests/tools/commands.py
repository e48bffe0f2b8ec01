# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn`` as people run it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forewarn.cli.main import main

FOREWARN = [sys.executable, "-m", "forewarn.cli.main"]


def forewarn(
    *arguments: object, cwd: Path | None = None, stdin: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; ``environ`` is added to the environment."""
    return subprocess.run(
        [*FOREWARN, *map(str, arguments)],
        env={**os.environ, **environ},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def in_process(
    *arguments: object, cwd: Path | None = None, stdin: str | bytes = "", terminal: bool = False, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Do as ``forewarn`` does, in this process: another would take most of the time. ``terminal``: stderr is one."""
    command = [str(argument) for argument in arguments]
    output, problems = io.StringIO(), io.StringIO()
    problems.isatty = lambda: terminal  # type: ignore[method-assign]  # as a terminal would
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd or Path.cwd())
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)))
        for name, value in environ.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(problems):
            try:
                code = main(command)
            except SystemExit as end:  # argparse
                code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, output.getvalue(), problems.getvalue())
