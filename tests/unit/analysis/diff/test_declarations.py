# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What policies declare is compared without any event: each difference has its kind, and its place where known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.diff import kinds
from forewarn.analysis.diff.declarations import Declaration, DeclaredAt, changed_declarations
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.diff.kinds import ALIKE, FEWER
from forewarn.compiler.policies import load_policies
from forewarn.policy.artifact import Artifact
from tools.fixtures.policy_files import HEAD, loaded

BASE: Mapping[str, str] = {
    "name": "p",
    "params": "[{name: n, type: int, default: 30, min: 0, max: 60}]",
    "extra_values": "{EventType: [Later]}",
    "suppress": "[{code: approved-unprepared, rule: brief, reason: because}]",
    "invariants": "[{name: never, expression: \"decision == hold || event.EventType != 'Terminate'\"}]",
    "variables": "[{name: why, expression: \"'short'\"}]",
    "explanation": "\"'it is ' + variables.why\"",
}
TEXT = """name: {name}
params: {params}
extra_values: {extra_values}
suppress: {suppress}
invariants: {invariants}
rule:
  variables: {variables}
  match:
    - id: brief
      condition: event.EventType == 'Freeze' && (event.DurationInSeconds < params.n || params.n == 30)
      output: approve
      explanation: {explanation}
    - {{id: rest, output: hold}}
"""


def policy(**changes: str) -> str:
    return TEXT.format(**{**BASE, **changes})


def found(directory: Path, old: str, new: str) -> list[Declaration]:
    return list(changed_declarations(loaded(directory, old), loaded(directory, new)))


CLAIM = '[{{name: never, expression: "{}"}}]'
# kind -> what changes, the effect, and a part of the words. No two of them change the same thing.
CHANGES: dict[str, tuple[dict[str, str], str, str]] = {
    kinds.INVARIANT_DELETED: ({"invariants": "[]"}, FEWER, "invariant never of p is gone"),
    kinds.PARAMETER_RANGE: (
        {"params": "[{name: n, type: int, default: 30, min: 0, max: 61}]"},
        ALIKE,
        "a wider range, at least 0 and at most 60 → at least 0 and at most 61",
    ),
    kinds.SUPPRESSION_DELETED: (
        {"suppress": "[]"},
        ALIKE,
        "finding approved-unprepared of p, rule brief, is no longer suppressed",
    ),
    kinds.EXPLANATION: (
        {"explanation": "\"'so ' + variables.why\""},
        ALIKE,
        "explanation of p/brief: ''it is ' + variables.why' → ''so ' + variables.why'",
    ),
    kinds.EXTRA_VALUES: ({"extra_values": "{EventType: [Sooner]}"}, ALIKE, "EventType Sooner is new, Later is gone"),
}
MORE_CHANGES: list[tuple[str, dict[str, str], str, str]] = [
    *((kind, *change) for kind, change in CHANGES.items()),
    (
        kinds.INVARIANT_CHANGED,
        {"invariants": CLAIM.format("decision == hold || event.EventType != 'Terminate' || leader")},
        FEWER,
        "may promise less: 'decision == hold",
    ),
    (
        kinds.INVARIANT_CHANGED,
        {"invariants": CLAIM.format("(decision == hold || event.EventType != 'Terminate') && leader")},
        ALIKE,
        "promises more",
    ),
    (kinds.INVARIANT_CHANGED, {"invariants": CLAIM.format("decision == hold")}, ALIKE, "promises more"),
    (
        kinds.INVARIANT_CHANGED,
        {"invariants": BASE["invariants"].replace("never", "no more")},
        ALIKE,
        "invariant never of p is now 'no more' of p",
    ),
    (
        kinds.INVARIANT_ADDED,
        {"invariants": BASE["invariants"][:-1] + ', {name: new one, expression: "true || leader"}]'},
        ALIKE,
        "invariant 'new one' of p is new",
    ),
    (
        kinds.SUPPRESSION_ADDED,
        {"suppress": BASE["suppress"][:-1] + ", {code: uncovered-events, reason: so it is}]"},
        FEWER,
        "finding uncovered-events of p is suppressed: 'so it is'",
    ),
    (
        kinds.SUPPRESSION_CHANGED,
        {"suppress": BASE["suppress"].replace("because", "why not")},
        ALIKE,
        "suppressed for another reason: because → 'why not'",
    ),
    (
        kinds.PARAMETER_RANGE,
        {"params": "[{name: n, type: int, default: 30, enum: [30, 40]}]"},
        ALIKE,
        "a narrower range, at least 0 and at most 60 → one of 30, 40",
    ),
    (kinds.PARAMETER_RANGE, {"params": "[{name: n, type: int, default: 30, min: 9}]"}, ALIKE, "other values"),
    (
        kinds.PARAMETER_DEFAULT,
        {"params": "[{name: n, type: int, default: 31, min: 0, max: 60}]"},
        ALIKE,
        "default 30 → 31",
    ),
    (
        kinds.PARAMETER_DEFAULT,
        {"params": "[{name: n, type: int, min: 0, max: 60}]"},
        ALIKE,
        "default 30 → none: each host must set it",
    ),
    (
        kinds.PARAMETER_ADDED,
        {"params": BASE["params"][:-1] + ", {name: m, type: bool}]"},
        ALIKE,
        "parameter m of p is new, and each host must set it: it has no default",
    ),
    (kinds.EXPLANATION, {"explanation": "variables.why"}, ALIKE, "→ 'variables.why'"),
    (
        kinds.EXPLANATION,
        {"variables": "[{name: why, expression: \"'brief'\"}]"},
        ALIKE,
        "a variable that it reads has changed, in ''it is ' + variables.why'",
    ),
]


