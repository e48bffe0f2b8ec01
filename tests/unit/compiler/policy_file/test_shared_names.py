# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are given twice across files: none is accepted without a word, and each finding says which counts."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import compile_policies
from tools.sites.commands import in_process
from tools.suite.sizes import examples, seeds

NOTES = ("duplicate-library", "limit-differs", "param-default", "param-limits")
_DEFAULTS = (3, 9, None)
_BOUNDS: tuple[dict[str, Any], ...] = ({}, {}, {"min": 1}, {"max": 9, "min": 1}, {"enum": [3, 9]}, {"enum": [9, 3]})
_GROUPS = (None, "vm.scale_set", "vm.zone")


def drawn(chance: random.Random) -> list[dict[str, Any]]:
    """Return what files declare: libraries and policies, whose names and parameters are often the same."""
    files = []
    for number in range(chance.randint(2, 6)):
        names = chance.sample(("limit", "most", "wait"), chance.randint(0, 3))
        params = {name: (chance.choice(("int", "int", "double")), chance.choice(_DEFAULTS)) for name in names}
        bounds = {name: chance.choice(_BOUNDS) for name in names}
        limits = [
            (chance.choice(_GROUPS), chance.choice((1, 2, "25%"))) for _rule in range(chance.choice((0, 0, 1, 2)))
        ]
        one = {"file": f"f{number}.yml", "name": chance.choice("abc"), "library": chance.random() < 0.4}
        files.append({**one, "params": params, "bounds": bounds, "limits": limits})
    return files


def written(one: dict[str, Any], directory: Path) -> None:
    params = [
        {"name": name, "type": kind}
        | ({} if default is None else {"default": float(default) if kind == "double" else default})
        | one["bounds"][name]
        for name, (kind, default) in one["params"].items()
    ]
    rules: list[dict[str, Any]] = [
        {
            "condition": "leader",
            "output": "approve",
            "limit": most if group is None else {"at_most": most, "group": group},
        }
        for group, most in one["limits"]
    ]
    inner = [{"condition": "affects_me", "rule": {"match": rules}}] if len(rules) > 1 else rules
    rule = {"library": True} if one["library"] else {"rule": {"match": [*inner, {"output": "hold"}]}}
    (directory / one["file"]).write_text(
        json.dumps({"name": one["name"], **({"params": params} if params else {}), **rule})
    )


