# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts with characters that hide or rearrange what is beside them, and a judge of output that may have none raw."""

from __future__ import annotations

import random
import re
import sys
import unicodedata
from functools import cache

# Categories (https://www.unicode.org/reports/tr44/#General_Category_Values) of which no character is shown raw.
NEVER = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
MARKS = ("Mn", "Me")
# Of those that may be shown, these have no form of their own either: fillers, joiners and variation selectors.
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
_STYLE = re.compile(r"\033\[[0-9;]*m")


@cache
def characters(category: str) -> tuple[str, ...]:
    """Return every character of a category."""
    every = (chr(code) for code in range(sys.maxunicode + 1) if chr(code) not in "\t\n\r")  # may be laid out
    return tuple(char for char in every if unicodedata.category(char) == category)


def hostile_text(seed: int, half: bool = True) -> str:
    """Return words with one character of each category between them, in any order. ``half``: also half of one."""
    drawn = random.Random(seed)
    parts = [drawn.choice(characters(category)) for category in (*NEVER, *MARKS) if half or category != "Cs"] + [
        drawn.choice(INVISIBLE)
    ]
    drawn.shuffle(parts)
    return "web" + "".join(f"{part}{drawn.choice(['0', 'x', ' a'])}" for part in parts)


def literal(text: str) -> str:
    """Return a text as a literal of YAML and of CEL, in which it has escapes."""
    shown = (char if char.isascii() and char.isprintable() else f"\\U{ord(char):08x}" for char in text)
    return '"' + "".join(f"\\{char}" if char in ('"', "\\") else char for char in shown) + '"'


def raw_characters(output: str) -> set[str]:
    """Return the characters of the output of a command that nobody may see raw; styles of a terminal are ours."""
    return {
        char
        for char in set(_STYLE.sub("", output)) - {"\n"}
        if unicodedata.category(char) in (*NEVER, *MARKS) or char in INVISIBLE
    }
