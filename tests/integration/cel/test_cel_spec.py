# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's own conformance cases: nearly all pass, the others are refused when they are compiled, none is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs import cel_spec
from tools.docs.cel_spec import REFUSED, WRONG, Case, Outcome


@pytest.fixture(scope="module")
def cases(repository: Path) -> list[Case]:
    return cel_spec.read_cases(repository)


@pytest.fixture(scope="module")
def outcomes(cases: list[Case]) -> list[Outcome]:
    return list(cel_spec.outcomes(cases))


def test_no_case_has_another_answer(outcomes: list[Outcome]) -> None:
    wrong = [outcome for outcome in outcomes if outcome.kind == WRONG]
    assert not wrong, "\n".join(f"{each.case['expr']} gave {each.detail}, not {each.case['expect']}" for each in wrong)


def test_every_refusal_is_of_a_documented_kind(outcomes: list[Outcome]) -> None:
    other = [each for each in outcomes if each.kind == REFUSED and cel_spec.group(each) == "other"]
    assert not other, "\n".join(f"{each.case['expr']}: {each.detail}" for each in other)


def test_the_documentation_states_the_counts(outcomes: list[Outcome], repository: Path) -> None:
    text = " ".join((repository / "docs" / "cel.md").read_text(encoding="utf-8").split())
    assert cel_spec.counts(outcomes) in text
