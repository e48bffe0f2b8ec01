# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of .cmd and .bat, and programs that Windows can start."""

from __future__ import annotations

import itertools

import pytest
from forewarn.system.common.windows_program import (
    cmd_argument_problem,
    is_batch,
    is_windows_path,
    program_problem,
    quote_cmd_word,
)

_SEPARATORS = " \t,;=\xa0"


def words_of_cmd(line: str) -> list[str]:
    """Return the parameters %1, %2, … of a script, with their quotes, as cmd.exe splits a line without operators."""
    words, word, quoted = [], "", False
    for character in line:
        quoted ^= character == '"'
        if character in _SEPARATORS and not quoted:
            words += [word] if word else []
            word = ""
        else:
            word += character
    return [*words, word] if word else words


@pytest.mark.parametrize("character", [*'"%!^&|<>()', "\r", "\n", "\0", "\x1a", "\x0b", "\x7f"])
def test_character_that_cmd_interprets_is_refused(character: str) -> None:
    for word in (character, f"a{character}", f"a {character} b"):
        assert cmd_argument_problem(word) is not None, word


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("--name=web", '"--name=web"'),
        ("", '""'),
        ("a b", '"a b"'),
        ("a,b;c", '"a,b;c"'),
        ("a\tb", '"a\tb"'),
        ("C:\\dir\\", "C:\\dir\\"),
        ("/force", "/force"),
        ("größe", "größe"),
        ("it's", "it's"),
    ],
)
def test_word_without_a_problem_is_one(word: str, written: str) -> None:
    assert cmd_argument_problem(word) is None
    assert quote_cmd_word(word) == written
    assert words_of_cmd(f"{written} next") == [written, "next"]


@pytest.mark.parametrize("word", ["C:\\my dir\\", "a;\\", "x=\\"])
def test_backslash_before_the_closing_quote_is_refused(word: str) -> None:
    assert "backslash" in str(cmd_argument_problem(word))


def test_every_accepted_short_word_stays_one_word() -> None:
    """No word of three of these characters becomes two, or loses a character: what cmd.exe reads is what was given."""
    accepted = 0
    for characters in itertools.product('a"%^&|<>()! \t,;=\\\n', repeat=3):
        word = "".join(characters)
        if cmd_argument_problem(word) is None:
            accepted += 1
            (read,) = words_of_cmd(quote_cmd_word(word))
            assert (read[1:-1] if read.startswith('"') else read) == word
    assert accepted > 100


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (r"C:\x\drain.exe", None),
        (r"C:\Program Files (x86)\x\Drain.CMD", None),
        (r"c:/x/drain.ps1", None),
        (r"C:\x\drain.sh", "is none of .exe, .cmd, .bat, .ps1"),
        (r"C:\x\drain", "is none of"),
        (r"\\server\share\drain.exe", "is on another computer"),
        ("//server/share/drain.exe", "is on another computer"),
        (r"C:\100%\drain.cmd", "has '%' in it"),
        (r"C:\100%\drain.exe", None),
        ("C:\\x\ny\\drain.bat", "has a line break in it"),
    ],
)
def test_program_that_windows_cannot_start(program: str, says: str | None) -> None:
    found = program_problem(program)
    assert (found is None) if says is None else says in str(found)


def test_paths_and_scripts_of_windows_are_recognised() -> None:
    assert all(map(is_windows_path, (r"C:\x", "c:/x", r"\\server\x")))
    assert not any(map(is_windows_path, ("/x", "C:x", "x", r"x\y", r"\x", "//x/y", "")))
    assert is_batch(r"C:\x.Bat")
    assert is_batch("drain.cmd")
    assert not is_batch(r"C:\x.cmd.exe")
