# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Regular expressions: what RE2 matches we match, in linear time; what RE2 or we do not know is refused."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]  # the real RE2, which cel-python brings along
from forewarn.policy.functions.patterns import PatternError, compile_pattern
from forewarn.policy.functions.regex import compile_program
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

ATOMS = [
    *("a", "b", ".", "\\d", "\\D", "[ab]", "[^a]", "^", "$", "\\b", "\\B"),
    *("(a|b)", "(?:ab)", "k", "[a-c]", "x*", "(a*)*"),
    *("\\s", "\\S", "\\w", "\\W", "-", "é", "\\n", "(?i)", "(?s)", "(?i:K)"),
    *("[[:alpha:]]", "", "\\.", "|", "\\x41", "\\x{e9}"),
    *("[\\d-]", "[]a]", "[^]a]", "\\A", "\\z", "(?s:.)", "(?P<n>a)", "(?<n>b)"),
    *("[^\\n]", "[[:^alpha:]]", "[a\\]b]", "\\t"),
    *("[[:space:]]", "[\\s\\S]", "(", ")", "[", "]", "{", "}", "*", "+", "?"),
    *("{2}", "[\\w.-]", "(|a)", "()", "(?i)s", "[^\\W]"),
]  # fmt: skip
QUANTIFIERS = [
    "",
    "",
    "",
    "*",
    "+",
    "?",
    "{2}",
    "{0,2}",
    "{1,}",
    "*?",
    "+?",
    "??",
    "{0}",
    "{,2}",
    "{2,1}",
    "**",
    "{3}+",
]
TEXTS = [
    *("", "a", "b", "ab", "aab", "ba\nb", "kK\u212a", "s\u017f", "1-2", "é", "É"),
    *("aaaa bbb", "x.y", "-", "AB", "]", "\n"),
    *("aéa", "a\U0001f600_"),
    *("\x0b", "\r\n", "_", "a_b", "\u2028", "\U0001f600", "web_0", "\x85", "\xa0", "٣", "A", "S", "\ufffd"),
]  # fmt: skip


def _matcher(pattern: str) -> Any:
    """Return our matcher, after the way through JSON that an artifact takes, or None if the pattern is refused."""
    try:
        return compile_program(json.loads(json.dumps(compile_pattern(pattern))))
    except PatternError:
        return None


