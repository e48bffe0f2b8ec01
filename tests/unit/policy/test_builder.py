# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evaluator by itself: what it absorbs, what it never does, where it places an error, and what it traces."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check, compile_expression
from forewarn.errors import InputError
from forewarn.policy.builder import Builder
from forewarn.policy.environment import MAX_STEPS, Scope
from forewarn.policy.evaluation_error import EvaluationError, LimitError
from forewarn.policy.forms import free_variables, read_form
from forewarn.policy.functions import standard
from forewarn.policy.functions import table as function_table
from forewarn.policy.functions.overloads import FUNCTIONS, METHODS, OPERATORS
from forewarn.policy.trace import TracingBuilder, render
from forewarn.policy.view import event_view

FIELDS = policy_declarations("2020-07-01", {}, {}, {})
RECORD = {"EventType": "Freeze", "Resources": ["a", "b"], "EventId": "e", "EventStatus": "Scheduled"}
MISSING_FIELD = "event.DurationInSeconds == 1"


def run(source: str, **values: Any) -> Any:
    checked = check(source, FIELDS)
    assert checked.form is not None, checked.findings
    scope = Scope(tuple(FIELDS.variables))
    builder = Builder(scope, {"source": source, "line": 3, "column": 5})
    closure = builder.build(read_form(json.loads(json.dumps(checked.form))))
    return closure(scope.environment({"event": RECORD, "events": [RECORD], **values}))


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (f"{MISSING_FIELD} || true", True),
        (f"true || {MISSING_FIELD}", True),
        (f"{MISSING_FIELD} && false", False),
        (f"false && {MISSING_FIELD}", False),
        (f"leader || {MISSING_FIELD} || true", True),
        (f"({MISSING_FIELD} || leader) && false", False),
        (f"true ? true : {MISSING_FIELD}", True),
        ("['x', 'a'].exists(r, r == 'a' || event.Resources[5] == r)", True),
        ("[0, 1].exists(n, 1 / n == 1)", True),
        ("[0, 2].all(n, 2 / n == 2)", False),
        ("[].all(n, 1 / n == 1)", True),
        ("has(event.DurationInSeconds)", False),
        ("has(event.DurationInSeconds) && event.DurationInSeconds == 1", False),
    ],
)
def test_side_that_decides_hides_the_others_error(source: str, value: bool) -> None:
    assert run(source) is value


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        (MISSING_FIELD, "event.DurationInSeconds", "there is no DurationInSeconds"),
        ("event.DurationInSeconds in [1, 2]", "event.DurationInSeconds", "there is no DurationInSeconds"),
        ("events[0].DurationInSeconds < 1", "events[0].DurationInSeconds", "there is no DurationInSeconds"),
        (f"{MISSING_FIELD} || false", "event.DurationInSeconds", "there is no DurationInSeconds"),
        (f"{MISSING_FIELD} && true", "event.DurationInSeconds", "there is no DurationInSeconds"),
        (f"!({MISSING_FIELD})", "event.DurationInSeconds", "there is no DurationInSeconds"),
        (f"{MISSING_FIELD} ? true : true", "event.DurationInSeconds", "there is no DurationInSeconds"),
        (f"true || true ? {MISSING_FIELD} : true", "event.DurationInSeconds", "there is no DurationInSeconds"),
        ("leader && true", "leader", "leader is not known"),
        ("event.Resources[2] == 'c'", "event.Resources[2]", "index out of range: 2"),
        ("event.Resources[-1] == 'c'", "event.Resources[-1]", "index out of range: -1"),
        ("[0, 1].exists_one(n, 1 / n == 1)", "1 / n", "division by zero"),
        ("[1, 0].map(n, 1 / n) == [1]", "1 / n", "division by zero"),
        ("[0].filter(n, 1 / n == 1) == [0]", "1 / n", "division by zero"),
        ("[0, 1].all(n, 1 / n == 1)", "1 / n", "division by zero"),
        ("[0, 2].exists(n, 2 / n == 2)", "2 / n", "division by zero"),
        ("{event.EventId: 1, 'e': 2} == {}", "{event.EventId: 1, 'e': 2}", "the key 'e' is given more than once"),
        ("int(event.EventId) < 1", "int(event.EventId)", "'e' is not an int"),
        ("event.EventId.substring(2) == ''", "event.EventId.substring(2)", "index out of range: 2"),
        ("timestamp(event.EventId) < now", "timestamp(event.EventId)", "'e' is not an RFC 3339 time"),
        ("now.getHours(event.EventId) == 1", "now.getHours(event.EventId)", "this machine knows no time zone 'e'"),
        ("-9223372036854775808 - size(event.EventId) < 0", "-9223372036854775808 - size(event.EventId)", "integer"),
        ("event.EventId.split('').exists(c, string(b'\\xff') == c)", "string(b'\\xff')", "the bytes are not UTF-8"),
    ],
)  # fmt: skip
def test_error_that_nothing_hides_has_its_place(source: str, place: str, message: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        run(source, now=0)
    error = raised.value
    assert source[error.start : error.end] == place
    assert str(error).startswith(message)
    assert error.expression == {"source": source, "line": 3, "column": 5}


def test_nothing_absorbs_the_step_limit() -> None:
    many = list(range(MAX_STEPS + 1))
    for source in ("l.all(n, n < 0 || n >= 0)", "l.exists(n, n < 0)", "l.exists_one(n, n == 0)", "l.map(n, n) == l",
                   "l.filter(n, true) == l"):  # fmt: skip
        for wrapped in (source, f"{source} || true", f"{source} && false", f"[true].exists(x, x || {source} || x)"):
            expression = compile_expression(wrapped, {"l": t.list_of(t.INT)})
            if wrapped.endswith("|| x)"):
                assert expression({"l": many}) is True  # x decides before the loop is begun
                continue
            with pytest.raises(LimitError, match=f"more than {MAX_STEPS} steps"):
                expression({"l": many})
    assert compile_expression("l.all(n, n >= 0)", {"l": t.list_of(t.INT)})({"l": many[1:]}) is True


@pytest.mark.parametrize(
    "source",
    [
        "s + s",
        "s.replace('a', 'aa')",
        "s.replace('', 'a')",
        "[s, s].join()",
        "['', ''].join(s + '!')",
        "l + l",
        "b + b",
    ],
)
def test_values_do_not_grow_without_bound(source: str) -> None:
    most = standard.MAX_TEXT
    values = {"s": "a" * most, "l": [1] * most, "b": b"a" * most}
    expression = compile_expression(source, {"s": t.STRING, "l": t.list_of(t.INT), "b": t.BYTES})
    with pytest.raises(EvaluationError, match=f"more than {most}"):
        expression(values)


@pytest.mark.parametrize("loop", ["m.map(k, k)", "m.map(k, true, k)", "m.filter(k, k != '')", "m.map(k, m[k])"])
def test_list_from_a_map_must_not_be_ordered(loop: str) -> None:
    expression = compile_expression(f"{loop}.size()", {"m": t.map_of(t.STRING, t.STRING)})
    assert expression({"m": {}}) == 0
    assert expression({"m": {"a": "b"}}) == 1
    with pytest.raises(EvaluationError, match="the keys of a map have no order"):
        expression({"m": {"a": "1", "b": "2"}})
    question = compile_expression("m.exists(k, k == 'b') && m.all(k, k < 'c')", {"m": t.map_of(t.STRING, t.STRING)})
    assert question({"m": {"a": "1", "b": "2"}}) is True


@pytest.mark.parametrize("text", ["T", "F", "tRUE", "yes", "", " true", "2"])
def test_text_that_is_no_bool_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError, match="is not a bool"):
        compile_expression("bool(s)", {"s": t.STRING})({"s": text})


