# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same expressions over the same events, here and in two other CEL engines: no answer may differ.

An evaluation is one expression on one set of values, here and in another engine; FOREWARN_SIZE=soak asks for a million
of them. How many there were of each outcome: ``-rP``.
"""

# ruff: noqa: SIM905  # a list of short texts reads better as one
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.types import Declarations
from forewarn.compiler.testing.outcome import Outcome
from tools.generators.cel_calls import Composer, calls, sample
from tools.generators.cel_expressions import Generator
from tools.generators.cel_variables import DECLARATIONS, values
from tools.judges.cel_oracles import MISSING, CelPython, Google, Ours, strict
from tools.suite.sizes import SEED, SIZE, enough

EVALUATIONS = SIZE.cel_evaluations
FIRST = 20260131 + SEED
# The shares of expressions over events, evaluated by each engine, of calls of calls, and of calls by themselves.
EXPRESSIONS, PLAIN_EXPRESSIONS, COMPOSED, CALLS = (EVALUATIONS * share // 100 for share in (12, 3, 45, 40))
CHUNK = 6_000  # evaluations of one test
VALUES = min(150, EVALUATIONS // 160)  # of each operator and text function by itself
SHOWN = 5  # disagreements that a test shows

ALL_CALLS = list(calls())

# Google's engine fails where a text is cut from before its end up to its end; by the extension's definition (and in
# cel-go) only an end beyond the text is an error.
GOOGLE_DEFECT = "<start> or <end> is greater than <string>.size()"
# And it gives up the whole evaluation for a key given twice, an error that && and its like absorb as any other. Where
# we have a value and no part of it was an error, for no key of a map that all() or exists() visit, that is no excuse.
# It fails on a difference of times of 9,223,372,036 seconds and a fraction, which is less than the longest duration.
OVERFLOW = "OUT_OF_RANGE: integer overflow"
DUPLICATE = "ALREADY_EXISTS: duplicate key in map"


def _explained(source: str, ours: Outcome, theirs: Outcome, errors: set[str]) -> str | None:
    """Return why outcomes may differ, or None."""
    if strict(ours, theirs, errors):
        return "stricter on purpose"
    if theirs.kind == "error" and ours.kind == "value":
        if GOOGLE_DEFECT in theirs.detail or (OVERFLOW in theirs.detail and " - " in source):
            return "defect of the other engine"
        if DUPLICATE in theirs.detail and errors:
            return "defect of the other engine"
    return None


class Comparison:
    """Counts the outcomes of evaluations here and there, and keeps those that disagree."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.disagreements: list[str] = []

    def compare(
        self, ours: Ours, engine: Google | CelPython, given: Mapping[str, Any], may_fail_there: bool = False
    ) -> None:
        """Evaluate here and there. ``may_fail_there``: where the other engine fails, a third one decides."""
        assert ours.type is not None
        outcome, theirs = ours.run(given), engine.run(ours.source, given, ours.type)
        self.count["evaluations"] += 1
        if outcome.same(theirs):
            self.count[f"same {outcome.kind}"] += 1
        elif may_fail_there and outcome.kind == "value" and theirs.kind == "error":
            self.count["failed there"] += 1
        else:
            reason = _explained(ours.source, outcome, theirs, ours.errors(given))
            self.count[reason or "disagreements"] += 1
            if reason is None:
                shown = _shown(given, ours.source)
                self.disagreements.append(f"{ours.source}\nhere: {outcome}\nthere: {theirs}\n{shown}")

    def end(self, what: str) -> Counter[str]:
        """Print the counts, and fail if there was a disagreement."""
        print(f"differential, {what}: {dict(self.count)}")
        assert not self.disagreements, "\n\n".join(self.disagreements[:SHOWN])
        return self.count


