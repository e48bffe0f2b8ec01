# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are run to their end, or ended with all that they have started."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from .children.job import CREATE_SUSPENDED, Job


def run_program(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], seconds: float, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program with ``given`` to read, and return its result. Raises OSError, or subprocess.TimeoutExpired."""
    with closing(Job()) as job:
        # pylint: disable-next=ansible-bad-function # no module, which would have run_command
        process = subprocess.Popen(  # noqa: S603 - no shell
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=subprocess.CREATE_NO_WINDOW | CREATE_SUSPENDED,
        )
        with process:
            try:
                job.begin(process.pid)
                output, errors = process.communicate(given, timeout=seconds)
            finally:
                if process.poll() is None:
                    process.kill()  # as long as it is in no job
                    job.terminate(1)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