def expected(files: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Return the findings that there have to be: each with the file of it."""
    found: Counter[tuple[str, str]] = Counter()
    for kind, code in ((False, "duplicate-policy"), (True, "duplicate-library")):
        taken: set[str] = set()
        for one in [one for one in files if one["library"] is kind]:
            found[code, one["file"]] += one["name"] in taken
            taken.add(one["name"])
    first: dict[str, tuple[str, Any]] = {}
    defaults: dict[str, Any] = {}
    limits: dict[Any, tuple[str, set[Any]]] = {}
    for one in [one for one in files if not one["library"]]:
        for name, (kind, default) in one["params"].items():
            bounds = {key: sorted(value) if key == "enum" else value for key, value in one["bounds"][name].items()}
            known, other = first.setdefault(name, (kind, bounds))
            if known != kind:
                found["param-conflict", one["file"]] += 1
                continue
            found["param-limits", one["file"]] += other != bounds
            if default is not None:
                found["param-default", one["file"]] += defaults.setdefault(name, default) != default
        for group, most in one["limits"]:
            where, known_limits = limits.setdefault(group, (one["file"], set()))
            if where == one["file"]:
                known_limits.add(most)
            else:
                found["limit-differs", one["file"]] += most not in known_limits
    return +found


@pytest.mark.parametrize("seed", seeds(examples(200)))
def test_every_name_that_is_given_twice_is_found(seed: int, tmp_path: Path) -> None:
    files = drawn(random.Random(seed))
    for one in files:
        written(one, tmp_path)
    compilation = compile_policies([tmp_path / one["file"] for one in files], libraries=True)
    named = Counter((one.code, Path(one.path).name) for one in compilation.findings)
    assert named == expected(files), compilation.findings
    for finding in compilation.findings:
        assert (finding.severity == "note") == (finding.code in NOTES)


def test_a_finding_says_which_counts_and_fails_nothing(tmp_path: Path) -> None:
    policy = {"params": [{"name": "most", "type": "int", "default": 9}], "rule": {"match": [{"output": "hold"}]}}
    library = {"library": True, "name": "shared"}
    other = {**policy, "params": [{**policy["params"][0], "default": 30}]}  # type: ignore[index]  # a list of parameters
    contents = {"a": {"name": "a", **policy}, "b": {"name": "b", **other}, "l": library, "m": library}
    for name, content in contents.items():
        (tmp_path / f"{name}.yml").write_text(json.dumps(content))
    shown = in_process("policy", "check", tmp_path)
    assert shown.returncode == 0, shown.stdout
    assert "note param-default the default of parameter 'most' is 30 here and 9 in " in shown.stdout
    assert "without a given value each policy has its own, and a given one is for both" in shown.stdout
    assert "note duplicate-library a library called 'shared' is in " in shown.stdout
    assert "each counts where it is imported" in shown.stdout
    assert shown.stdout.endswith("2 notes\n")
    for form, mark in (("sarif", '"level": "note"'), ("github", "::notice "), ("junit", 'failures="0"')):
        shown = in_process("policy", "check", tmp_path, "--format", form)
        assert (shown.returncode, mark in shown.stdout) == (0, True), shown.stdout


def test_limits_that_differ_are_shown_with_both(tmp_path: Path) -> None:
    for name, bounds, most in (("a", "min: 1, max: 20", 1), ("b", "enum: [3, 9]", 3)):
        (tmp_path / f"{name}.yml").write_text(
            f"name: {name}\nparams: [{{name: most, type: int, {bounds}}}]\n"
            f"rule: {{match: [{{output: approve, limit: {most}}}]}}\n"
        )
    shown = in_process("policy", "check", tmp_path)
    assert (shown.returncode, shown.stdout[-8:]) == (0, "2 notes\n")
    assert "note param-limits parameter 'most' may be one of [3, 9] here and min 1, max 20 in " in shown.stdout
    assert "a given value has to be allowed by both" in shown.stdout
    assert "note limit-differs the limit of the VM's own group is 3 here and 1 in " in shown.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [("min: 60s", "min: 1m"), ("enum: [1m, 2m]", "enum: [120s, 60s]"), ("default: 60s", "default: 1m")],
)
def test_equal_value_in_another_spelling_is_no_conflict(one: str, other: str, tmp_path: Path) -> None:
    for name, said in (("a", one), ("b", other)):
        (tmp_path / f"{name}.yml").write_text(
            f"name: {name}\nparams: [{{name: wait, type: duration, {said}}}]\nrule: {{match: [{{output: hold}}]}}\n"
        )
    assert compile_policies([tmp_path]).findings == []


def test_variable_group_may_differ_between_policies(tmp_path: Path) -> None:
    for name, most in (("a", 1), ("b", 2)):
        variables = f"variables: [{{name: mine, expression: \"'{name}'\"}}]"
        (tmp_path / f"{name}.yml").write_text(
            f"name: {name}\nrule:\n  {variables}\n  match:\n"
            f"    - {{output: approve, limit: {{at_most: {most}, group: variables.mine}}}}\n"
        )
    assert compile_policies([tmp_path]).findings == []


def test_a_parameter_of_one_library_has_one_default(tmp_path: Path) -> None:
    (tmp_path / "l.yml").write_text("library: true\nname: l\nparams: [{name: most, type: int, default: 9}]\n")
    for name in "ab":
        condition = "event.DurationInSeconds < params.most"
        rule = f"rule: {{match: [{{condition: {condition}, output: hold}}]}}\n"
        (tmp_path / f"{name}.yml").write_text(f"name: {name}\nimports: [{{path: l.yml}}]\n{rule}")
    assert compile_policies([tmp_path]).findings == []
    (tmp_path / "c.yml").write_text(
        "name: c\nparams: [{name: most, type: int, default: 3}]\nrule: {match: [{output: hold}]}\n"
    )
    (finding,) = compile_policies([tmp_path]).findings
    assert (finding.code, Path(finding.path).name) == ("param-default", "c.yml")
