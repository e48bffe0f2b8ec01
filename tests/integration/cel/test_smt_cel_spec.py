# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's own conformance cases, as terms of z3: the value of each is the case's, and no other. Counts: ``-rP``.

What is constant is evaluated before it is translated. So literals become variables that have the literals' values: all
of them, each by itself, and all but one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.smt.encode.problem import Encoding
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import Declarations
from tools.docs.cel_spec import Case, read_cases, read_type, read_value
from tools.judges.translated import FAILS, SCALARS, Agreement, Question, hidden, literals
from tools.suite.sizes import SEED, SIZE

# Cases with variables that have one value for z3, and those of which a part may have any, by what they consist of.
# More of the first and fewer of the second are welcome: then change the numbers. The reverse means that something is no
# longer translated.
EXACT = 1099
# fmt: off
OPAQUE: Mapping[str, int] = {
    "add_list": 31, "add_string": 11, "all": 21, "and": 72, "char_at": 19, "contains": 4, "day_of_month": 2,
    "day_of_week": 1, "div_double": 2, "div_int": 50, "double_to_int": 1, "double_to_uint": 1, "dyn": 569, "dyn %": 11,
    "dyn_eq": 100, "dyn_ge": 25, "dyn_gt": 24, "dyn_in": 76, "dyn_index": 40, "dyn_key": 98, "dyn_le": 16, "dyn_lt":
    16, "dyn_ne": 25, "dyn_truth": 46, "dyn_type": 31, "dyn_value": 40, "ends_with": 3, "eq": 306, "eq_deep": 12,
    "exists": 27, "exists_one": 8, "filter": 42, "format": 119, "full_year": 1, "ge": 8, "gt": 23, "has": 18, "in": 28,
    "index_list": 53, "index_map": 198, "index_of": 29, "int_to_uint": 4, "integer_to_string": 2, "join": 6,
    "last_index_of": 36, "le": 9, "list": 453, "lt": 11, "map": 548, "map_list": 17, "minutes": 1, "mod_int": 12,
    "mod_uint": 2, "mul_int": 50, "mul_uint": 10, "ne": 41, "or": 20, "replace": 10, "seconds": 1, "size": 40, "split":
    18, "starts_with": 4, "string_to_bytes": 1, "string_to_double": 21, "substring": 36, "timestamp_to_string": 1,
    "to_double": 7,
}
# fmt: on


@pytest.fixture(scope="module")
def cases(repository: Path) -> list[Case]:
    return read_cases(repository)


def _variants(form: Any) -> Iterator[dict[int, list[Any]]]:
    """Yield the literals that become variables, by their ids: each choice once."""
    every = {id(one): one for one in literals(form)}
    chosen = [frozenset(every), *(frozenset((one,)) for one in every), *(frozenset(every) - {one} for one in every)]
    for some in dict.fromkeys(chosen):
        if some:
            yield {one: every[one] for one in some}


def _functions(form: Any) -> Iterator[str]:
    """Yield what the JSON of a form consists of: functions, and forms other than names and literals."""
    if isinstance(form, list) and len(form) > 4 and isinstance(form[0], str) and isinstance(form[1], str):
        if form[0] not in ("lit", "var", "local", "bytes", "matches"):
            yield form[4] if form[0] == "call" else form[0]
        for part in form[4:]:
            yield from _functions(part)


def test_every_case_has_its_value_and_no_other(cases: list[dict[str, Any]]) -> None:
    counts: Counter[Agreement] = Counter()
    opaque: Counter[str] = Counter()
    wrong: list[str] = []
    step = max(1, len(cases) // SIZE.smt_cases)
    for case in cases[SEED % step :: step]:
        try:
            variables = {name: read_type(written) for name, written in case.get("vars", {}).items()}
        except ValueError:
            continue
        if case.get("container") or any("." in name for name in variables):
            continue
        source = case["expr"]
        form = check(source, Declarations(variables, {})).form
        if form is None:
            continue
        given = {name: read_value(value) for name, value in case.get("bindings", {}).items() if name in variables}
        if given.keys() != variables.keys():
            continue
        outcome = FAILS if case["expect"][0] == "error" else read_value(case["expect"][1])
        for some in [*_variants(form)] or [{}]:
            judge = Question()
            fixed: list[Any] = []
            known: dict[str, Encoding] = {}
            names = {one: f"lit{number}" for number, one in enumerate(some)}
            scalars = [
                (name, str(variables[name]), given[name]) for name in variables if str(variables[name]) in SCALARS
            ]
            scalars += [(names[one], form[1], form[4]) for one, form in some.items()]
            for name, type_, value in scalars:
                term = judge.free(name, type_)
                known[name] = Encoding(term)
                fixed.append(judge.equals(term, value))
            known.update({name: Encoding(given[name]) for name in variables if name not in known})
            judge.translate(source, hidden(form, names), known)
            answer = judge.agreement(fixed, outcome)
            counts[answer] += 1
            if answer is Agreement.OPEN:
                opaque.update(set(_functions(form)) or {"a value by itself"})
            elif answer is not Agreement.EXACT:
                wrong.append(
                    f"{case['section']}/{case['name']}: {source} with {fixed}: {answer.value}, not {outcome!r}"
                )
    print({one.name: count for one, count in counts.items()}, dict(sorted(opaque.items())))
    assert not wrong, "\n".join(wrong)
    assert {name: count for name, count in opaque.items() if count > OPAQUE.get(name, 0)} == {}
    assert step > 1 or counts[Agreement.EXACT] >= EXACT
