# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a program is started on Windows, with its command line: CreateProcess starts .exe files alone."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from ...common.windows_program import cmd_argument_problem, is_batch, quote_cmd_word

# No AutoRun of the registry, extensions on, no !NAME!, and the quotes around all the rest taken away.
_CMD_OPTIONS = "/d /e:on /v:off /s /c"
_POWERSHELL_OPTIONS = ("-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File")


def is_script(program: str) -> bool:
    """Return whether another program reads a file: cmd.exe or PowerShell."""
    return is_batch(program) or program.lower().endswith(".ps1")


def command_line(argv: Sequence[str], system_root: str) -> tuple[str, str]:
    """Return the path of the .exe to start, and the command line that gives it these words.

    Raises ValueError for a word that cmd.exe would take for something else.
    """
    program = argv[0]
    if is_batch(program):
        for word in argv[1:]:
            problem = cmd_argument_problem(word)
            if problem is not None:
                raise ValueError(f"the argument {word} {problem}")
        words = " ".join((f'"{program}"', *map(quote_cmd_word, argv[1:])))
        interpreter = rf"{system_root}\System32\cmd.exe"
        return interpreter, f'"{interpreter}" {_CMD_OPTIONS} "{words}"'
    if program.lower().endswith(".ps1"):
        interpreter = rf"{system_root}\System32\WindowsPowerShell\v1.0\powershell.exe"
        return interpreter, subprocess.list2cmdline((interpreter, *_POWERSHELL_OPTIONS, *argv))
    return program, subprocess.list2cmdline(argv)
