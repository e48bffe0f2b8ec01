# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A problem for the solver: whether each of its values is one of CEL."""

from __future__ import annotations

from forewarn.analysis.smt.encode.problem import Problem


def test_only_doubles_make_a_problem_inexact() -> None:
    problem = Problem()
    problem.integer("int", 0, 9)
    assert problem.exact
    problem.real("double")
    assert not problem.exact
