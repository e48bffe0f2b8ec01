# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text to syntax tree: literals, operators and names are read as Google's CEL reads them, or refused."""

# ruff: noqa: SIM905  # a list of short texts reads better as one
from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.expression import CODES, ExpressionError, check, compile_expression
from forewarn.compiler.cel.types import Declarations
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.judges.cel_oracles import Google, Ours, strict
from tools.suite.sizes import SEED, examples

NAMES = Declarations({"b": t.BOOL, "i": t.INT, "s": t.STRING, "x": t.map_of(t.STRING, t.INT)})
VALUES = {"b": True, "i": 5, "s": "hé", "x": {"a": 1, "package": 2}}
GOOGLE = Google(NAMES)

# Texts that each of these engines has misread at some time.
READ_ALIKE = r"""
1in[1] ~ 'a'in x ~ true&&b ~ -.5 ~ 1e5 ~ 1E+5 ~ 007 ~ -0x10 ~ 0xFF ~ 1u ~ 1U ~ 0x1U ~ --1 ~ -i ~ --i ~ ---i
!!b ~ - 1 ~ i -1 ~ i-1 ~ i--1 ~ i---1 ~ -9223372036854775808 ~ 9223372036854775807 ~ 18446744073709551615u
1 < 2 == true ~ b == b == b ~ !b == b ~ !b in [b] ~ -i * 2 ~ -i.size == 1 || true ~ b ? 1 : b ? 2 : 3
b || b ? 1 : 2 ~ b || b && !b ~ 1 + 2 * 3 - 4 / 2 % 3 ~ 2 * (3 + 4) ~ x.package ~ x.a ~ b // a comment
'// none' + s ~ '\?' ~ '\`' ~ '\X41\x41' ~ '\101\377' ~ '\u00e9\U0001F600' ~ b'é' ~ b'\xff\377\101' ~ br'\x'
bR'\\x' ~ r'\n' ~ R"\n" ~ '\'' ~ "\"" ~ '''a'b''' ~ '''a''b''' ~ '''''' ~ \"\"\"a"b\"\"\" ~ '''a\'''b'''
'\a\b\f\n\r\t\v\\' ~ has(x.a) ~ has((x).b) ~ x['a'] ~ {'a': 1}.a ~ {'a': {'b': 1}}.a.b ~ [[1], [2, 3]][1][0]
[1, 2].map(i, i + 1) ~ [1].exists(i, true) && i == 5 ~ [[1]].all(i, i.all(i, i == 1)) ~ size([1, 2])
[1, 2].size() ~ ('a').size()
""".replace('\\"\\"\\"', '"""').replace("\n", " ~ ")


@pytest.mark.parametrize("source", [part.strip() for part in READ_ALIKE.split(" ~ ") if part.strip()])
def test_text_is_read_as_google_reads_it(source: str) -> None:
    ours = Ours(source, NAMES)
    if "i.size == 1" in source:  # an int has no fields, there as here
        assert ours.type is None
        return
    assert ours.type is not None, ours.findings
    theirs = GOOGLE.run(source, VALUES, ours.type)
    assert ours.run(VALUES).same(theirs), theirs


@pytest.mark.parametrize(
    ("source", "code", "start", "end"),
    [
        ("", "syntax", 0, 0),
        ("  ", "syntax", 0, 0),
        ("1 +", "syntax", 3, 3),
        ("b and b", "syntax", 2, 5),
        ("b = b", "syntax", 2, 3),
        ("b & b", "syntax", 2, 3),
        ("'a' inx", "syntax", 4, 7),  # the grammar's tokens would read: 'a' in x
        ("x.in", "syntax", 2, 4),
        ("x.null", "syntax", 2, 6),
        ("x.true", "syntax", 2, 6),
        ("x.in(b)", "syntax", 2, 4),
        ("'open", "syntax", 0, 5),
        ("'a' 'b'", "syntax", 4, 5),
        ("b\u2028", "syntax", 1, 2),
        ("b\xa0&& b", "syntax", 1, 2),
        ("i\x00", "syntax", 1, 2),
        ("[1,,]", "syntax", 3, 4),
        ("[,]", "syntax", 1, 2),
        ("size([1],)", "syntax", 9, 10),
        ("x.`a", "syntax", 2, 3),
        ("`a`", "syntax", 0, 1),
        ("i{}", "unsupported", 0, 3),  # a message without fields is still a message
        ("x.a{}", "unsupported", 0, 5),
        ("{}{}", "unsupported", 0, 4),
        ("x{a: 1}", "unsupported", 0, 7),
        (". .i", "syntax", 2, 3),
        (".has(x.a)", "bad-macro", 0, 9),  # to other engines, a dot makes a function of a macro
        (".cel.bind(y, i, y)", "bad-macro", 0, 18),
        (".math.greatest(i, 2)", "bad-macro", 0, 20),
        (".math.least(i, 2)", "bad-macro", 0, 17),
        ("[1].all(.y, true)", "bad-macro", 0, 17),
        ("cel.bind(.y, i, i)", "bad-macro", 9, 11),
        ("optional.of(i).optMap(.y, i)", "bad-macro", 22, 24),
        ("for", "reserved-word", 0, 3),
        ("[1].all(__result__, true)", "reserved-word", 8, 18),
        ("1.", "bad-number", 0, 2),
        ("1.e5", "bad-number", 0, 4),
        ("9223372036854775808", "bad-number", 0, 19),
        ("- 9223372036854775808", "bad-number", 2, 21),
        ("-9223372036854775809", "bad-number", 0, 20),
        ("18446744073709551616u", "bad-number", 0, 21),
        ("-" + "9" * 30, "bad-number", 0, 31),
        ("-0x" + "8" * 30, "bad-number", 0, 33),
        ("-" + "9" * 5000, "bad-number", 0, 5001),
        ("[1].all(in, true)", "reserved-word", 8, 10),
        ("-1u", "bad-number", 0, 3),
        ("1e999", "bad-number", 0, 5),
        ("1" * 5000, "bad-number", 0, 5000),  # Python refuses to read so many digits
        ("0x" + "f" * 5000, "bad-number", 0, 5002),
        ("1" * 5000 + "u", "bad-number", 0, 5001),
        (r"'\q'", "bad-escape", 1, 3),
        (r"'\400'", "bad-escape", 1, 3),
        (r"'\08'", "bad-escape", 1, 3),
        (r"'\ud800'", "bad-escape", 1, 7),
        (r"b'\u00e9'", "bad-escape", 2, 8),
        (r"'''a\'''", "syntax", 0, 8),
        (r"r'\'", "engines-disagree", 0, 4),  # valid for cel-go, not for cel-cpp
        ("r'''a\\'''", "engines-disagree", 0, 9),
        ("b'''a?'''", "engines-disagree", 0, 9),
        ("'''a\nb'''", "literal-newline", 4, 5),
        ("'''a\rb'''", "literal-newline", 4, 5),
        ("'a" + "b" * 10_000 + "'", "too-long", 0, 1),
        ("(" * 70 + "b" + ")" * 70, "too-deep", None, None),
    ],
)
def test_text_is_refused_at_its_place(source: str, code: str, start: int | None, end: int | None) -> None:
    findings = check(source, NAMES).findings
    assert [finding.code for finding in findings] == [code]
    if start is not None:
        assert (findings[0].start, findings[0].end) == (start, end)
    assert len(findings[0].message) < 200


