# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evaluator on a VM: the same values by bare old Pythons, without any library, as by the one that compiles."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.policy.functions import timevalues
from tools.generators.cel_expressions import Generator
from tools.generators.cel_variables import DECLARATIONS, values
from tools.judges.cel_oracles import MISSING, Ours
from tools.sites.commands import run_program
from tools.sites.pythons import python
from tools.suite.sizes import SEED, SIZE

EXPRESSIONS = SIZE.cel_evaluations // 12

# Runs there: reads cases, prints how many have another outcome, and the first of them.
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from forewarn.policy.builder import Builder
from forewarn.policy.environment import Scope
from forewarn.policy.functions.dynamic import to_plain
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
data = json.load(open(sys.argv[2]))
scope_names = tuple(data["names"])
wrong = []
for source, form, given, expected in data["cases"]:
    scope = Scope(scope_names)
    closure = Builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(form))
    try:
        outcome = ["value", repr(to_plain(closure(scope.environment(given))))]
    except EvaluationError as error:
        outcome = ["error", str(error)]
    if outcome != expected:
        wrong.append([source, given, outcome, expected])
assert "celpy" not in sys.modules and "lark" not in sys.modules
print(json.dumps([sys.version.split()[0], len(data["cases"]), len(wrong), wrong[:1]]))
"""


@pytest.mark.versions
@pytest.mark.parametrize("old", ["3.8", "3.9"])
def test_the_evaluator_gives_the_same_values(tmp_path: Path, package: Path, old: str) -> None:
    interpreter = python(old)
    random = Random(20260131 + SEED)
    cases: list[Any] = []
    while len(cases) < EXPRESSIONS:
        ours = Ours(Generator(random).expression(), DECLARATIONS)
        if ours.type is None:
            continue
        given = {name: value for name, value in values(random).items() if value is not MISSING}
        outcome = ours.run(given)
        detail = repr(outcome.detail) if outcome.kind == "value" else outcome.detail
        cases.append([ours.source, ours.form, given, [outcome.kind, detail]])
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"names": list(DECLARATIONS.variables), "cases": cases}), encoding="utf-8")
    done = run_program(interpreter, "-I", "-c", SCRIPT, package.parent, path)
    assert done.returncode == 0, done.stderr
    version, count, wrong, first = json.loads(done.stdout)
    assert version.startswith(f"{old}.")
    assert (count, wrong, first) == (EXPRESSIONS, 0, [])


TEXTS = """
import itertools, json, sys
sys.path.insert(0, sys.argv[1])
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.table import FUNCTIONS
found = []
for name, arguments in json.load(open(sys.argv[2])):
    try:
        found.append(["value", FUNCTIONS[name](*arguments)])
    except EvaluationError as error:
        found.append(["error", str(error)])
print(json.dumps(found))
"""


@pytest.mark.versions
@pytest.mark.parametrize("old", ["3.8", "3.9"])
def test_string_functions_agree_for_empty_strings(tmp_path: Path, package: Path, old: str) -> None:
    pool, numbers = ("", "a", "aXa", "aa", " "), (-1, 0, 1, 2)
    cases: list[tuple[str, tuple[Any, ...]]] = [
        *(("replace", one) for one in itertools.product(pool, pool, pool)),
        *(("replace", one) for one in itertools.product(pool, pool, pool, numbers)),
        *((name, one) for name in ("split", "index_of", "last_index_of") for one in itertools.product(pool, pool)),
        *(
            (name, one)
            for name in ("split", "index_of", "last_index_of")
            for one in itertools.product(pool, pool, numbers)
        ),
        *((name, one) for name in ("contains", "starts_with", "ends_with") for one in itertools.product(pool, pool)),
        *((name, (one,)) for name in ("trim", "reverse", "lower_ascii", "upper_ascii", "size") for one in pool),
        *(("join", (list(one), glue)) for one in itertools.product(pool, pool) for glue in pool),
        *(("substring", one) for one in itertools.product(pool, numbers, numbers)),
    ]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    answers = []
    for interpreter in (python(old), sys.executable):
        done = run_program(interpreter, "-I", "-c", TEXTS, package.parent, path)
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert [(case, *both) for case, *both in zip(cases, *answers) if both[0] != both[1]] == []
    assert {kind for kind, _value in answers[0]} == {"value", "error"}


ZONES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from forewarn.policy.functions import timevalues
assert "zoneinfo" not in sys.modules
cases = json.load(sys.stdin)
print(json.dumps([str(timevalues.at_zone(value, timevalues.zone(name))) for name, value in cases]))
"""


@pytest.mark.versions
def test_python_3_8_has_the_same_time_zones(package: Path) -> None:
    """It has no zoneinfo: ``policy.tzfile`` stands in."""
    random = Random(20260131)
    names = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"]
    cases = [
        (random.choice([*names, "+05:45"]), random.randint(0, 4_102_444_800) * timevalues.SECOND) for _ in range(2000)
    ]
    done = run_program(python("3.8"), "-I", "-S", "-c", ZONES, package.parent, stdin=json.dumps(cases))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [str(timevalues.at_zone(value, timevalues.zone(name))) for name, value in cases]
    unknown = run_program(python("3.8"), "-I", "-S", "-c", ZONES, package.parent, stdin='[["Europe/Nowhere", 0]]')
    assert "ValueError: this machine knows no time zone 'Europe/Nowhere'" in unknown.stderr
