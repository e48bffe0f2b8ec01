# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A regular expression matcher whose time grows linearly with the text, for ``matches()``.

``patterns`` compiles a pattern to a program. The matcher follows all its states at once and never backtracks, so no
text can make a pattern slow. A program is JSON, a list of instructions:

``["c", ranges]`` one character of the ranges ``[low, high, low, high, …]`` (code points), then the next instruction;
``["a", kind]`` an assertion: ``^`` ``$`` (text), ``b`` (ASCII word boundary), then the next;
``["s", x, y]`` continue at both; ``["j", x]`` continue there, relative to the instruction; ``["m"]`` it matches.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Callable

from ..forms import is_int

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def compile_program(program: list[Any]) -> Callable[[str], bool]:
    """Return a function that returns whether the pattern occurs anywhere in a text.

    Raises ValueError, TypeError or LookupError if it is not a program.
    """
    _check_program(program)

    def follow(starts: list[int], text: str, position: int, states: list[int]) -> bool:
        """Add to ``states`` every ``c`` instruction that is reachable without a character; return whether ``m`` is."""
        seen = set(states)
        stack = starts
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = program[at]
            kind = instruction[0]
            if kind == "c":
                states.append(at)
            elif kind == "m":
                return True
            elif kind == "j":
                stack.append(at + instruction[1])
            elif kind == "s":
                stack += (at + instruction[1], at + instruction[2])
            elif _assertion_holds(instruction[1], text, position):
                stack.append(at + 1)
        return False

    def search(text: str) -> bool:
        states: list[int] = []
        for position, character in enumerate(text):
            if follow([0], text, position, states):  # a match may start at any character
                return True
            point = ord(character)
            # Odd: the point lies between a low (inclusive) and the exclusive bound after it.
            reached = [at + 1 for at in states if bisect_right(program[at][1], point) % 2]
            states = []
            if follow(reached, text, position + 1, states):
                return True
        return follow([0], text, len(text), states)

    return search


def _check_program(program: list[Any]) -> None:
    """Raise unless the program is valid: every jump leads to an instruction, and the last instruction is ``m``."""
    if not isinstance(program, list) or program[-1] != ["m"]:
        raise ValueError("a pattern has no end")
    for at, instruction in enumerate(program):
        kind, operands = instruction[0], instruction[1:]
        if kind in ("j", "s"):
            is_valid = len(operands) == (1 if kind == "j" else 2) and all(
                is_int(jump) and 0 <= at + jump < len(program) for jump in operands
            )
        elif kind == "c":
            (bounds,) = operands
            is_valid = len(bounds) % 2 == 0 and all(map(is_int, bounds)) and bounds == sorted(bounds)
        else:
            is_valid = instruction == ["m"] or instruction in (["a", "^"], ["a", "$"], ["a", "b"])
        if not is_valid:
            raise ValueError(f"instruction {at} of a pattern is damaged")


def _assertion_holds(kind: str, text: str, position: int) -> bool:
    if kind == "^":
        return position == 0
    if kind == "$":
        return position == len(text)
    before = position > 0 and text[position - 1] in _WORD
    after = position < len(text) and text[position] in _WORD
    return before != after
