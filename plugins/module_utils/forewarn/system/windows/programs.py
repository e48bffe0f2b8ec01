# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hooks find programs on Windows, and what every one of them is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..common.windows_program import SUFFIXES, cmd_argument_problem, is_batch, program_problem

TARGET = "windows"  # what forewarn policy check --target calls this system
SYSTEM_ROOT = os.environ.get("SYSTEMROOT", r"C:\Windows")
# The whole search path: a hook does not get the runner's.
_SYSTEM = rf"{SYSTEM_ROOT}\System32"
SEARCH_PATH = ";".join((_SYSTEM, SYSTEM_ROOT, rf"{_SYSTEM}\WindowsPowerShell\v1.0", rf"{_SYSTEM}\OpenSSH"))
HOME_VARIABLE = "USERPROFILE"
# Of the machine and the account; many programs do not work without them.
_KEPT = (
    *("ALLUSERSPROFILE", "APPDATA", "CommonProgramFiles", "CommonProgramFiles(x86)", "COMPUTERNAME", "LOCALAPPDATA"),
    *("NUMBER_OF_PROCESSORS", "OS", "PROCESSOR_ARCHITECTURE", "ProgramData", "ProgramFiles", "ProgramFiles(x86)"),
    *("PUBLIC", "SystemDrive", "TEMP", "TMP", "USERDOMAIN", "USERNAME"),
)
BASE_ENVIRONMENT = {
    **{name: os.environ[name] for name in _KEPT if name in os.environ},
    "ComSpec": rf"{SYSTEM_ROOT}\System32\cmd.exe",
    "PATH": SEARCH_PATH,
    "PATHEXT": ".COM;.EXE;.BAT;.CMD",
    "SystemRoot": SYSTEM_ROOT,
    "windir": SYSTEM_ROOT,
}


def is_name(program: str) -> bool:
    """Return whether a program is named without a path."""
    return not any(character in program for character in "\\/:")


def find(name: str) -> str | None:
    """Return the path of the program with a name, or None if there is none in ``SEARCH_PATH``.

    Without a suffix, each of ``SUFFIXES`` is tried in each directory.
    """
    names = (name,) if name.lower().endswith(SUFFIXES) else tuple(f"{name}{suffix}" for suffix in SUFFIXES)
    paths = (rf"{directory}\{each}" for directory in SEARCH_PATH.split(";") for each in names)
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113 - as everywhere in the runner


def problem(program: str, arguments: Sequence[str]) -> str | None:
    """Return why the program at a path cannot be started with these arguments, or None."""
    found = program_problem(program)
    if found is not None:
        return f"the program {program} {found}"
    for word in arguments if is_batch(program) else ():
        found = cmd_argument_problem(word)
        if found is not None:
            return f"the argument {word} {found}"
    return None


def python() -> str:
    """Return the path of a Python for child processes, "" if it is unknown.

    A service runs as pythonw.exe, which has no standard output; python.exe is beside it.
    """
    directory, name = os.path.split(sys.executable)
    beside = os.path.join(directory, "python.exe")  # noqa: PTH118 - without pathlib, as everywhere in the runner
    return beside if name.lower() == "pythonw.exe" and os.path.isfile(beside) else sys.executable  # noqa: PTH113 - likewise
