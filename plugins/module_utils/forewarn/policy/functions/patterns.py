# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles RE2 patterns to programs of ``regex``, and refuses patterns on which CEL engines differ.

The policy compiler compiles the patterns that are literals; a VM compiles those that are parameters.
"""

from __future__ import annotations

import re
from typing import Any, List, Tuple

MAX_INSTRUCTIONS = 2_000
_MAX_REPEAT = 1_000  # RE2's own
_TOP = 0x110000
Ranges = List[Tuple[int, int]]  # inclusive

_DIGIT: Ranges = [(48, 57)]
_WORD: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: Ranges = [(9, 10), (12, 13), (32, 32)]
_PERL = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: dict[str, Ranges] = {
    "alnum": [(48, 57), (65, 90), (97, 122)],
    "alpha": [(65, 90), (97, 122)],
    "digit": _DIGIT,
    "lower": [(97, 122)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": [(65, 90)],
    "word": _WORD,
    "xdigit": [(48, 57), (65, 70), (97, 102)],
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_COUNT = re.compile(r"\{0*(\d+)(?:(,)(?:0*(\d+))?)?\}", re.ASCII)
# ASCII letters to which Unicode's simple folding gives a third form.
_THIRD_FORM = {0x4B: 0x212A, 0x6B: 0x212A, 0x53: 0x17F, 0x73: 0x17F}


class PatternError(ValueError):
    """A pattern that is refused; ``position`` is the offset of the character at fault, from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def compile_pattern(pattern: str) -> list[Any]:
    """Return the program of a pattern, which ``regex`` searches anywhere in a text. Raises PatternError."""
    parser = _PatternParser(pattern)
    try:
        code = parser.alternation()
    except RecursionError:
        raise PatternError("the pattern is nested too deeply", 0) from None
    if parser.position < len(pattern):
        raise PatternError("there is no group for this )", parser.position)
    return [*code, ["m"]]


