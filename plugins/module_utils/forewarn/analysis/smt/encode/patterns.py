# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled patterns (policy.regex) as regular expressions of z3, for the texts in which a pattern has a match.

A program is an automaton, whose states are eliminated one by one: what is left is one expression for the way from its
start to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..terms import require

LAST_CHARACTER = 0x2FFFF  # of SMT-LIB's strings (the theory of Unicode strings, version 2.7)
_TOP = 0x110000  # the bound after the last character of Unicode
_MOST_CHARACTERS = 60  # instructions that read one
_MOST_WAYS = 3_000
_MOST_SAMPLES = 4
# States beside the instructions that read a character: before the text, after characters that a match does not begin
# with, after a match, and after the text.
_START, _BEFORE, _AFTER, _END = -1, -2, -3, -4


def texts_matching(program: list[Any], context: Any) -> Any | None:
    """Return the expression for the texts that a pattern has a match in, None if there is no exact or no small one.

    To the pattern, all characters beyond LAST_CHARACTER, which z3 does not have, are like that one.
    """
    bounds = [instruction[1] for instruction in program if instruction[0] == "c"]
    beyond = any(LAST_CHARACTER < bound < _TOP for one in bounds for bound in one)
    if len(bounds) > _MOST_CHARACTERS or ["a", "b"] in program or beyond:
        return None
    return _Automaton(program, context).expression()


def in_case(case: str, kind: str, part: Any) -> list[Any]:
    """Return the pattern for the texts of which ``lower_ascii`` or ``upper_ascii`` makes a text in a relation.

    ``kind`` is ``eq``, ``starts_with``, ``ends_with`` or ``contains`` with a text, ``in`` with a list of texts, or
    ``matches`` with a compiled pattern.
    """
    if kind == "matches":
        return [["c", _before(case, one[1])] if one[0] == "c" else one for one in part]
    texts = part if kind == "in" else [part]
    begin = [] if kind in ("ends_with", "contains") else [["a", "^"]]
    end = [] if kind in ("starts_with", "contains") else [["a", "$"]]
    program: list[Any] = []
    for text in texts:
        one = [*begin, *(["c", _before(case, [ord(letter), ord(letter) + 1])] for letter in text), *end]
        program = [["s", 1, len(one) + 2], *one, ["j", len(program) + 1], *program] if program else one
    return [*(program if texts else [["c", []]]), ["m"]]  # none at all for no texts


def _before(case: str, bounds: list[int]) -> list[int]:
    """Return the characters of which a function of case makes characters of some ranges."""
    changed, into = (65, 97) if case == "lower_ascii" else (97, 65)  # the first letters
    made = ((point, point - changed + into if 0 <= point - changed < 26 else point) for point in range(65, 123))
    cuts = [min(bound, 65) for bound in bounds] + [max(bound, 123) for bound in bounds]
    for point, other in made:
        if sum(bound <= other for bound in bounds) % 2:
            cuts += (point, point + 1)
    return sorted(cut for cut, times in Counter(cuts).items() if times % 2)