def test_leading_zeros_do_not_make_numbers_too_long() -> None:
    assert compile_expression("0" * 5000 + "7", {})({}) == 7
    assert compile_expression("-0x" + "0" * 5000 + "ff", {})({}) == -255


def test_comment_ends_with_the_line_feed_alone() -> None:
    """As in ANTLR's grammar of CEL: a carriage return does not end it."""
    assert compile_expression("true // \r && false", {})({}) is True
    assert compile_expression("true // c\n && false", {})({}) is False


def _pieces(random: Random, pieces: list[str], most: int) -> str:
    return "".join(random.choice(pieces) for _ in range(random.randint(0, most)))


def _compare(sources: list[str]) -> Counter[str]:
    """Compare each with Google's reading. To refuse is always right; to accept what it refuses is not."""
    count: Counter[str] = Counter()
    for source in sources:
        ours = Ours(source, NAMES)
        if ours.type is None:
            assert all(finding.code in CODES for finding in ours.findings)
            count["refused"] += 1
            continue
        outcome, theirs = ours.run(VALUES), GOOGLE.run(source, VALUES, ours.type)
        assert outcome.same(theirs) or strict(outcome, theirs), f"{source!r}: {outcome} here, {theirs} there"
        count["same"] += 1
    return count


LITERAL_PIECES = (
    "' \" ''' \"\"\" \\ \\\\ \\n \\x41 \\u00e9 \\U0001F600 \\101 \\? \\` a b é r ? // 0 \\x \\\" \\' \\xff".split()
)


def test_random_text_literals() -> None:
    random = Random(SEED)
    sources = []
    for _ in range(examples(6_000)):
        quote = random.choice(("'", '"', "'''", '"""'))
        prefix = random.choice(("", "", "r", "R", "b", "B", "br", "bR", "rb"))
        sources.append(prefix + quote + _pieces(random, LITERAL_PIECES, 5) + quote)
    count = _compare(sources)
    assert count["same"] > examples(2_500), count


TOKENS = (
    "1~2~-1~0x1F~1u~1.5~.5~1e2~i~b~s~x~x.a~true~false~-~!~+~*~/~%~==~!=~<~<=~in~ in ~&&~||~?~:~(~)~[~"
    "]~[1, 2]~['a']~'a'~.~.size()~.a~{~}~{}~,~ ~\t~//c\n~has(x.a)~x['a']~[i]~y~.map(y, y)~"
    ".all(y, y == 1)~.all(.y, b)~cel.bind(y, i, y)~math.greatest(i, 2)~.exists(y, y > 1)~00~1.~e~u~_~b?1:2"
).split("~")


def test_random_sequences_of_tokens() -> None:
    random = Random(SEED)
    atoms, operators = ["1", "i", "-1", "2u", "1.5", "s", "'a'", "b", "true", "x.a", "[1]", "!b", "-i"], TOKENS[15:27]
    sources = [_pieces(random, TOKENS, 8) for _ in range(examples(8_000))]
    sources += [
        random.choice(atoms) + _pieces(random, [f" {op} {atom}" for op in operators for atom in atoms], 4)
        for _ in range(examples(8_000))
    ]
    count = _compare(sources)
    assert count["same"] > examples(1_000), count


@given(st.text(st.sampled_from([*"abin.()[]{}'\"\\,:?!-+/%<>=&|01xu \n\té\ud800\x00"]), max_size=60))
@settings(max_examples=examples(400), deadline=None)
def test_no_text_makes_the_compiler_raise(source: str) -> None:
    findings = check(source, NAMES).findings
    assert all(finding.code in CODES and 0 <= finding.start <= finding.end <= len(source) for finding in findings)


def test_error_names_source_place_and_code() -> None:
    with pytest.raises(ExpressionError, match=r"character 1: there is no variable evnt \[undeclared-name\]"):
        compile_expression("evnt.X == 1 || true", {"event": t.INT})