@pytest.mark.parametrize(("kind", "change", "effect", "words"), MORE_CHANGES)
def test_each_kind(tmp_path: Path, kind: str, change: dict[str, str], effect: str, words: str) -> None:
    (one,) = found(tmp_path, policy(), policy(**change))
    assert (one.kind, one.effect, one.policy) == (kind, effect, "p")
    assert words in one.what
    assert one.place is not None
    assert one.place.path == "p.yml"
    assert effect in kinds.KINDS[kind].effects
    assert found(tmp_path, policy(**change), policy())


@pytest.mark.parametrize("pair", list(itertools.combinations(CHANGES, 2)))
def test_two_kinds_together(tmp_path: Path, pair: tuple[str, str]) -> None:
    change = {**CHANGES[pair[0]][0], **CHANGES[pair[1]][0]}
    both = found(tmp_path, policy(), policy(**change))
    assert {(one.kind, one.effect) for one in both} == {(kind, CHANGES[kind][1]) for kind in pair}
    assert all(any(CHANGES[kind][2] in one.what for one in both) for kind in pair)


def test_range_and_default_are_two_changes(tmp_path: Path) -> None:
    new = policy(params="[{name: n, type: int, default: 31, min: 0, max: 61}]")
    assert [one.kind for one in found(tmp_path, policy(), new)] == [kinds.PARAMETER_RANGE, kinds.PARAMETER_DEFAULT]


def test_another_type_is_not_also_another_range(tmp_path: Path) -> None:
    old, new = (
        policy(params=f"[{{name: n, type: int, default: 30}}, {{name: x, {one}}}]")
        for one in ("type: int, default: 1, min: 0", "type: string, default: '1', enum: ['1']")
    )
    assert [one.what for one in found(tmp_path, old, new)] == [
        "parameter x of p: type int → string",
        'parameter x of p: default 1 → "1"',
    ]


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        ("int", "enum: [9, 10]", "min: 9, max: 10", None),
        ("int", "min: -9223372036854775808", "", None),
        ("int", "enum: [9, 10, 12]", "min: 9, max: 12", "wider"),
        ("int", "min: 9, max: 12", "enum: [9, 10, 12]", "narrower"),
        ("int", "enum: [9, 9]", "enum: [9]", None),
        ("int", "enum: [9, 10], max: 20", "enum: [10, 9]", None),
        ("bool", "enum: [false]", "", "wider"),
        ("bool", "enum: [true, false]", "", None),
        ("duration", "max: 5m", "max: 300s", None),
        ("duration", "max: 5m", "max: 301s", "wider"),
        ("duration", "min: 5m, max: 5m", "enum: [300s]", None),
        ("timestamp", "min: 2026-01-31T15:04:05Z", "min: 2026-01-31T16:04:05+01:00", None),
        ("timestamp", "min: 2026-01-31T15:04:05Z", "max: 2026-01-31T15:04:05Z", "other values"),
        ("double", "min: 1", "min: 1.0", None),
        ("double", "min: 1, max: 2", "enum: [1, 2]", "narrower"),
        ("string", "enum: [a]", "enum: [b]", "other values"),
        ("string", "enum: [a]", "", "wider"),
        ("string", "enum: ['a b']", "enum: ['a  b']", "other values"),
        ("list(string)", "enum: [[a], [b]]", "enum: [[a]]", "narrower"),
        ('"map(string, string)"', "enum: [{a: b}]", "enum: [{a: c}]", "other values"),
    ],
)
def test_the_values_that_a_parameter_may_have(tmp_path: Path, kind: str, old: str, new: str, words: str | None) -> None:
    def text(limits: str) -> str:
        return policy(
            params=f"[{{name: n, type: int, default: 30}}, {{name: x, type: {kind}{limits and ', ' + limits}}}]"
        )

    changes = found(tmp_path, text(old), text(new))
    assert [one.kind for one in changes] == ([] if words is None else [kinds.PARAMETER_RANGE])
    assert all(str(words) in one.what for one in changes)
    before, after = (changes[0].what.split(", ", 1)[1] if changes else "1 → 2").split(" → ")
    assert before != after


