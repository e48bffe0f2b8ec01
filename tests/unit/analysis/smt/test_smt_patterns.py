# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pattern as an expression of z3 has the texts that the evaluator finds a match in."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.smt.encode.patterns import in_case, samples, texts_matching
from forewarn.analysis.smt.terms import require
from forewarn.policy.functions.patterns import PatternError, compile_pattern
from forewarn.policy.functions.regex import compile_program
from forewarn.policy.functions.table import FUNCTIONS
from tools.fixtures.policy_files import HEAD, verified

z3 = require()
ATOMS = ("a", "b", "[ab]", "[^a]", ".", r"\d", r"\w", "(?i:a)", "(?s:.)", "(a|b)", "()", "é", r"\.", r"\\", "^", "$")
CHARACTERS = "abA1._\\\n é\U0001f600"


def is_in(context: Any, text: str, texts: Any) -> bool:
    written = "".join(f"\\u{{{ord(one):x}}}" for one in text)
    found = z3.simplify(z3.InRe(z3.StringVal(written, context), texts))
    assert z3.is_true(found) or z3.is_false(found)
    return bool(z3.is_true(found))


def drawn(chance: random.Random, depth: int) -> str:
    kind = chance.choice(("atom", "atom", "sequence", "sequence", "either", "repeat", "ends")) if depth else "atom"
    if kind == "atom":
        return chance.choice(ATOMS)
    inner = [drawn(chance, depth - 1) for _ in range(chance.choice((2, 2, 3)))]
    if kind == "sequence":
        return "".join(inner)
    if kind == "either":
        return f"({'|'.join(inner)})"
    if kind == "ends":
        return chance.choice(("^{}", "{}$", "^{}$", "^{}|{}$")).format(*inner)
    return f"(?:{inner[0]}){chance.choice(('*', '+', '?', '{2}', '{1,3}', '{0}', '{2,}'))}"


@pytest.mark.parametrize("kind", ["eq", "in", "starts_with", "ends_with", "contains", "matches"])
@pytest.mark.parametrize("case", ["lower_ascii", "upper_ascii"])
def test_relation_after_a_case_change_is_a_pattern(case: str, kind: str) -> None:
    chance, found = random.Random(f"{case} {kind}"), set()

    def text(most: int) -> str:
        return "".join(chance.choices("aAzZ[`{@09é", k=chance.randint(0, most)))

    for _ in range(1000):
        one, other = text(4), text(2)
        part: Any = [text(2) for _ in range(chance.randint(0, 3))] if kind == "in" else other
        if kind == "matches":
            part = compile_pattern(chance.choice(("^a", "[A-Z]", "[^a-z]z$", "(?i)az|Z", ".", "[@-Z]")))
        made = FUNCTIONS[case](one)
        expected = compile_program(part)(made) if kind == "matches" else FUNCTIONS[kind](made, part)
        assert compile_program(in_case(case, kind, part))(one) == expected, (one, part)
        found.add(expected)
    assert found == {True, False}


def test_random_patterns_and_texts() -> None:
    chance, context, pairs, matching = random.Random(5), z3.Context(), 0, 0
    for _ in range(400):
        pattern = drawn(chance, chance.choice((1, 2, 3)))
        try:
            program = compile_pattern(pattern)
        except PatternError:
            continue
        texts, search = texts_matching(program, context), compile_program(program)
        if texts is None:
            continue
        for _turn in range(12):
            text = "".join(chance.choices(CHARACTERS, k=chance.choice((0, 0, 1, 1, 2, 3, 5))))
            assert is_in(context, text, texts) == search(text), (pattern, text)
            pairs, matching = pairs + 1, matching + search(text)
    assert pairs > 3000
    assert pairs // 5 < matching < pairs * 4 // 5


@pytest.mark.parametrize(
    "pattern", ["", "^", "$", "^$", "a^", "$a", "(^|a)b", "a($|b)", "^a|b$", "(^a)*", "(a$)?", "a*?"]
)
def test_anchors(pattern: str) -> None:
    context, program = z3.Context(), compile_pattern(pattern)
    texts, search = texts_matching(program, context), compile_program(program)
    for text in ("", "a", "b", "ab", "ba", "aa", "xab", "abx", "a\n", "\U0002ffff"):
        assert is_in(context, text, texts) == search(text), text


@pytest.mark.parametrize("pattern", [r"\ba", r"\x{2ffff}", "[\U00010000-\U00030000]", r"\x{10ffff}", "a{61}"])
def test_what_has_no_exact_or_no_small_expression(pattern: str) -> None:
    assert texts_matching(compile_pattern(pattern), z3.Context()) is None


def test_characters_beyond_z3s_range_are_equivalent() -> None:
    for pattern in (".", "[^a]", r"\D", r"^\W$", "[^é]b", r"^[\x{2fffe}]"):
        search = compile_program(compile_pattern(pattern))
        for text in ("{}", "{}b", "a{}", "{0}{0}"):
            assert search(text.format("\U0002ffff")) == search(text.format("\U0010ffff"))


def dead(directory: Path, *conditions: str) -> list[str | None]:
    """Return the rules with these conditions that never decide."""
    rules = "".join(
        f"    - {{id: r{number}, condition: '{one}', output: hold}}\n" for number, one in enumerate(conditions)
    )
    found = [one for one in verified(directory, HEAD + rules) if one.certain]
    return [one.rule for one in found if one.code in ("shadowed-rule", "unsatisfiable-rule")]


@pytest.mark.parametrize(
    ("first", "second", "is_dead"),
    [
        ('d.matches("^web")', 'd.startsWith("web")', True),
        ('d.startsWith("web")', 'd.matches("^web-[0-9]+$")', True),
        ('d.contains("x")', 'd.matches("^[a-z]*x[0-9]*$")', True),
        ('d.matches("^[a-z]+$")', 'd.matches("^[b-x]{3}$")', True),
        ('d.matches("[0-9]")', 'd.matches("[0-9]{3}") && d.endsWith("q")', True),
        ('d.matches("^[b-x]{3}$")', 'd.matches("^[a-z]+$")', False),
        ('d.matches("^web")', 'd.contains("web")', False),
        ('d.matches("(?i)^web$")', 'd.matches("^[wW][eE][bB]$")', True),
        ('d.matches("^[a-z]{40}[0-9]{7}$")', 'd.matches("^[a-y]{40}[0-8]{7}$")', True),
    ],
)
def test_rules_about_patterns_are_proven(first: str, second: str, is_dead: bool, tmp_path: Path) -> None:
    conditions = [one.replace("d.", "event.Description.") for one in (first, second)]
    assert dead(tmp_path, *conditions) == (["r1"] if is_dead else [])


def test_patterns_that_exclude_each_other(tmp_path: Path) -> None:
    assert dead(tmp_path, 'event.Description.matches("^a") && event.Description.matches("^[b-z]")') == ["r0"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^(ab|cd)$", ["ab", "cd"]),
        ("^x*y$", ["y", "xy", "xxy", "xxxy"]),
        ("^[^a]b?$", ["0", "0b"]),
        (r"a[^\x00-\x{10FFFF}]", []),
    ],
)
def test_samples_of_a_pattern(pattern: str, expected: list[str]) -> None:
    assert samples(compile_pattern(pattern)) == expected
