# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for people: what comes from outside, without characters that hide or rearrange it; spans of time, and URLs."""

from __future__ import annotations

import math
import re

# Characters without a visible form that Python counts as printable: the code points with Default_Ignorable_Code_Point
# of Unicode's DerivedCoreProperties.txt in the categories Mn and Lo, and the blank Braille pattern.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_LONGEST_SECONDS = 9999 * 86400  # that anybody reads
_MOST_MARKS = 4  # on one letter; a dozen cover the lines above and below


def escaped(text: str, keep: str = "") -> str:
    """Return a text of which every character is seen, in the order in which it stands there.

    Written as escapes, such as ``\\u200b``, are characters that Python does not call printable (controls, formats such
    as those that change direction, lone surrogates, unassigned ones, separators other than a space), invisible ones,
    and combining marks except those on letters of scripts that are written with them. ``keep``: characters that stay.
    """
    if text.isprintable() and (text.isascii() or not any(char in _INVISIBLE or _is_mark(char) for char in set(text))):
        return text
    parts: list[str] = []
    marks = _MOST_MARKS  # that stand on the letter before, or more than it may have
    for char in text:
        if char in keep:
            seen, marks = True, _MOST_MARKS
        elif char.isascii() or not char.isprintable() or char in _INVISIBLE:
            seen, marks = " " <= char <= "~", _MOST_MARKS
        elif _is_mark(char):
            marks += 1
            seen = marks <= _MOST_MARKS
        else:
            seen, marks = True, 0 if char.isalpha() else _MOST_MARKS
        parts.append(char if seen else char.encode("unicode_escape").decode())
    return "".join(parts)


def _is_mark(char: str) -> bool:
    from unicodedata import category  # here: nearly every text is ASCII

    return category(char) in ("Mn", "Me")


def duration_text(duration_seconds: float) -> str:
    """Return a time span for people, in its two largest units: ``14 min 3 s``."""
    if math.isnan(duration_seconds) or duration_seconds >= _LONGEST_SECONDS:  # from a file that anybody wrote
        return f"over {_LONGEST_SECONDS // 86400} d"
    rest = int(duration_seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def exact_text(duration_seconds: float) -> str:
    """Return a measured time span for people, below a minute to a tenth of a second: ``4.8 s``."""
    tenths = round(duration_seconds, 1)
    return f"{tenths:g} s" if tenths < 60 else duration_text(tenths)


def redacted_url(url: str) -> str:
    """Return a URL for people, without user, password and values of the query."""
    address, question, query = url.partition("#")[0].partition("?")
    address = re.sub(r"//[^/]*@", "//", address, count=1)
    parts = (part.partition("=") for part in query.split("&"))
    names = [f"{name}=…" if equals else "…" for name, equals, _value in parts]  # without '=' all of it may be a value
    return address + question + ("&".join(names) if question else "")
