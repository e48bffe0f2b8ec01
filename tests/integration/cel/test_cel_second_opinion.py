# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random expressions of every kind, by both engines: they differ only where it is known that they do."""

from __future__ import annotations

from collections import Counter
from random import Random

from forewarn.compiler.testing import second_opinion
from forewarn.compiler.testing.cel_python import UNSUPPORTED, CelPython
from forewarn.compiler.testing.second_opinion import ALWAYS, features
from tools.generators.cel_expressions import Generator
from tools.generators.cel_variables import DECLARATIONS, values
from tools.judges.cel_oracles import MISSING, Ours
from tools.suite.sizes import SEED, SIZE, enough

EXPRESSIONS = SIZE.cel_evaluations // 12


def test_the_list_of_known_differences_is_complete() -> None:
    random, engine, count = Random(20260131 + SEED), CelPython(DECLARATIONS.records), Counter[str]()
    types = {name: str(type_) for name, type_ in DECLARATIONS.variables.items()}
    while count["asked"] < EXPRESSIONS:
        ours = Ours(Generator(random).expression(), DECLARATIONS)
        if ours.type is None:
            continue
        expression = {"source": ours.source, "form": ours.form}
        if features(expression) & second_opinion.NOT_COMPARED[ALWAYS]:
            count["skipped"] += 1
            continue
        given = {name: value for name, value in values(random).items() if value is not MISSING}
        here, there = ours.run(given), engine.evaluate(ours.source, given, types)
        if there == UNSUPPORTED:
            count["lacking"] += 1
            continue
        count["asked"] += 1
        count[there.kind] += 1
        assert there.kind == "broken" or here.same(there) or second_opinion.is_exempt(expression, here, there), (
            ours.source,
            given,
            here,
            there,
        )
    assert count["value"] > enough(1_000), count
    assert count["error"] > enough(200), count
    assert count["skipped"] < EXPRESSIONS // 2, count
    assert count["broken"] < max(20, EXPRESSIONS // 100), count
    print(dict(count))
    assert count["lacking"] < EXPRESSIONS // 2, count