def _re2(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def test_random_patterns_match_what_re2_matches() -> None:
    random = Random(20260131)
    compared = refused = 0
    for _ in range(12_000):
        pattern = "".join(random.choice(ATOMS) + random.choice(QUANTIFIERS) for _ in range(random.randint(1, 4)))
        if random.random() < 0.2:
            pattern = f"({pattern}){random.choice(QUANTIFIERS)}"
        ours = _matcher(pattern)
        if ours is None:
            refused += 1
            continue
        theirs = _re2(pattern)
        assert theirs is not None, f"RE2 does not know {pattern!r}"
        for text in TEXTS:
            assert ours(text) == (theirs.search(text) is not None), (pattern, text)
            compared += 1
    assert compared > 100_000, (compared, refused)


@given(st.text(st.sampled_from([*"ab^$.*+?{}()[]|\\-,:0123PiUsmdwbxAzQE<>=!\né"]), max_size=12))
@settings(max_examples=examples(1000), deadline=None)
def test_accepted_pattern_means_the_same_to_re2(pattern: str) -> None:
    ours = _matcher(pattern)
    if ours is not None:
        theirs = _re2(pattern)
        assert theirs is not None
        for text in ("", "a", "ab\n", "0-3", "é", "PiUsm", "\\"):
            assert ours(text) == (theirs.search(text) is not None)


def test_every_character_in_every_class() -> None:
    """All of the first 2¹¹ characters, and some beyond, alone against classes, folded and not."""
    characters = [*map(chr, range(0x800)), *"\u1e9e\u2028\u2126\u212a\u212b\ufeff\uffff\U0001f600\U0010ffff"]
    for pattern in (
        *("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", ".", "(?s).", "[^a]", "[[:punct:]]", "[[:space:]]", "[[:word:]]"),
        *(
            "[[:upper:]]",
            "[[:lower:]]",
            "[[:xdigit:]]",
            "(?i)[a-z]",
            "(?i)k",
            "(?i)S",
            "(?i)[^k]",
            "(?i)[^s-t]",
            "\\b.",
        ),
        *("(?i)[\\d]", "(?i)\\D", "(?i)[^\\s]", "(?i)[!-_]", "[!-~]", "[\\x00-\\x7f]", "(?i)[Z-a]", "(?i)\\x4b"),
    ):
        ours, theirs = _matcher(f"^(?:{pattern})$"), _re2(f"^(?:{pattern})$")
        if ours is None:
            ours, theirs = _matcher(pattern), _re2(pattern)
        assert ours is not None, pattern
        wrong = [c for c in characters if ours(c) != (theirs.search(c) is not None)]
        assert not wrong, (pattern, wrong[:10])


@pytest.mark.parametrize(
    "pattern",
    ["(a*)*b", "(a|a)*b", "(a+)+b", "(.*)(.*)(.*)(.*)b", "(a?){50}a{50}b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?:a|aa)+$"],
)
def test_no_pattern_is_slow_on_a_hostile_text(pattern: str) -> None:
    """The time grows with the text, not with its powers: 20,000 characters, and half of them for comparison."""
    search = _matcher(pattern)
    text = "a" * 20_000 + "!"
    search(text[:100])
    durations = []
    for part in (text[10_000:], text):
        start = time.thread_time()  # of this thread alone, however busy the machine
        assert search(part) is False
        durations.append(time.thread_time() - start)
    assert durations[1] < 10 * durations[0] + 0.1  # twice the text: not a hundred times as long
    assert durations[1] < 20


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?=a)", "look-around"),
        ("(?!a)", "look-around"),
        ("(?<=a)", "look-around"),
        ("(?<!a)", "look-around"),
        ("(?>a)", "look-around"),
        ("(?m)^a", "flag"),
        ("(?U)a", "flag"),
        ("(?-i)a", "flag"),
        ("(?#c)", "flag"),
        ("(a)\\1", "not supported"),
        ("\\pL", "not supported"),
        ("\\p{Greek}", "not supported"),
        ("\\PN", "not supported"),
        ("\\C", "not supported"),
        ("\\Q.\\E", "not supported"),
        ("\\Z", "not supported"),
        ("\\G", "not supported"),
        ("\\h", "not supported"),
        ("\\u0041", "not supported"),
        ("\\é", "not supported"),
        ("\\07", "not supported"),
        ("\\x4", "hexadecimal"),
        ("\\x{110000}", "hexadecimal"),
        ("\\", "backslash"),
        ("a{1001}", "at most"),
        ("a{2,1}", "in order"),
        ("a{1,1001}", "at most"),
        ("a{" + "9" * 5000 + "}", "at most"),  # Python refuses to read so many digits
        ("(a{1000}){1000}", "too large"),
        ("(" * 60 + ")" * 60, "nested too deeply"),
        ("a{,2}", "brace"),
        ("{", "brace"),
        ("a**", "repeat"),
        ("a+*", "repeat"),
        ("*", "nothing to repeat"),
        ("(?i)*", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(", "not closed"),
        (")", "no group"),
        ("[", "not closed"),
        ("[]", "not closed"),
        ("[a", "not closed"),
        ("[b-a]", "range"),
        ("[a-\\d]", "range"),
        ("[[:foo:]]", "no class"),
        ("[[.a.]]", None),
        ("[[:^alpha:]]", "class"),
        ("(?i)é", "ASCII"),
        ("(?i)\\w", "agree"),
        ("\\B", "agree"),
        ("(?i)[[:alpha:]]", "agree"),
        ("(?P<1>a)", "flag"),
    ],
)
def test_pattern_is_refused(pattern: str, message: str | None) -> None:
    if message is None:  # no class to RE2 either, but a set of characters
        ours, theirs = _matcher(pattern), _re2(pattern)
        assert ours is None or all(ours(text) == (theirs.search(text) is not None) for text in TEXTS)
        return
    with pytest.raises(PatternError, match=message) as raised:
        compile_pattern(pattern)
    assert 0 <= raised.value.position <= len(pattern)


@pytest.mark.parametrize(
    "program",
    [
        [["j", 5], ["m"]],
        [["j", -1], ["m"]],
        [["s", 1, 9], ["m"]],
        [["c", [97, 98]]],
        [["c", ["a", "b"]], ["m"]],
        [["c", [97]], ["m"]],
        [["c", [98, 97]], ["m"]],
        [["a", "x"], ["m"]],
        [["z"], ["m"]],
        [["s", 1], ["m"]],
        [["j", True], ["m"]],
        [["j", 1.0], ["m"]],
        [[], ["m"]],
        [],
        "m",
        [{"j": 1}, ["m"]],
        None,
    ],
)
def test_damaged_program_is_refused_before_it_runs(program: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        compile_program(program)
