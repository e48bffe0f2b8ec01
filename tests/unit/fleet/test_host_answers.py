# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host reports nothing: one sentence, the cause first, and the same for all hosts with the same cause."""

from __future__ import annotations

import pytest
from forewarn.fleet.host_answers import no_connection, no_report, one_line

MISSING = "no runner: /usr/local/bin/forewarn is not installed on this host"
SUDO = "\x1b[1;31msudo: a password is required\x1b[0m\r\n"
TRACEBACK = 'Traceback (most recent call last):\r\n  File "x.py", line 1\r\nOSError: [Errno 5] Input/output error\r\n'


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.9 port 22: No route to host\r\n",
            "not reached: No route to host (ssh, port 22)",
        ),
        (
            'Data could not be sent to remote host "10.0.0.7". Make sure this host can be reached over ssh: '
            "ssh: connect to host 10.0.0.7 port 2222: Connection timed out\r",
            "not reached: Connection timed out (ssh, port 2222)",
        ),
        (
            "Failed to connect to the host via ssh: ssh: Could not resolve hostname web_9: Name or service not known",
            "not reached: Could not resolve hostname: Name or service not known",
        ),
        (
            "root@10.0.0.1: Permission denied (publickey).\nmore",
            "not reached: root@10.0.0.1: Permission denied (publickey).",
        ),
        ("", "not reached: no reason given"),
    ],
)
def test_a_host_that_is_not_reached(message: str, sentence: str) -> None:
    assert no_connection(message) == sentence


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "sentence"),
    [
        (127, "/bin/sh: 1: /usr/local/bin/forewarn: not found\r\n", "", MISSING),
        (127, "", "bash: line 1: /usr/local/bin/forewarn: No such file or directory", MISSING),
        (1, "sudo: /usr/local/bin/forewarn: command not found\r\n", "", MISSING),
        (127, "/bin/sh: 1: sudo: not found\r\n", "", "no status: /bin/sh: 1: sudo: not found"),
        (127, "", "", MISSING),
        (1, SUDO, "", "no status: sudo: a password is required"),
        (1, "", TRACEBACK, "no status: OSError: [Errno 5] Input/output error"),
        (0, "", "", "no status: forewarn wrote nothing, and ended with exit code 0"),
        (2, "", "forewarn: /var/lib/forewarn: no runner", "no status: forewarn: /var/lib/forewarn: no runner"),
    ],
)
def test_a_host_without_a_report(code: int, stdout: str, stderr: str, sentence: str) -> None:
    assert no_report(code, stdout, stderr) == sentence


def test_what_the_become_method_wrote_is_the_cause() -> None:
    """As the connection local of ansible-core 2.19 reports it."""
    message = "Premature end of stream waiting for become success.\n>>> Standard Error\nsudo: unknown user x\n"
    assert one_line(message) == "sudo: unknown user x"


def test_a_sentence_stays_short() -> None:
    assert len(one_line("x" * 10_000 + "\nmore")) <= 300
    assert one_line("\n \n") == ""