@pytest.mark.parametrize(
    "change",
    [
        {"params": "[{name: n, default: 30, max: 60, min: 0, type: int, description: other}]"},
        {"invariants": CLAIM.format("decision==hold  ||  (event.EventType != 'Terminate')")},
        {"explanation": "\"('it is '  + variables.why)\""},
        {"variables": "[{name: why, expression: \"('short')\"}]"},
        {"variables": BASE["variables"][:-1] + ", {name: other, expression: 'true'}]"},
    ],
)
def test_what_is_only_written_otherwise_is_no_change(tmp_path: Path, change: dict[str, str]) -> None:
    assert found(tmp_path, policy(), policy(**change)) == []


def test_a_variable_that_a_variable_reads(tmp_path: Path) -> None:
    def text(inner: str) -> str:
        both = f"[{{name: a, expression: \"'{inner}'\"}}, {{name: why, expression: \"variables.a + '.'\"}}]"
        return policy(variables=both)

    assert [one.kind for one in found(tmp_path, text("x"), text("y"))] == [kinds.EXPLANATION]


def test_nested_rules_have_explanations_too(tmp_path: Path) -> None:
    text = HEAD + "    - id: a\n      rule:\n        match: [{id: b, output: hold, explanation: \"'%s'\"}]\n"
    (one,) = found(tmp_path, text % "x", text % "y")
    assert one.what == "explanation of p/a.b: ''x'' → ''y''"
    assert one.place == DeclaredAt("new", "p.yml", 6, 53)


def test_an_explanation_that_only_one_version_has(tmp_path: Path) -> None:
    without = "\n".join(line for line in policy().splitlines() if "explanation:" not in line)
    (gone,) = found(tmp_path, policy(), without)
    assert gone.what == "explanation of p/brief: ''it is ' + variables.why' → none"
    assert gone.place == DeclaredAt("new", "p.yml", 9, 7)  # its rule
    (new,) = found(tmp_path, without, policy())
    assert new.what.endswith("none → ''it is ' + variables.why'")


def together(directory: Path, *names: str, claims: str = "[]") -> Artifact:
    paths = []
    for name in names:
        paths.append(directory / f"{name}.yml")
        paths[-1].write_text(policy(name=name, suppress="[]", invariants=claims))
    return load_policies(paths)


def test_policies_that_are_new_and_gone(tmp_path: Path) -> None:
    old = together(tmp_path, "a", "b", claims=BASE["invariants"])
    new = together(tmp_path, "a", "c", claims=BASE["invariants"])
    added, deleted, moved = changed_declarations(old, new)
    assert (added.kind, added.what, added.place) == (kinds.POLICY_ADDED, "policy c is new", DeclaredAt("new", "c.yml"))
    assert (deleted.kind, deleted.place) == (kinds.POLICY_DELETED, DeclaredAt("old", "b.yml"))
    assert (moved.kind, moved.effect, moved.what) == (
        kinds.INVARIANT_CHANGED,
        ALIKE,
        "invariant never of b is now never of c",
    )
    assert [one.kind for one in changed_declarations(old, together(tmp_path, "a"))] == [
        kinds.POLICY_DELETED,
        kinds.INVARIANT_DELETED,
        kinds.INVARIANT_DELETED,
    ]


def test_another_api_version(tmp_path: Path) -> None:
    old, new = (
        loaded(tmp_path, HEAD + "    - output: hold\n", api_version=version) for version in ("2019-08-01", "2020-07-01")
    )
    (one,) = changed_declarations(old, new)
    assert (one.kind, one.what, one.place) == (kinds.API_VERSION, "api-version: 2019-08-01 → 2020-07-01", None)
    assert one.as_dict()["place"] is None


def test_deleted_parameter_has_its_old_place(tmp_path: Path) -> None:
    old = policy(params=BASE["params"][:-1] + ", {name: m, type: bool}]")
    (one,) = found(tmp_path, old, policy())
    assert one.as_dict() == {
        "kind": "parameter-deleted",
        "effect": "alike",
        "what": "parameter m of p is gone",
        "policy": "p",
        "place": {"version": "old", "path": "p.yml", "line": None, "column": None},
    }


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (CHANGES[kinds.INVARIANT_DELETED][0], FEWER),
        (CHANGES[kinds.EXPLANATION][0], ALIKE),
        (CHANGES[kinds.SUPPRESSION_DELETED][0], ALIKE),
    ],
)
def test_a_declaration_alone_is_never_no_change(tmp_path: Path, change: dict[str, str], verdict: str) -> None:
    difference = compare(loaded(tmp_path, policy()), loaded(tmp_path, policy(**change)))
    assert (difference.verdict, difference.changes) == (verdict, ())
    assert difference.kinds == tuple(one.kind for one in difference.declarations)
    assert len(difference.kinds) == 1


def test_every_kind_of_declaration_is_tested_here() -> None:
    of_events = list(kinds.KINDS)[: list(kinds.KINDS).index(kinds.EXPLANATION)]
    elsewhere = {
        kinds.PARAMETER_TYPE,
        kinds.PARAMETER_DELETED,
        kinds.API_VERSION,
        kinds.POLICY_ADDED,
        kinds.POLICY_DELETED,
    }
    tested: set[Any] = {one[0] for one in MORE_CHANGES} | elsewhere
    assert set(kinds.KINDS) - set(of_events) == tested
