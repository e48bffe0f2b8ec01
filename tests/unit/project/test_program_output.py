# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How tests wait for a program under Wine, tried with a shell: for its end, and its input is written whole."""

from __future__ import annotations

import os
import subprocess

import pytest
from tools.sites.wine import communicate

UNREAD = b"unread" * 300_000  # more than a pipe holds


def start(script: str, *pass_fds: int) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["bash", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=pass_fds)


def test_open_pipe_of_an_ended_program_is_left() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb"), os.fdopen(reading, "rb"):
        with start(f"cat; echo no >&2; cat <&{reading} >/dev/null & exit 3", reading) as process:
            assert communicate(process, b"said\n", 20) == (b"said\n", b"no\n")
        assert process.returncode == 3


def test_slow_reader_gets_its_whole_input() -> None:
    with start("sleep 1.5; cat") as process:  # longer than the pipe of an ended program may stay open
        assert communicate(process, UNREAD, 20) == (UNREAD, b"")


def test_program_may_leave_its_input_unread() -> None:
    with start("exit 4") as process:
        assert communicate(process, UNREAD, 20) == (b"", b"")
    assert process.returncode == 4


def test_program_that_does_not_end_is_killed() -> None:
    with start("exec sleep 90") as process, pytest.raises(subprocess.TimeoutExpired):
        communicate(process, UNREAD, 0.1)
    assert process.returncode == -9
