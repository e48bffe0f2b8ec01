# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same expressions over the same events, here and in two other CEL engines: no answer may differ.

FOREWARN_DIFFERENTIAL=20 makes twenty times as many expressions, from other seeds.
"""

# ruff: noqa: SIM905  # a list of short texts reads better as one
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from forewarn.compiler import types as t
from forewarn.compiler.types import Declarations
from tools.cel_expressions import DECLARATIONS, Generator, values
from tools.cel_oracles import MISSING, CelPython, Google, Ours, Outcome, strict

FACTOR = int(os.environ.get("FOREWARN_DIFFERENTIAL", "1"))

# Google's engine fails where a text is cut from before its end up to its end; by the extension's definition (and in
# cel-go) only an end beyond the text is an error.
GOOGLE_DEFECT = "<start> or <end> is greater than <string>.size()"


def _explained(ours: Outcome, theirs: Outcome, errors: set[str]) -> str | None:
    """Return why outcomes may differ, None if they may not."""
    if strict(ours, theirs, errors):
        return "stricter on purpose"
    if theirs.kind == "error" and GOOGLE_DEFECT in theirs.detail and ours.kind == "value":
        return "defect of the other engine"
    return None


def _run(engine: Google | CelPython, plain: bool, expressions: int, seed: int) -> Counter[str]:
    """Compare; ``plain`` as Generator has it. Where cel-python fails and we have a value, Google is the judge."""
    random = Random(seed)
    count: Counter[str] = Counter()
    for _ in range(expressions):
        source = Generator(random, plain).expression()
        ours = Ours(source, DECLARATIONS)
        if ours.type is None:
            count["refused"] += 1
            continue
        for _ in range(2):
            given = values(random, plain)
            outcome, theirs = ours.run(given), engine.run(source, given, ours.type)
            if outcome.same(theirs):
                count[f"same {outcome.kind}"] += 1
            elif plain and outcome.kind == "value" and theirs.kind == "error":
                count["failed there"] += 1
            else:
                reason = _explained(outcome, theirs, ours.errors(given))
                assert reason, f"{source}\nhere: {outcome}\nthere: {theirs}\n{_shown(given, source)}"
                count[reason] += 1
    print(f"differential, {type(engine).__name__}: {dict(count)}")
    return count


def _shown(given: Mapping[str, Any], source: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not MISSING and name in source}


@pytest.mark.parametrize("seed", range(4 * FACTOR))
def test_random_expressions_against_google(seed: int) -> None:
    count = _run(Google(DECLARATIONS), False, 1500, 20260131 + seed)
    assert count["same value"] > 1500, count
    assert count["same error"] > 500, count
    assert count["refused"] < 150, count
    assert count["stricter on purpose"] < 60, count


@pytest.mark.parametrize("seed", range(2 * FACTOR))
def test_random_expressions_against_cel_python(seed: int) -> None:
    count = _run(CelPython(DECLARATIONS), True, 400, 20260131 + seed)
    assert count["same value"] > 400, count
    assert count["same error"] > 50, count
    assert count["failed there"] < 20, count
    assert count["refused"] < 40, count


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
    random = Random(20260131)
    for source in binary + unary:
        ours = Ours(source, NUMBERS)
        assert ours.type is not None, (source, ours.findings)
        for number in range(len(NUMBER_TEXTS) if "s" in source else 150):
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
    assert count["value"] > 2500, count
    assert count["error"] > 300, count


TEXTS = Declarations({"s": t.STRING, "p": t.STRING, "q": t.STRING, "i": t.INT, "j": t.INT, "l": t.list_of(t.STRING)})
TEXT_CALLS = (
    "s.charAt(i)~s.indexOf(p)~s.indexOf(p, i)~s.lastIndexOf(p)~s.lastIndexOf(p, i)~s.lowerAscii()~s.upperAscii()~"
    "s.replace(p, q)~s.replace(p, q, i)~s.split(p)~s.split(p, i)~s.substring(i)~s.substring(i, j)~s.trim()~s.reverse()~"
    "l.join()~l.join(p)~s.contains(p)~s.startsWith(p)~s.endsWith(p)~s.size()~s + p~s < p~s == p~s in l~l[i]~l == [s, p]"
).split("~")


def test_string_functions() -> None:
    google = Google(TEXTS)
    count: Counter[str] = Counter()
    random = Random(20260131)
    characters = "aabbA,. \té\u00a0\u0085\u2028\u200b\u1680\x1c\x1fßİ日\U0001f600\u0301"
    for source in TEXT_CALLS:
        ours = Ours(source, TEXTS)
        assert ours.type is not None, (source, ours.findings)
        for _ in range(150):
            s, p, q = ("".join(random.choice(characters) for _ in range(random.choice((0, 1, 2, 5)))) for _ in "spq")
            if s and random.random() < 0.4:
                start = random.randrange(len(s))
                p = s[start : start + random.randint(0, 2)]
            given = {"s": s, "p": p, "q": q, "i": random.randint(-2, 6), "j": random.randint(-2, 6), "l": [s, q, "a"]}
            outcome, theirs = ours.run(given), google.run(source, given, ours.type)
            reason = None if outcome.same(theirs) else _explained(outcome, theirs, set())
            assert outcome.same(theirs) or reason, (source, given, outcome, theirs)
            count[reason or outcome.kind] += 1
    print(f"differential, texts: {dict(count)}")
    assert count["value"] > 2500, count
    assert count["error"] > 300, count
