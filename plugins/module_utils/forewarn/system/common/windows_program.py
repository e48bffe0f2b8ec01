# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
r"""Programs of hooks on Windows: which can be started, and with which arguments. The same for a compiler and a runner.

Windows starts ``.exe``; ``.cmd`` and ``.bat`` are read by cmd.exe, ``.ps1`` by PowerShell. A name without a path is
looked up in System32, Windows, WindowsPowerShell\v1.0 and OpenSSH alone, with one of these suffixes.

cmd.exe reads its command line in a way of its own, which no quoting makes safe for every word. Inside double quotes

- a double quote ends them, whatever is before it: a backslash does not count;
- ``%NAME%`` stands for a variable, in quotes too, and so does ``!NAME!`` where delayed expansion is on;
- a line break ends the command, and other control characters are dropped or end the file;
- ``^ & | < > ( )`` stand for themselves, until the script writes ``%~1``, which takes the quotes away.

So a word that has one of these is refused. Blanks and ``, ; =`` separate words only outside of quotes, and such a word
is given in quotes (``quote_cmd_word``). A backslash at its end is refused then: cmd.exe takes it as it is, but the
next program would read the quote after it as a part of the word.
"""

from __future__ import annotations

import re

SUFFIXES = (".exe", ".cmd", ".bat", ".ps1")
BATCH_SUFFIXES = (".cmd", ".bat")

_ABSOLUTE = re.compile(r"[A-Za-z]:[\\/]")
_UNC = re.compile(r"[\\/]{2}")
_UNSAFE = re.compile('["%!^&|<>()\x00-\x08\x0a-\x1f\x7f]')
_UNSAFE_IN_PATH = re.compile('["%!\x00-\x1f\x7f]')
# What separates words for cmd.exe; U+00A0 is a separator in some code pages.
_SEPARATORS = re.compile("[ \t,;=\xa0]")
_NAMES = {"\r": "a line break", "\n": "a line break", "\0": "a NUL character"}


def is_windows_path(path: str) -> bool:
    r"""Return whether a path is absolute on Windows: ``C:\x``, ``C:/x``, ``\\server\x``. Linux has no such paths."""
    return bool(_ABSOLUTE.match(path)) or path.startswith("\\\\")


def is_batch(program: str) -> bool:
    """Return whether cmd.exe reads a program, and its arguments."""
    return program.lower().endswith(BATCH_SUFFIXES)


def program_problem(program: str) -> str | None:
    """Return why Windows cannot start the program at an absolute path of its own, or None.

    To be read after the path. Whether the file is there is not looked at.
    """
    if _UNC.match(program):
        return "is on another computer, whose administrators could change it"
    if not program.lower().endswith(SUFFIXES):
        return f"is none of {', '.join(SUFFIXES)}, which Windows can start"
    found = _UNSAFE_IN_PATH.search(program) if is_batch(program) else None
    return f"has {_shown(found[0])} in it, which cmd.exe would not take as it is" if found else None


def cmd_argument_problem(word: str) -> str | None:
    """Return why cmd.exe would not take a word as one argument, to be read after the word: "has '&' in it, …"; or None.

    The word then has to be written as ``quote_cmd_word`` does.
    """
    found = _UNSAFE.search(word)
    if found:
        return f"has {_shown(found[0])} in it, which cmd.exe would not take as it is"
    if word.endswith("\\") and _SEPARATORS.search(word):
        return "needs quotes, and ends with a backslash, which the quote after it would belong to"
    return None


def quote_cmd_word(word: str) -> str:
    """Return a word without a ``cmd_argument_problem`` as it stands on cmd.exe's command line."""
    return f'"{word}"' if not word or _SEPARATORS.search(word) else word


def _shown(character: str) -> str:
    return _NAMES.get(character, "a control character" if character < " " or character == "\x7f" else f"'{character}'")
