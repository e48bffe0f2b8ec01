# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hooks become command lines of Windows, which programs are found and refused, and what becomes of output."""

from __future__ import annotations

import codecs
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forewarn.system.windows import console, processes, programs
from forewarn.system.windows.children.command_line import command_line
from hypothesis import given
from hypothesis import strategies as st

ROOT = r"C:\Windows"
CMD = rf"{ROOT}\System32\cmd.exe"
POWERSHELL = rf"{ROOT}\System32\WindowsPowerShell\v1.0\powershell.exe"


def test_exe_is_started_directly() -> None:
    argv = (r"C:\Program Files\x\drain.exe", "", "a b", 'c"d', "e\\")
    assert command_line(argv, ROOT) == (argv[0], r'"C:\Program Files\x\drain.exe" "" "a b" c\"d e' + "\\")


def test_batch_is_read_by_cmd() -> None:
    argv = (r"C:\My Hooks\drain.CMD", "web", "two words", "", "a,b", "für")
    line = rf'"{CMD}" /d /e:on /v:off /s /c ""C:\My Hooks\drain.CMD" web "two words" "" "a,b" für"'
    assert command_line(argv, ROOT) == (CMD, line)


@pytest.mark.parametrize("word", ["a&b", '"', "%PATH%", "!x!", "a\nb", "^", "(x)", "a|b", ">f", "two words\\"])
def test_batch_gets_no_word_cmd_changes(word: str) -> None:
    with pytest.raises(ValueError, match="the argument "):
        command_line((r"C:\drain.bat", "fine", word), ROOT)
    assert programs.problem(r"C:\drain.bat", ["fine", word]) is not None
    assert programs.problem(r"C:\drain.exe", ["fine", word]) is None


def test_script_is_read_by_powershell() -> None:
    program, line = command_line((r"C:\My Hooks\drain.ps1", "-Name", "a b"), ROOT)
    assert program == POWERSHELL
    assert line == (
        rf"{POWERSHELL} -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "
        r'"C:\My Hooks\drain.ps1" -Name "a b"'
    )


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (r"C:\hooks\drain.vbs", "is none of .exe, .cmd, .bat, .ps1"),
        (r"C:\hooks\drain", "is none of"),
        (r"\\server\share\drain.exe", "is on another computer"),
        (r"C:\100%\drain.cmd", "has '%' in it"),
    ],
)
def test_program_windows_cannot_start_is_refused(program: str, says: str) -> None:
    assert says in str(programs.problem(program, []))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("drain", "drain.exe"),  # the first suffix of the first directory that has any
        ("drain.cmd", "drain.cmd"),
        ("late", "late.ps1"),
        ("none", None),
        ("text.txt", None),
    ],
)
def test_name_is_found_with_its_suffix(
    name: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for present in ("drain.exe", "drain.cmd", "late.ps1", "text.txt"):
        (tmp_path / present).touch()
    monkeypatch.setattr(programs, "SEARCH_PATH", f"C:\\none;{tmp_path}")
    # Linux takes the backslash before the name for a part of it.
    monkeypatch.setattr(os.path, "isfile", lambda path: Path(path.replace("\\", "/")).exists())
    assert programs.find(name) == (None if found is None else f"{tmp_path}\\{found}")


@pytest.mark.parametrize("path", [r"C:\x.exe", "C:x.exe", r"hooks\x.exe", "hooks/x.exe", r"\x.exe"])
def test_path_is_no_name(path: str) -> None:
    assert not programs.is_name(path)
    assert programs.is_name("appcmd.exe")


def test_hook_gets_system_directories_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert programs.BASE_ENVIRONMENT["PATH"].split(";") == [
        r"C:\Windows\System32",
        r"C:\Windows",
        r"C:\Windows\System32\WindowsPowerShell\v1.0",
        r"C:\Windows\System32\OpenSSH",
    ]
    assert programs.BASE_ENVIRONMENT["ComSpec"] == CMD
    assert "HOME" not in programs.BASE_ENVIRONMENT


def test_service_uses_the_python_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "pythonw.exe"))
    assert programs.python() == str(tmp_path / "pythonw.exe")
    (tmp_path / "python.exe").touch()
    assert programs.python() == str(tmp_path / "python.exe")


# Output. Linux has no codec "oem"; the code page of western consoles stands for it.


@pytest.fixture(autouse=True)
def _code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "OEM", "cp850")


def test_output_is_utf8_or_the_code_page() -> None:
    assert console.decode("für €\r\nb\n\r".encode()) == "für €\nb\n\r"
    assert console.decode("für\r\n".encode("cp850")) == "für\n"
    assert console.decode(codecs.BOM_UTF8 + "für".encode()) == "für"


def test_half_characters_at_cuts_stay_utf8() -> None:
    head, tail = "a€".encode()[:-1], "€b".encode()[1:]
    assert console.decode_ends(head, tail) == ("a", "b")
    assert console.decode_ends(head, "bäc".encode("cp850")) == ("aÔé", "bäc")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_output_becomes_text(head: bytes, tail: bytes) -> None:
    assert "\r\n" not in console.decode(head)
    start, end = console.decode_ends(head, tail)
    assert len(start) <= len(head)
    assert len(end) <= len(tail)


# Sentences


@pytest.mark.parametrize(
    ("code", "says"),
    [(1, "it ended with exit code 1"), (0xC0000005, "it ended with exit code 0xC0000005"), (-1, "it was ended")],
)
def test_exit_code_of_windows_is_shown(code: int, says: str) -> None:
    assert processes.describe_exit(code) == says


def test_why_windows_started_nothing() -> None:
    error = OSError(errno.ENOEXEC, "%1 is not a valid Win32 application")
    error.winerror = 193  # type: ignore[attr-defined]  # which Windows sets
    assert "it is not a program of Windows" in processes.why_not_started("x.exe", error)
    assert processes.why_not_started("x.exe", subprocess.SubprocessError("odd")).endswith("could not be started: odd")
