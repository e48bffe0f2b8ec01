# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evaluator on a VM: the same values from bare Python 3.9, standard library only, as from the one that compiles."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tools.cel_expressions import DECLARATIONS, Generator, values
from tools.cel_oracles import MISSING, Ours
from tools.commands import run_program
from tools.pythons import python

# Runs there: reads cases, prints how many have another outcome, and the first of them.
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from forewarn.policy.evaluate import Builder, Scope
from forewarn.policy.forms import read_form
from forewarn.policy.functions import EvaluationError
data = json.load(open(sys.argv[2]))
scope_names = tuple(data["names"])
wrong = []
for source, form, given, expected in data["cases"]:
    scope = Scope(scope_names)
    closure = Builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(form))
    try:
        value = closure(scope.environment(given))
        outcome = ["value", value.hex() if isinstance(value, bytes) else value]
    except EvaluationError as error:
        outcome = ["error", str(error)]
    if repr(outcome) != repr(expected):
        wrong.append([source, given, outcome, expected])
assert "celpy" not in sys.modules and "lark" not in sys.modules
print(json.dumps([sys.version.split()[0], len(data["cases"]), len(wrong), wrong[:1]]))
"""


def test_evaluator_gives_the_same_values_on_python_3_9(tmp_path: Path, package: Path) -> None:
    interpreter = python("3.9")
    random = Random(20260131)
    cases: list[Any] = []
    while len(cases) < 2000:
        ours = Ours(Generator(random).expression(), DECLARATIONS)
        if ours.type is None:
            continue
        given = {name: value for name, value in values(random).items() if value is not MISSING}
        outcome = ours.run(given)
        value = outcome.detail.hex() if isinstance(outcome.detail, bytes) else outcome.detail
        cases.append([ours.source, ours.form, given, [outcome.kind, value]])
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"names": list(DECLARATIONS.variables), "cases": cases}), encoding="utf-8")
    done = run_program(interpreter, "-I", "-c", SCRIPT, package.parent, path)
    assert done.returncode == 0, done.stderr
    version, count, wrong, first = json.loads(done.stdout)
    assert version.startswith("3.9.")
    assert (count, wrong, first) == (2000, 0, [])