class _Automaton:
    """The states of a program and the ways between two of them, each with the expression for the texts on it."""

    def __init__(self, program: list[Any], context: Any) -> None:
        self._z3, self._context, self._program = require(), context, program
        self._empty = self._z3.Re(self._z3.StringVal("", context))
        self._ways: dict[tuple[int, int], Any] = {}
        anything = self._characters([0, _TOP])
        self._add(_START, _BEFORE, anything)
        self._add(_BEFORE, _BEFORE, anything)
        self._add(_AFTER, _AFTER, anything)
        self._add(_AFTER, _END, self._empty)
        for state, at, begun in ((_START, 0, False), (_BEFORE, 0, True)):
            self._follow(state, at, begun, self._empty)
        for at, instruction in enumerate(program):
            if instruction[0] == "c" and instruction[1]:
                self._follow(at, at + 1, True, self._characters(instruction[1]))

    def expression(self) -> Any | None:
        """Return the expression for the ways from the start to the end; eliminates all other states."""
        states = {state for way in self._ways for state in way} - {_START, _END}
        done = 0
        while states:
            state = min(states, key=lambda one: (sum(one in way for way in self._ways), one))
            states.remove(state)
            into = [(one, text) for (one, other), text in self._ways.items() if other == state != one]
            out = [(other, text) for (one, other), text in self._ways.items() if one == state != other]
            done += len(into) * len(out)
            if done > _MOST_WAYS:
                return None
            loop = self._ways.get((state, state))
            self._ways = {way: text for way, text in self._ways.items() if state not in way}
            for one, before in into:
                for other, after in out:
                    self._add(one, other, self._joined(before, *([] if loop is None else [self._z3.Star(loop)]), after))
        nothing = self._z3.Empty(self._z3.ReSort(self._z3.StringSort(self._context)))
        return self._ways.get((_START, _END), nothing)

    def _follow(self, state: int, at: int, begun: bool, text: Any) -> None:
        """Add the ways from a state, on which a text is read, to all that an instruction leads to without reading."""
        for other in self._reached(at, begun):
            self._add(state, other, text)

    def _reached(self, start: int, begun: bool) -> Iterator[int]:
        """Yield the states that an instruction leads to; ``begun``: after the first character of the text."""
        seen, stack = set(), [(start, False)]
        while stack:
            at, ended = stack.pop()  # ended: only if the text ends here
            if (at, ended) in seen:
                continue
            seen.add((at, ended))
            kind, *operands = self._program[at]
            if kind == "m":
                yield _END if ended else _AFTER
            elif kind == "c" and not ended and operands[0]:
                yield at
            elif kind in ("j", "s"):
                stack += [(at + jump, ended) for jump in operands]
            elif kind == "a" and not (operands[0] == "^" and begun):
                stack.append((at + 1, ended or operands[0] == "$"))

    def _add(self, one: int, other: int, text: Any) -> None:
        before = self._ways.get((one, other))
        self._ways[one, other] = text if before is None else self._z3.Union(before, text)

    def _joined(self, *texts: Any) -> Any:
        parts = [text for text in texts if not text.eq(self._empty)]
        return self._z3.Concat(*parts) if len(parts) > 1 else parts[0] if parts else self._empty

    def _characters(self, bounds: list[int]) -> Any:
        """Return the expression for one character of the ranges ``[low, exclusive high, …]``."""
        ranges = [
            self._z3.Range(self._character(low), self._character(min(high - 1, LAST_CHARACTER)))
            for low, high in zip(bounds[::2], bounds[1::2])
            if low <= LAST_CHARACTER
        ]
        return ranges[0] if len(ranges) == 1 else self._z3.Union(*ranges)

    def _character(self, point: int) -> Any:
        return self._z3.StringVal(f"\\u{{{point:x}}}", self._context)


def samples(program: list[Any]) -> list[str]:
    """Return texts that a compiled pattern (policy.regex) has a match in, the shortest first."""
    found: list[str] = []
    paths: list[tuple[int, str]] = [(0, "")]
    for _turn in range(2000):
        if not paths or len(found) >= _MOST_SAMPLES:
            break
        at, text = paths.pop(0)
        instruction = program[at]
        kind = instruction[0]
        if kind == "m":
            found.append(text)
        elif kind == "c" and instruction[1]:
            low = instruction[1][0]
            readable = next((ord(one) for one in "a0A-_. x" if _in_ranges(ord(one), instruction[1])), low)
            paths.append((at + 1, text + chr(readable)))
        elif kind == "j":
            paths.insert(0, (at + instruction[1], text))
        elif kind == "s":
            paths += [(at + instruction[1], text), (at + instruction[2], text)]
        elif kind == "a":
            paths.append((at + 1, text))
    return found


def _in_ranges(point: int, bounds: list[int]) -> bool:
    return sum(bound <= point for bound in bounds) % 2 == 1
