# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cvc5, a solver that has nothing in common with z3: what it says of a question in the language SMT-LIB 2."""

from __future__ import annotations

import cvc5  # type: ignore[import-untyped]  # has no types

MILLISECONDS = 2_000


def answer(question: str, milliseconds: int = MILLISECONDS) -> str:
    """Return ``sat``, ``unsat`` or ``unknown``. Raises RuntimeError where the text is not SMT-LIB 2."""
    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("tlimit-per", str(milliseconds))
    solver.setOption("strict-parsing", "true")
    symbols = cvc5.SymbolManager(manager)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"(set-logic ALL)\n{question}", "question")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip()
    if said not in ("sat", "unsat", "unknown"):
        raise RuntimeError(said)
    return said