def _chunks(evaluations: int) -> range:
    return range(FIRST, FIRST + max(1, -(-evaluations // CHUNK)))


def _random_expressions(engine: Google | CelPython, plain: bool, evaluations: int, inputs: int, seed: int) -> Any:
    random, comparison = Random(seed), Comparison()
    while comparison.count["evaluations"] < evaluations:
        ours = Ours(Generator(random, plain).expression(), DECLARATIONS)
        if ours.type is None:
            comparison.count["refused"] += 1
            continue
        for _ in range(inputs):
            comparison.compare(ours, engine, values(random, plain), may_fail_there=plain)
    return comparison.end(f"expressions, {type(engine).__name__}")


def _shown(given: Mapping[str, Any], source: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not MISSING and name in source}


@pytest.mark.parametrize("seed", _chunks(EXPRESSIONS))
def test_random_expressions_against_google(seed: int) -> None:
    evaluations = min(CHUNK, EXPRESSIONS)
    count = _random_expressions(Google(DECLARATIONS), False, evaluations, 2, seed)
    assert count["same value"] > 0.5 * evaluations, count
    assert count["same error"] > 0.1 * evaluations, count
    assert count["refused"] < 0.1 * evaluations, count
    assert count["stricter on purpose"] < 0.05 * evaluations, count


@pytest.mark.parametrize("keys", ["'role': 1, 'a': 2", "'a': 2, 'role': 1"])
def test_keys_are_visited_in_any_order(keys: str) -> None:
    """Google's engine begins with another key from process to process: the judge knows the errors of all."""
    ours = Ours(f"{{{keys}}}.all(x, {{'a': 0, x: 1}}.size() == 1)", Declarations({}))
    assert ours.run({}) == Outcome("value", False)
    assert ours.errors({}) == {"the key 'a' is given more than once"}


@pytest.mark.parametrize("seed", _chunks(PLAIN_EXPRESSIONS))
def test_random_expressions_against_cel_python(seed: int) -> None:
    """Where cel-python fails and we have a value, Google's engine decides."""
    evaluations = min(CHUNK, PLAIN_EXPRESSIONS)
    count = _random_expressions(CelPython(DECLARATIONS), True, evaluations, 2, seed)
    assert count["same value"] > 0.5 * evaluations, count
    assert count["same error"] > 0.05 * evaluations, count
    assert count["failed there"] < 0.05 * evaluations, count
    assert count["refused"] < 0.1 * evaluations, count


@pytest.mark.parametrize("seed", _chunks(CALLS))
def test_every_call_with_every_kind_of_argument(seed: int) -> None:
    """Each overload and each macro by itself; every tenth time the values are written into the expression, too."""
    random, comparison = Random(seed), Comparison()
    each = -(-min(CHUNK, CALLS) // len(ALL_CALLS))
    for call in ALL_CALLS:
        declarations = Declarations(call.variables)
        ours = Ours(call.source, declarations)
        if ours.type is None:
            comparison.count["refused"] += 1
            continue
        given, written = Google(declarations), Google(declarations, written=True)
        for number in range(each):
            extreme = number % 10 == seed % min(each, 10)
            engine = written if extreme else given
            comparison.compare(ours, engine, {k: sample(random, type_, extreme) for k, type_ in call.variables.items()})
    count = comparison.end("calls")
    assert count["refused"] < 0.1 * len(ALL_CALLS), count  # operators that no type of a dyn() makes possible
    evaluations = count["evaluations"]
    assert count["same value"] > 0.5 * evaluations, count  # many calls of dyn() have no overload when they run
    assert count["same error"] > 0.05 * evaluations, count


@pytest.mark.parametrize("seed", _chunks(COMPOSED))
def test_calls_of_calls(seed: int) -> None:
    """Any call in the place of another's argument, over variables of all types; each on twelve sets of values."""
    random, comparison, evaluations = Random(seed), Comparison(), min(CHUNK, COMPOSED)
    results = {call: Ours(call.source, Declarations(call.variables)).type for call in ALL_CALLS}
    composer = Composer({call: type_ for call, type_ in results.items() if type_ is not None})
    while comparison.count["evaluations"] < evaluations:
        call = composer.compose(random, random.randint(2, 4))
        declarations = Declarations(call.variables)
        ours = Ours(call.source, declarations)
        if ours.type is None:
            comparison.count["refused"] += 1
            continue
        google = Google(declarations)
        for _ in range(12):
            comparison.compare(ours, google, {k: sample(random, type_, False) for k, type_ in call.variables.items()})
    count = comparison.end("calls of calls")
    assert count["same value"] > enough(28 * evaluations // 100), count
    assert count["same error"] > 0.1 * evaluations, count
    assert count["refused"] < 0.1 * evaluations, count


OPERATORS = ("+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=")
NUMBERS = Declarations({"a": t.INT, "b": t.INT, "x": t.DOUBLE, "y": t.DOUBLE, "u": t.UINT, "v": t.UINT, "s": t.STRING})
EDGES = (0, 1, -1, 2, -2, 3, 7, -7, 10, 2**31, -(2**31), 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63),
         -(2**63) + 1, 3037000499, 3037000500, 4611686018427387904, -4611686018427387904)  # fmt: skip
DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"),
           2.0**53, 2.0**63, -(2.0**63), 2.0**64, 9223372036854774784.0, 18446744073709549568.0)  # fmt: skip
NUMBER_TEXTS = ("0", "-0", "+5", "007", "-7", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
                "18446744073709551615", "18446744073709551616", "1.5", ".5", "5.", ".", "", " 1", "1 ",
                "1e3",
                "1E-3", "1e309", "-1e309", "inf", "-Infinity", "NaN", "nan", "0x10", "1_000", "true", "TRUE",
                "True", "t", "T", "1", "f", "F", "false", "tRUE", "yes", "é", "١", "--1", "1u", "1e", "e1")  # fmt: skip


def test_arithmetic_comparison_and_conversion_at_the_edges() -> None:
    google = Google(NUMBERS)
    count: Counter[str] = Counter()
    binary = [f"{left} {op} {right}" for left, right in ("ab", "uv") for op in (*OPERATORS, "%")]
    binary += [f"x {op} y" for op in OPERATORS]
    unary = ["-a", "-x", "int(x)", "uint(x)", "uint(a)", "int(u)", "double(a)", "double(u)", "string(a)", "string(u)"]
    unary += ["int(s)", "uint(s)", "double(s)", "bool(s)", "bytes(s)", "string(bytes(s))", "[x] == [y]", "x in [y]"]
    random = Random(FIRST)
    for source in binary + unary:
        ours = Ours(source, NUMBERS)
        assert ours.type is not None, (source, ours.findings)
        for number in range(len(NUMBER_TEXTS) if "s" in source else VALUES):
            given = {
                "a": random.choice(EDGES),
                "b": random.choice(EDGES),
                "x": random.choice(DOUBLES),
                "y": random.choice(DOUBLES),
                "u": abs(random.choice(EDGES)) * random.choice((1, 2)) % 2**64,
                "v": abs(random.choice(EDGES)),
                "s": NUMBER_TEXTS[number % len(NUMBER_TEXTS)],
            }
            outcome, theirs = ours.run(given), google.run(source, given, ours.type)
            if outcome.same(theirs):
                count[outcome.kind] += 1
            else:
                assert strict(outcome, theirs), (source, given, outcome, theirs)
                count["stricter on purpose"] += 1
    print(f"differential, numbers: {dict(count)}")
    assert count["value"] > 16 * VALUES, count
    assert count["error"] > 2 * VALUES, count


TEXTS = Declarations({"s": t.STRING, "p": t.STRING, "q": t.STRING, "i": t.INT, "j": t.INT, "l": t.list_of(t.STRING)})
TEXT_CALLS = (
    "s.charAt(i)~s.indexOf(p)~s.indexOf(p, i)~s.lastIndexOf(p)~s.lastIndexOf(p, i)~s.lowerAscii()~s.upperAscii()~"
    "s.replace(p, q)~s.replace(p, q, i)~s.split(p)~s.split(p, i)~s.substring(i)~s.substring(i, j)~s.trim()~s.reverse()~"
    "l.join()~l.join(p)~s.contains(p)~s.startsWith(p)~s.endsWith(p)~s.size()~s + p~s < p~s == p~s in l~l[i]~l == [s, p]"
).split("~")


def test_string_functions() -> None:
    google = Google(TEXTS)
    count: Counter[str] = Counter()
    random = Random(FIRST)
    characters = "aabbA,. \té\u00a0\u0085\u2028\u200b\u1680\x1c\x1fßİ日\U0001f600\u0301"
    for source in TEXT_CALLS:
        ours = Ours(source, TEXTS)
        assert ours.type is not None, (source, ours.findings)
        for _ in range(VALUES):
            s, p, q = ("".join(random.choice(characters) for _ in range(random.choice((0, 1, 2, 5)))) for _ in "spq")
            if s and random.random() < 0.4:
                start = random.randrange(len(s))
                p = s[start : start + random.randint(0, 2)]
            given = {"s": s, "p": p, "q": q, "i": random.randint(-2, 6), "j": random.randint(-2, 6), "l": [s, q, "a"]}
            outcome, theirs = ours.run(given), google.run(source, given, ours.type)
            reason = None if outcome.same(theirs) else _explained(ours.source, outcome, theirs, set())
            assert outcome.same(theirs) or reason, (source, given, outcome, theirs)
            count[reason or outcome.kind] += 1
    print(f"differential, texts: {dict(count)}")
    assert count["value"] > 16 * VALUES, count
    assert count["error"] > 2 * VALUES, count
