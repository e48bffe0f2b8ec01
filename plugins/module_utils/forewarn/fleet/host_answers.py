# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host of a fleet has answered, or why it reports nothing: one sentence, the cause first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from ..errors import InputError

PROGRAM = "/usr/local/bin/forewarn"
WINDOWS_PROGRAM = r"C:\Program Files\Forewarn\forewarn.cmd"

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SSH = re.compile(r"ssh: connect to host \S+ port (\d+): (.+)")
_NAME = re.compile(r"ssh: (Could not resolve hostname) \S+: (.+)")
_MISSING = re.compile(re.escape(PROGRAM) + r".*(?:No such file or directory|not found)", re.IGNORECASE)
# What cmd.exe, which reads forewarn.cmd, takes for something else than a letter of a word.
_NOT_FOR_CMD = re.compile(r'["%&|<>^!\x00-\x1f]|\\$')
_QUOTED = ">>> Standard Error\n"
_LONGEST = 300


def json_in(stdout: str) -> tuple[str | None, str]:
    """Return the JSON object in an output, or None, and what follows it.

    On a pseudo-terminal, warnings of a shell can be before it.
    """
    begin = 0 if stdout.startswith("{") else stdout.find("\n{") + 1
    try:
        found, end = json.JSONDecoder().raw_decode(stdout, begin)
    except (ValueError, RecursionError):
        return None, stdout
    return (stdout[begin:end], stdout[end:]) if isinstance(found, dict) else (None, stdout)


def check_for_cmd(arguments: Iterable[str]) -> None:
    """Raise InputError for an argument that cmd.exe, which reads forewarn.cmd, would not hand over as it is."""
    for argument in arguments:
        found = _NOT_FOR_CMD.search(argument)
        if found:
            raise InputError(
                f"{argument!r} cannot be handed over to forewarn.cmd on Windows, because of {found[0]!r}.",
                "Write it without double quotes, control characters, any of % & | < > ^ !, and a backslash at its end.",
            )


def no_connection(message: str) -> str:
    """Return the sentence for a host that Ansible could not reach; ``message`` is Ansible's.

    It does not name the host, so that many hosts with the same cause have the same sentence.
    """
    text = _clean(message)
    match = _SSH.search(text)
    if match:
        return f"not reached: {match[2].strip()} (ssh, port {match[1]})"
    match = _NAME.search(text)
    if match:
        return f"not reached: {match[1]}: {match[2].strip()}"
    return f"not reached: {_cause(text) or 'no reason given'}"


def no_report(code: int, stdout: str, stderr: str, program: str = PROGRAM) -> str:
    """Return the sentence for a host whose ``forewarn status --json`` ended with ``code`` and wrote no report."""
    said = _clean(f"{stderr}\n{stdout}")  # on a pseudo-terminal both are in stdout
    if _MISSING.search(said) or (code == 127 and not said.strip()):
        return f"no runner: {program} is not installed on this host"
    return f"no status: {_cause(said) or f'forewarn wrote nothing, and ended with exit code {code}'}"


def one_line(message: object) -> str:
    """Return the cause in a message of Ansible, on one line and not longer than some lines of a terminal."""
    return _cause(_clean(message))


def lines(message: object) -> list[str]:
    """Return the lines of a message of Ansible that are not empty, without escapes and none too long."""
    return [_short(line) for line in _clean(message).split("\n") if line.strip()]


def _clean(text: object) -> str:
    return _ESCAPE.sub("", str(text)).replace("\r\n", "\n").replace("\r", "\n")


def _cause(text: str) -> str:
    """Return the line with the cause: the first, but of a Python traceback the last; "" if there is none.

    Of a message that quotes what a become method wrote, it is the first line of that.
    """
    found = lines(text.rpartition(_QUOTED)[2]) or lines(text)
    if not found:
        return ""
    return (found[-1] if any("Traceback (" in line for line in found) else found[0]).strip()


def _short(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]} …"
