# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes that people make: each has a hint, and who follows it approves no more than was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.diff.kinds import INCOMPARABLE, MORE
from tools.fixtures.policy_files import compiled, loaded
from tools.generators.mistakes import MISTAKES, Mistake

POLICY = """\
name: p
params:
  - {name: limit, type: int, default: 3}
rule:
  variables:
    - {name: brief, expression: event.DurationInSeconds < 9}
  match:
    - id: a
      condition: |
        CONDITION
      output: approve
    - {id: b, output: hold}
"""


def with_condition(condition: str) -> str:
    return POLICY.replace("CONDITION", condition)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.written)
def test_a_mistake_has_its_hint(tmp_path: Path, mistake: Mistake) -> None:
    findings = compiled(tmp_path, with_condition(mistake.written)).findings
    assert mistake.hint in [finding.suggestion for finding in findings]
    assert {finding.line for finding in findings} == {10}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.written)
def test_followed_hint_approves_no_more_than_meant(tmp_path: Path, mistake: Mistake) -> None:
    """Judged as by `policy diff`: by the solver, for every event."""
    followed = loaded(tmp_path, with_condition(mistake.followed))
    if not mistake.meant:  # it is what was meant
        return
    (tmp_path / "meant").mkdir()
    difference = compare(loaded(tmp_path / "meant", with_condition(mistake.meant)), followed)
    assert not difference.unproven
    assert difference.verdict not in (MORE, INCOMPARABLE), difference.changes


def test_there_are_mistakes_of_every_kind() -> None:
    assert len({mistake.written for mistake in MISTAKES}) == len(MISTAKES) > 150


def with_rule(rule: str) -> str:
    return f"name: p\nrule:\n  match:\n    - {{id: a, {rule}}}\n    - {{id: b, output: hold}}\n"


# Mistakes in what is around expressions: the file, a hint, and what the author changes.
FILES = [
    (
        with_rule("condition: affects_me, explanation: a freeze goes unnoticed, output: approve"),
        "an explanation is an expression; for a text, write '\"a freeze goes unnoticed\"'",
        ("a freeze goes unnoticed", "'\"a freeze goes unnoticed\"'"),
    ),
    (
        with_rule('condition: affects_me, explanation: "it\'s brief", output: approve'),
        "an explanation is an expression; for a text, write '\"it''s brief\"'",
        ('"it\'s brief"', "'\"it''s brief\"'"),
    ),
    (
        'name: p\nrule:\n  match:\n    - condition: event.EventId == " # "\n      output: approve\n',
        "' #' begins a comment in YAML: put the whole expression into quotes, or on a line of its own below >-",
        ('event.EventId == " # "', "'event.EventId == \" # \"'"),
    ),
    (
        with_rule("condition: [affects_me, leader], output: approve"),
        "join conditions with &&, as in a && b; one that begins with a bracket or brace needs quotes",
        ("[affects_me, leader]", "affects_me && leader"),
    ),
    (
        with_rule("condition: {all: [affects_me]}, output: approve"),
        "join conditions with &&, as in a && b; one that begins with a bracket or brace needs quotes",
        ("{all: [affects_me]}", "affects_me"),
    ),
    (
        "name: p\nrule:\n  match:\n    - condition: {{ affects_me }}\n      output: approve\n",
        "leave out the braces: a policy is not a template",
        ("{{ affects_me }}", "affects_me"),
    ),
    (
        "name: p\nparams:\n  limit: 3\nrule:\n  match:\n    - condition: event.DurationInSeconds < params.limit\n"
        "      output: approve\n",
        "write - {name: limit, type: int, default: 3}",
        ("limit: 3\n", "- {name: limit, type: int, default: 3}\n"),
    ),
    (
        "name: p\nrule:\n  variables:\n    brief: event.DurationInSeconds < 9\n  match:\n"
        "    - condition: variables.brief\n      output: approve\n",
        "write - {name: brief, expression: event.DurationInSeconds < 9}",
        ("brief: event", "- {name: brief, expression: event"),
    ),
    (
        "name: p\nvariables:\n  - {name: me, expression: affects_me}\nrule:\n  match:\n"
        "    - {condition: affects_me, output: approve}\n",
        "variables stand below 'rule'",
        (
            "variables:\n  - {name: me, expression: affects_me}\nrule:\n",
            "rule:\n  variables:\n    - {name: me, expression: affects_me}\n",
        ),
    ),
    (with_rule("when: affects_me, output: approve"), "did you mean 'condition'?", ("when", "condition")),
    (with_rule("condition: affects_me, output: Approved"), "did you mean approve?", ("Approved", "approve")),
    (with_rule("condition: affects_me, output: aprove"), "did you mean approve?", ("aprove", "approve")),
    (with_rule("condition: affects_me, output: deny"), "did you mean hold?", ("deny", "hold")),
    (with_rule("condition: affects_me, output: disapprove"), "did you mean hold?", ("disapprove", "hold")),
]


@pytest.mark.parametrize(("text", "hint", "change"), FILES, ids=[hint for _text, hint, _change in FILES])
def test_hint_for_a_file_mistake_helps(tmp_path: Path, text: str, hint: str, change: tuple[str, str]) -> None:
    findings = compiled(tmp_path, text).findings
    assert hint in [finding.suggestion for finding in findings], findings
    followed = text.replace(*change)
    if hint.startswith("write - {name: brief"):
        followed = followed.replace("Seconds < 9\n", "Seconds < 9}\n")
    assert compiled(tmp_path, followed).findings == []


@pytest.mark.parametrize(
    "name", ["not_leader", "notleader", "unaffects_me", "no_leader", "non_leader", "is_not_leader"]
)
def test_negated_name_is_not_corrected_to_its_opposite(tmp_path: Path, name: str) -> None:
    (finding,) = compiled(tmp_path, with_condition(name)).findings
    assert "leader?" not in finding.suggestion
    assert "affects_me?" not in finding.suggestion


@pytest.mark.parametrize("output", ["unapproved", "do not approve", "disaprove", "never approve", "dont-approve"])
def test_no_refusal_is_taken_for_an_approval(tmp_path: Path, output: str) -> None:
    (finding,) = compiled(tmp_path, with_rule(f"condition: affects_me, output: {output}")).findings
    assert "mean approve" not in finding.suggestion
