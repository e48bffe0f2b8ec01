# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs programs on the control node."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError

_PATIENCE_SECONDS = 600


def run(command: Sequence[str], directory: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program without input, and return how it ended. Raises InputError if it does not start or end."""
    try:
        # pylint: disable-next=ansible-bad-function # the control node, not a module that has run_command
        return subprocess.run(  # noqa: S603 - no shell, and the programs are ours and git
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{command[0]} on the control node: {error}.") from error


def said(process: subprocess.CompletedProcess[str]) -> str:
    """Return what a program has written, errors first."""
    return (process.stderr.strip() + "\n" + process.stdout.strip()).strip() or f"exit code {process.returncode}"
