# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is called with whatever: it is reported with its place, or it runs and has a value or an error of CEL."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.expression import ExpressionError, compile_expression
from forewarn.compiler.cel.types import RecordField, Type
from forewarn.policy.evaluation_error import EvaluationError, InternalError
from tools.suite.sizes import examples, seeds

RECORDS = {
    "thing": {
        "Name": RecordField(t.STRING),
        "Count": RecordField(t.INT),
        "Sure": RecordField(t.INT, always_exists=True),
    }
}
VARIABLES = {
    "thing": Type("record", name="thing"),
    "things": t.list_of(Type("record", name="thing")),
    "i": t.INT,
    "s": t.STRING,
    "l": t.list_of(t.INT),
    "m": t.map_of(t.STRING, t.INT),
    "when": t.TIMESTAMP,
    "span": t.DURATION,
}
VALUES = {
    "thing": {"Name": "a", "Sure": 1},
    "things": [{"Sure": 1}, {"Count": 2, "Sure": 2}],
    "i": 1,
    "s": "a",
    "l": [1, 2],
    "m": {"a": 1},
    "when": 10**18,
    "span": 10**9,
}
ATOMS = (
    *VARIABLES,
    *(
        "thing.Name",
        "thing.?Count",
        "things[0]",
        "things[?0]",
        "l[?5]",
        "m.?b",
        "optional.none()",
        "optional.of(dyn(1))",
    ),
    *("1", "-2", "3u", "1.5", "'a'", "b'a'", "true", "null", "[]", "{}", "[1, 'a']", "{1: 'a', 'b': 2}", "[[1]]"),
    *("dyn(1)", "dyn('a')", "dyn([1])", "dyn({'a': 1})", "int", "type(s)", "list", "[?m.?a]", "{'a': optional.of(1)}"),
    *("duration('1s')", "timestamp('2026-01-01T00:00:00Z')", "unknown_name", "s.?x", "cel.bind(x, l, x)"),
)
FUNCTIONS = (
    *("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint", "size", "has"),
    *("matches", "getDate", "distinct", "math.greatest", "math.least", "math.abs", "math.sign", "math.ceil"),
    *("math.bitAnd", "math.bitNot", "math.bitShiftLeft", "math.isNaN", "sets.contains", "sets.equivalent"),
    *("sets.intersects", "lists.range", "strings.quote", "cel.bind", "cel.block", "nothing.at"),
    *("optional.of", "optional.none", "optional.ofNonZeroValue", "optional.unwrap"),
)
LOOPS = (
    *("all", "exists", "exists_one", "existsOne", "map", "filter", "sortBy"),
    *("transformList", "transformMap", "transformMapEntry"),
)
METHODS = (
    *LOOPS,
    *("size", "contains", "startsWith", "endsWith", "matches", "charAt", "indexOf", "lastIndexOf", "lowerAscii"),
    *("replace", "split", "substring", "trim", "reverse", "join", "distinct", "slice", "sort", "min", "max"),
    *("flatten", "format", "getHours", "getFullYear", "getMilliseconds", "hasValue", "value", "or", "orValue"),
    *("optMap", "optFlatMap", "quote", "nothing"),
)
SYMBOLS = ("+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||")


class Expressions:
    """Expressions that may mean nothing."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, depth: int) -> str:
        """Return an expression with calls up to a depth."""
        if depth == 0 or self._random.random() < 0.2:
            return self._random.choice(ATOMS)
        makers: tuple[Callable[[int], str], ...] = (
            self._function,
            self._method,
            self._method,
            self._loop,
            self._operator,
        )
        return self._random.choice(makers)(depth - 1)

    def _arguments(self, depth: int) -> str:
        return ", ".join(self.make(depth) for _number in range(self._random.randrange(4)))

    def _function(self, depth: int) -> str:
        return f"{self._random.choice(FUNCTIONS)}({self._arguments(depth)})"

    def _method(self, depth: int) -> str:
        return f"({self.make(depth)}).{self._random.choice(METHODS)}({self._arguments(depth)})"

    def _loop(self, depth: int) -> str:
        names = ", ".join(self._random.sample(("a", "i", "x"), self._random.choice((1, 1, 2))))
        rest = ", ".join(self.make(depth) for _number in range(self._random.choice((1, 1, 2))))
        return f"({self.make(depth)}).{self._random.choice(LOOPS)}({names}, {rest})"

    def _operator(self, depth: int) -> str:
        shape = self._random.randrange(5)
        one, other, third = (self.make(depth) for _number in range(3))
        if shape == 0:
            return f"(({one}) ? ({other}) : ({third}))"
        if shape == 1:
            return f"({one})[{self._random.choice(('', '?'))}{other}]"
        if shape == 2:
            return f"({one}).{self._random.choice(('', '?'))}{self._random.choice(('Name', 'a', '`a`'))}"
        if shape == 3:
            return f"[{one}, ?{other}]" if self._random.random() < 0.5 else f"{{{one}: {other}}}"
        return f"({one}) {self._random.choice(SYMBOLS)} ({other})"


def outcome(source: str) -> EvaluationError | ExpressionError | None:
    """Return the error of an expression, when it is compiled or when it runs."""
    try:
        compile_expression(source, VARIABLES, records=RECORDS)(VALUES)
    except (EvaluationError, ExpressionError) as error:
        return error
    return None


@pytest.mark.parametrize("seed", seeds(examples(8)))
def test_an_expression_is_refused_or_runs(seed: int) -> None:
    expressions = Expressions(seed)
    ran = 0
    for _number in range(400):
        source = expressions.make(3)
        error = outcome(source)
        assert not isinstance(error, InternalError), f"{source}: {error}"
        for finding in getattr(error, "findings", ()):
            assert 0 <= finding.start <= finding.end <= len(source), source
        ran += not isinstance(error, ExpressionError)
    assert ran > 15, "most expressions are refused, some run"
