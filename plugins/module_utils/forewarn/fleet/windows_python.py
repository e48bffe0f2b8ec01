# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python that runs the service on a VM with Windows: an installed one, or one that the control node brings.

The second is a zip file: python.org's embeddable distribution, which needs no installation.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from ..errors import InputError

_VARIABLE = "forewarn_windows_python"
_FORMS = (
    f"Set {_VARIABLE} to {{zip: PATH, sha256: DIGEST}}, a zip file of python.org's embeddable distribution on the "
    r"control node, or to the path of an installed Python on the VM, such as C:\Program Files\Python313\python.exe."
)
_LEAST = (3, 8)
_DLL = re.compile(r"python3(\d+)\.dll", re.IGNORECASE)
# The machine of an executable: Microsoft's "PE Format", IMAGE_FILE_MACHINE_. The values are PROCESSOR_ARCHITECTURE.
_MACHINES = {0x014C: "x86", 0x8664: "AMD64", 0xAA64: "ARM64"}
_INSTALLED = re.compile(r"[A-Za-z]:\\(?:[^\\/:*?\"<>|%]+\\)*python\.exe", re.IGNORECASE)
_DIGITS = 12  # of a digest, in a directory's name


def windows_python(given: object, find: Callable[[str], Path]) -> dict[str, str]:
    """Return what the variable names, checked as far as the control node can. ``find`` returns where a file is here.

    That is ``path`` of an installed Python, or ``zip``, its ``directory`` on a VM, ``version`` and ``architecture``.
    Raises InputError.
    """
    if not given:
        raise InputError(f"{_VARIABLE} is missing: Windows has no Python of its own.", _FORMS)
    if isinstance(given, str):
        return {"path": _installed(given)}
    if isinstance(given, Mapping) and given.keys() == {"path"}:
        return {"path": _installed(str(given["path"]))}
    if isinstance(given, Mapping) and given.keys() == {"zip", "sha256"}:
        return _embeddable(find(str(given["zip"])), str(given["sha256"]).lower())
    raise InputError(f"{_VARIABLE} has neither zip and sha256 nor a path.", _FORMS)


def _installed(path: str) -> str:
    if not _INSTALLED.fullmatch(path) or not path.isascii():
        raise InputError(
            f"{_VARIABLE} is {path!r}, which is not the full path of a python.exe in ASCII, without quotes and %.",
            r"The command forewarn.cmd has that path in it. Name it as C:\Program Files\Python313\python.exe is, or "
            r"install Python in such a directory.",
        )
    return path


def _embeddable(path: Path, digest: str) -> dict[str, str]:
    try:
        found = sha256(path.read_bytes()).hexdigest()
        if found != digest:
            raise InputError(
                f"{path} has the SHA-256 {found}, and {_VARIABLE} names {digest}.",
                "Compare both with the one that python.org shows for that file, and download it again if it differs.",
            )
        with zipfile.ZipFile(path) as archive:
            names = {name.lower(): name for name in archive.namelist()}
            if not {"python.exe", "pythonw.exe"} <= names.keys():
                raise _not_embeddable(path, "it has no python.exe and pythonw.exe at its top")
            program = archive.read(names["python.exe"])
    except (OSError, zipfile.BadZipFile) as error:
        raise _not_embeddable(path, str(error)) from error
    minor = max((int(match[1]) for name in names if (match := _DLL.fullmatch(name))), default=-1)
    if (3, minor) < _LEAST:
        what = f"Python 3.{minor}" if minor >= 0 else "no Python 3"
        raise InputError(f"{path} has {what}. The runner needs Python {_LEAST[0]}.{_LEAST[1]} or newer.", _FORMS)
    return {
        "zip": str(path),
        "directory": f"python-{digest[:_DIGITS]}",
        "version": f"3.{minor}",
        "architecture": _architecture(program) or "an unknown architecture",
    }


def _architecture(program: bytes) -> str | None:
    """Return for which processors a program is, None if unknown: at 0x3C is the offset of its header."""
    header = int.from_bytes(program[0x3C:0x40], "little")
    if program[:2] != b"MZ" or program[header : header + 4] != b"PE\0\0":
        return None
    return _MACHINES.get(int.from_bytes(program[header + 4 : header + 6], "little"))


def _not_embeddable(path: Path, why: str) -> InputError:
    hint = "Download the 'Windows embeddable package' for the VM's processors from python.org."
    return InputError(f"{path} is not an embeddable distribution of Python: {why}.", hint)
