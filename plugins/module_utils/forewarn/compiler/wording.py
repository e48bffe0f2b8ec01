# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that findings share: likely spellings, and how to write a duration."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def closest(word: str, words: Iterable[str]) -> str | None:
    """Return the word that the author probably meant."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    negated = re.fullmatch(r"(?:is_?)?(?:not|non?|un|dis)_?(.+)", word.lower())
    if negated and negated.group(1) in by_lower:
        return None  # the opposite was meant
    ending = [candidate for lower, candidate in by_lower.items() if len(word) > 3 and lower.endswith(word.lower())]
    if len(ending) == 1:
        return ending[0]
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion, or an empty text if no name is close."""
    meant = closest(name, known)
    return f"did you mean {meant}?" if meant else ""


_UNITS = {
    **dict.fromkeys(("second", "sec"), (1, "s")),
    **dict.fromkeys(("minute", "min"), (1, "m")),
    **dict.fromkeys(("hour", "hr"), (1, "h")),
    "day": (24, "h"),
    "week": (7 * 24, "h"),
}


def duration_hint(text: str) -> str:
    """Return how to write the intended duration; empty if it is not clear."""
    days = re.fullmatch(r"([0-9]{1,5})d", text.strip())
    if days:
        return f"there are no days in CEL: write {int(days.group(1)) * 24}h"
    unit = re.fullmatch(r"([0-9]{1,9})\s*(second|sec|minute|min|hour|hr|day|week)s?", text.strip(), re.IGNORECASE)
    if unit:
        factor, letter = _UNITS[unit.group(2).lower()]
        return f"write {int(unit.group(1)) * factor}{letter}"
    return f"say in which unit, as in {text.strip()}s" if re.fullmatch(r"[0-9]{1,18}", text.strip()) else ""


# Names of functions elsewhere, where no similar spelling leads to their names here.
ELSEWHERE = {
    **dict.fromkeys(("len", "length", "count"), "size"),
    **dict.fromkeys(("any", "some"), "exists"),
    **dict.fromkeys(("every", "foreach"), "all"),
    **dict.fromkeys(("match", "search", "regex", "test"), "matches"),
    **dict.fromkeys(("lower", "tolower", "lowercase", "tolowercase"), "lowerAscii"),
    **dict.fromkeys(("upper", "toupper", "uppercase", "touppercase"), "upperAscii"),
    "includes": "contains",
    "strip": "trim",
}


def function_hint(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a function that does not exist, or an empty text."""
    if name.lower() in ("has_key", "haskey", "containskey", "contains_key"):
        return "ask with in, as in 'role' in vm.tags"
    elsewhere = ELSEWHERE.get(name.lower())
    return f"did you mean {elsewhere}?" if elsewhere else did_you_mean(name, known)
