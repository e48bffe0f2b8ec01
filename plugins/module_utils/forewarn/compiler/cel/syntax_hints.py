# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for what is not CEL: the operators, quotes and words of other languages.

An author who follows a hint must get an expression that compiles, and that is true for no more events than was meant.
"""

from __future__ import annotations

import re

_WORDS = {"and": "&&", "or": "||", "not": "!", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_METHODS = ("contains", "startswith", "endswith", "matches", "exists", "all", "filter", "map")
_NAMES = {"startswith": "startsWith", "endswith": "endsWith"}
_PATH = r"[A-Za-z_][\w.]*"
_LOOP = "a loop names its variable first: x.exists(e, e == 'a')"

# What is before the place of the mistake, what begins at it, and the hint, in which \g<…> stands for parts of both.
_HINTS: tuple[tuple[str, str, str], ...] = (
    (r"", r"[\u201c\u201d\u201e\u201f\u00ab\u00bb]", 'write straight quotes: "…"'),
    (r"", r"[\u2018\u2019\u201a\u201b\u00b4]", "write straight quotes: '…'"),
    (r"", r"[\u00a0\u2000-\u200b\u202f\u2060\u3000\ufeff]", "replace this character by a plain space"),
    (r"\{\{?\s*$|\{\{[^{}]*$", r"", "leave out the braces: a policy is not a template"),
    (r"\$\{?$", r"", "leave out the $, as in variables.NAME"),
    (r"^\s*$", r"\$\{?\w", "leave out the $, as in variables.NAME"),
    (r"", r"\$", "leave out the $, as in variables.NAME"),
    (r"\bnot\s+$", r"in\b", "write ! before it, as in !(x in …)"),
    (r"", r"not\s+in\b", "write ! before it, as in !(x in …)"),
    (r"", r"is\s+not\s+(?:null|none|nil|defined|empty)\b", "write has(…), as in has(event.NotBefore)"),
    (r"", r"is\s+(?:null|none|nil|undefined|empty)\b", "write !has(…), as in !has(event.NotBefore)"),
    (r"", r"is\s+defined\b", "write has(…), as in has(event.NotBefore)"),
    (r"", r"is\s+not\b", "write !="),
    (r"", r"is\b", "write =="),
    (r"<$", r">", "write !="),
    (r"!=$", r"=", "compare with !="),
    (r"=\s*$", r"~", "ask with matches(), contains() or startsWith()"),
    (r"", r"=?~", "ask with matches(), contains() or startsWith()"),
    (r"=$", r">", _LOOP),
    (r"\w\s*$", r"=>", _LOOP),
    (r"-$", r">", _LOOP),
    (r"\blambda\s+$", r"", _LOOP),
    (r"\[.*\s$", r"for\b", "write x.filter(e, …), or x.map(e, …)"),
    (r"\bhas\s+$", rf"(?P<path>{_PATH})", r"write has(\g<path>)"),
    (r"\b(?:size|len)\s+$", rf"(?P<path>{_PATH})", r"write \g<path>.size()"),
    (r"\bif\s+$", r"", "write condition ? value : other value; or && and ||"),
    (r"\breturn\s+$", r"", "leave out return: the expression is the value"),
    (r"(?P<name>\w*Seconds)\s*[<>=!]=?\s*(?P<number>\d+)$", r"(?:ms|s|m|h|d)\b", r"write \g<number>, in seconds"),
    (r"(?<![\w.])(?P<number>\d+)$", r"(?P<unit>ms|s|m|h)\b", r"write duration('\g<number>\g<unit>')"),
    (r"(?<![\w.])\d+$", r"d\b", "write duration('24h') for a day"),
    (r"(?<![\w.])(?P<number>\d+)$", r"_(?P<more>\d+)\b", r"write \g<number>\g<more>"),
    (r"[=!]=\s*\w+$", r"['\"]", "put the whole text in quotes"),
    (r"\bf$", r"['\"]", "join texts with +, as in 'a ' + event.EventType"),
    (r"\d\s*\.\.?$", r"\.?\d", "name both ends: 0 <= x && x < 9"),
    (r"", r"between\b", "name both ends: 0 <= x && x < 9"),
    (r"\blike\s+$|", r"like\b", "ask with contains(), startsWith() or matches()"),
    (r"\blike\s+$", r"", "ask with contains(), startsWith() or matches()"),
    (r"\bin\s*\([^()]*$", r",", "a list stands in brackets: in ['a', 'b']"),
    (r"\*$", r"\*", "there are no powers: write x * x"),
    (r"(?:\+|-)$", r"[+=-]", "an expression changes nothing: write x + 1"),
    (r"", r"\+\+|--", "an expression changes nothing: write x + 1"),
    (r"[+*/-]$", r"=", "compare with =="),
    (r"\?$", r"\?", "write x.?field.orValue(…)"),
    (r"(?:&&|\|\||^)\s*$", r"&&|\|\|", "something is missing before this"),
    (r"", r"&(?!&)", "write &&"),
    (r"", r"\|(?!\|)", "write ||"),
    (r"&$", r"", "write &&"),
    (r"\|$", r"", "write ||"),
    (r"=$", r"", "compare with =="),
    (r"", r"=", "compare with =="),
    (r"", r";", "join conditions with && or ||"),
    (r"", r",\s*$", "leave it out"),
    (r"", r"#", "a comment begins with //"),
    (r"", r"\)", "there is no ( for this: leave it out"),
)


def syntax_hint(source: str, start: int) -> str:
    """Return what to write instead of what an expression has at a place; empty if that is not clear."""
    before, rest = source[:start], source[start:]
    word = re.match(r"\w+", rest)
    previous = re.search(r"(\w+)\s+$", before)
    if not re.match(r"(?:not\s+in|is)\b", rest):
        for one in (word.group() if word else "", previous.group(1) if previous else ""):
            if one.lower() in _WORDS:
                return f"write {_WORDS[one.lower()]}"
            if one.lower() in _METHODS:
                return f"write .{_NAMES.get(one.lower(), one)}(…), with a dot before it"
    for ending, beginning, hint in _HINTS:
        found, begun = re.search(rf"(?:{ending})\Z" if ending else r"\Z", before, re.S), re.match(beginning, rest, re.I)
        if found and begun:
            for name, part in {**found.groupdict(), **begun.groupdict()}.items():
                hint = hint.replace(f"\\g<{name}>", part or "")  # the loop ends here
            return hint
    return ""


def unfinished_hint(source: str) -> str:
    """Return what an expression lacks at its end."""
    text = source.rstrip()
    operator = re.search(r"(&&|\|\||[<>=!]=|[-+*/%<>!.])$", text)
    if operator:
        return f"something is missing after {operator.group()}"
    optional = re.search(rf"({_PATH})\?\.(\w+)", text)
    if optional:
        path = f"{optional.group(1)}.{optional.group(2)}"
        return f"write {path}, and has({path}) && before it"
    for opening, closing in ("()", "[]", "{}"):
        if text.count(opening) > text.count(closing):
            return f"close the {opening} with {closing}"
    return "write condition ? value : other value" if "?" in text else ""