@pytest.mark.parametrize(("text", "limit"), [("", ""), ("", ", 1"), ("", ", -1")])
def test_empty_text_is_not_split_by_nothing(text: str, limit: str) -> None:
    expression = compile_expression(f"s.split(''{limit})", {"s": t.STRING})
    assert expression({"s": "ab"})[0][0] == "a"
    with pytest.raises(EvaluationError, match="do not agree"):
        expression({"s": text})


def test_surrogate_half_is_an_error() -> None:
    expression = compile_expression("bytes(s) == b''", {"s": t.STRING})
    with pytest.raises(EvaluationError, match="not Unicode"):
        expression({"s": "\ud800"})


def test_evaluator_has_every_function_of_the_compiler() -> None:
    overloads = [one for table in (FUNCTIONS, METHODS, OPERATORS) for group in table.values() for one in group]
    assert {one.name for one in overloads} <= function_table.FUNCTIONS.keys()


def test_names_of_a_form() -> None:
    form = check("events.exists(e, e.EventId == vm.name && variables.v) || notice < age",
                 policy_declarations("2020-07-01", {}, {"v": t.BOOL}, {})).form  # fmt: skip
    assert form is not None
    assert free_variables(read_form(form)) == {"events", "vm", "variables.v", "notice", "age"}