class _PatternParser:
    """A recursive descent parser. Jumps are relative to their instruction, so code can simply be concatenated."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.ignore_case = False
        self.dot_all = False
        self.depth = 0

    def alternation(self) -> list[Any]:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.position += 1
            branches.append(self.sequence())
        code = branches.pop()
        while branches:
            branch = branches.pop()
            code = [["s", 1, len(branch) + 2], *branch, ["j", len(code) + 1], *code]
        return self.check_size(code)

    def sequence(self) -> list[Any]:
        code: list[Any] = []
        while self.peek() not in ("", "|", ")"):
            code += self.repetition()
        return self.check_size(code)

    def repetition(self) -> list[Any]:
        start = self.position
        code = self.atom()
        operator = self.peek()
        if operator not in ("*", "+", "?", "{"):
            return code
        if operator == "{":
            match = _COUNT.match(self.pattern, self.position)
            if not match:
                raise PatternError("write \\{ for a brace that is not a count", self.position)
            self.position = match.end()
            if max(len(match.group(1)), len(match.group(3) or "")) > len(str(_MAX_REPEAT)):
                raise PatternError(f"a count must be in order and at most {_MAX_REPEAT}", start)
            low = int(match.group(1))
            high = low if not match.group(2) else int(match.group(3)) if match.group(3) else None
            if max(low, high or 0) > _MAX_REPEAT or (high is not None and high < low):
                raise PatternError(f"a count must be in order and at most {_MAX_REPEAT}", start)
        else:
            self.position += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[operator]
        if self.peek() == "?":  # lazy: makes no difference, since only the existence of a match counts
            self.position += 1
        if self.peek() in ("*", "+", "?"):
            raise PatternError("a repetition cannot be repeated; put it in a group", self.position)
        return self.repeat_code(code, low, high)

    def repeat_code(self, code: list[Any], low: int, high: int | None) -> list[Any]:
        size = len(code)
        if (low + (high or 0)) * (size + 1) > 4 * MAX_INSTRUCTIONS:
            raise PatternError("the pattern is too large", self.position)
        result = code * low
        if high is None:
            return [*result, ["s", 1, size + 2], *code, ["j", -size - 1]]
        return result + [["s", 1, size + 1], *code] * (high - low)

    def check_size(self, code: list[Any]) -> list[Any]:
        if len(code) > MAX_INSTRUCTIONS:
            raise PatternError("the pattern is too large", self.position)
        return code

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def atom(self) -> list[Any]:
        character, start = self.peek(), self.position
        self.position += 1
        if character == "(":
            return self.group(start)
        if character == "[":
            return [self.character_class(self.bracket(start), fold=False)]  # ``bracket`` has folded it
        if character == ".":
            return [self.character_class([(0, _TOP - 1)] if self.dot_all else [(0, 9), (11, _TOP - 1)], fold=False)]
        if character in "^$":
            return [["a", character]]
        if character == "\\":
            return [self.escape(start)]
        if character in "*+?":
            raise PatternError("there is nothing to repeat", start)
        if character == "{":
            raise PatternError("write \\{ for a brace that is not a count", start)
        return [self.character_class([(ord(character), ord(character))])]

    def group(self, start: int) -> list[Any]:
        self.depth += 1
        if self.depth > 50:
            raise PatternError("the pattern is nested too deeply", start)
        saved = (self.ignore_case, self.dot_all)
        flags = re.compile(r"\?([is]+)([:)])|\?:|\?P?<[A-Za-z_]\w*>", re.ASCII).match(self.pattern, self.position)
        if flags:
            self.position = flags.end()
            if flags.group(1):
                self.ignore_case = self.ignore_case or "i" in flags.group(1)
                self.dot_all = self.dot_all or "s" in flags.group(1)
                if flags.group(2) == ")":  # applies until the enclosing group ends
                    self.depth -= 1
                    if self.peek() in ("*", "+", "?", "{"):
                        raise PatternError("there is nothing to repeat", self.position)
                    return []
        elif self.peek() == "?":
            raise PatternError("neither look-around nor this flag is supported", start)
        code = self.alternation()
        if self.peek() != ")":
            raise PatternError("this group is not closed", start)
        self.position += 1
        self.ignore_case, self.dot_all = saved
        self.depth -= 1
        return code

    def escape(self, start: int) -> Any:
        character = self.peek()
        if character == "B":  # RE2 also matches it inside a character of several bytes
            raise PatternError("engines do not agree on \\B beside characters beyond ASCII", start)
        if character in ("A", "z", "b"):
            self.position += 1
            return ["a", {"A": "^", "z": "$"}.get(character, character)]
        return self.character_class(self.escape_class(start))

    def escape_class(self, start: int) -> Ranges:
        character = self.peek()
        self.position += 1
        if not character:
            raise PatternError("a backslash at the end", start)
        if character.lower() in _PERL:
            if self.ignore_case and character in "wW":
                raise PatternError(f"engines do not agree on \\{character} under (?i)", start)
            ranges = _PERL[character.lower()]
            return ranges if character.islower() else _negate(ranges)
        if character in _CONTROL:
            return [(_CONTROL[character], _CONTROL[character])]
        if character == "x":
            match = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\}").match(self.pattern, self.position)
            point = int(match.group(1) or match.group(2), 16) if match else _TOP
            if not match or point >= _TOP:
                raise PatternError("\\x needs two hexadecimal digits", start)
            self.position = match.end()
            return [(point, point)]
        if character.isalnum() or not character.isascii():
            raise PatternError(f"\\{character} is not supported", start)
        return [(ord(character), ord(character))]

    def bracket(self, start: int) -> Ranges:
        negate = self.peek() == "^"
        self.position += negate
        ranges: Ranges = []
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise PatternError("this bracket is not closed", start)
            first = False
            low = self.bracket_item()
            at = self.position
            if self.peek() == "-" and self.pattern[at + 1 : at + 2] not in ("]", ""):
                self.position += 1
                high = self.bracket_item()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] < low[0][0]:
                    raise PatternError("a bad range of characters", at)
                low = [(low[0][0], high[0][1])]
            ranges += low
        self.position += 1
        if self.ignore_case:
            ranges = _fold_case(ranges, start)
        return _negate(ranges) if negate else ranges

    def bracket_item(self) -> Ranges:
        start = self.position
        posix = re.compile(r"\[:(\w+):\]").match(self.pattern, start)
        if posix:
            if posix.group(1) not in _POSIX:
                raise PatternError(f"there is no class {posix.group()}", start)
            if self.ignore_case and posix.group(1) not in ("digit", "punct", "space"):
                raise PatternError(f"engines do not agree on {posix.group()} under (?i)", start)
            self.position = posix.end()
            return _POSIX[posix.group(1)]
        if self.pattern.startswith("[:", start):
            raise PatternError("this class is not supported", start)
        character = self.peek()
        self.position += 1
        if character == "\\":
            return self.escape_class(start)
        return [(ord(character), ord(character))]

    def character_class(self, ranges: Ranges, fold: bool = True) -> Any:
        if fold and self.ignore_case:
            ranges = _fold_case(ranges, self.position - 1)
        return ["c", [bound for low, high in _merge(ranges) for bound in (low, high + 1)]]


def _merge(ranges: Ranges) -> Ranges:
    merged: Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _negate(ranges: Ranges) -> Ranges:
    result, next_low = [], 0
    for low, high in _merge(ranges):
        if low > next_low:
            result.append((next_low, low - 1))
        next_low = high + 1
    if next_low < _TOP:
        result.append((next_low, _TOP - 1))
    return result


def _fold_case(ranges: Ranges, position: int) -> Ranges:
    """Return ranges with the other case of ASCII letters added.

    Beyond ASCII, this needs tables that a VM does not have.
    """
    result = list(ranges)
    for low, high in ranges:
        if high > 127 and high < _TOP - 1:  # up to the top: \D or \S, which have both cases of all letters
            raise PatternError("(?i) is supported for ASCII letters only", position)
        for point in range(max(low, 65), min(high, 122) + 1):
            if chr(point).isalpha():
                result.append((point ^ 32, point ^ 32))
                if point in _THIRD_FORM:
                    result.append((_THIRD_FORM[point], _THIRD_FORM[point]))
    return result