def test_unknown_variable_is_refused_and_missing_an_error() -> None:
    expression = compile_expression("a + 1", {"a": t.INT})
    with pytest.raises(InputError, match="no variable b was declared"):
        expression({"b": 1})
    with pytest.raises(EvaluationError, match="a is not known"):
        expression({})


def test_trace_has_evaluated_reads_and_comparisons() -> None:
    source = (
        "event.EventType == 'Freeze' && (event.DurationInSeconds < 9 || event.Resources.exists(r, r == 'b')) && leader"
    )
    form = check(source, FIELDS, t.BOOL).form
    assert form is not None
    scope = Scope(tuple(FIELDS.variables))
    closure = TracingBuilder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(form))
    trace: list[Any] = []
    assert closure(scope.environment({"event": RECORD, "leader": False}, trace)) is False
    assert [(value.expression, value.value) for value in trace] == [
        ("event.EventType", '"Freeze"'),
        ("event.EventType == 'Freeze'", "true"),
        ("event.DurationInSeconds", "error: there is no DurationInSeconds"),
        ("event.DurationInSeconds < 9", "error: there is no DurationInSeconds"),
        ("event.Resources", '["a", "b"]'),
        ("event.Resources.exists(r, r == 'b')", "true"),
        ("leader", "false"),
    ]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "null", "null"),
        (True, "bool", "true"),
        (5, "int", "5"),
        (1.5, "double", "1.5"),
        ('a"é', "string", '"a\\"é"'),
        (b"a\xff", "bytes", 'b"a\\u00ff"'),
        (0, "timestamp", "1970-01-01T00:00:00Z"),
        (-1_500_000_000, "duration", "-1.500s"),
        ([0, 1_000_000_000], "list(duration)", "[0s, 1s]"),
        ([], "list(string)", "[]"),
        (["a" * 300], "list(string)", '["' + "a" * 117 + "…"),
        (list(range(30)), "list(int)", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, …]"),
    ],
)
def test_values_are_shown_as_cel_writes_them(value: Any, kind: str, text: str) -> None:
    assert render(value, kind) == text


def test_example_of_the_documentation(repository: Path) -> None:
    """The Python example in docs/cel.md runs and gives what it says."""
    text = (repository / "docs" / "cel.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(example, "docs/cel.md", "exec"), scope)  # an example that nobody runs is soon wrong
    for line in example.splitlines():
        expression, arrow, shown = line.partition("  # -> ")
        if arrow:
            assert repr(eval(expression.removeprefix("print(").removesuffix(")"), scope)) == shown


def test_view_lacks_fields_the_service_did_not_send() -> None:
    from forewarn.events import Event

    assert event_view(Event("e")) == {"EventId": "e", "Resources": []}
