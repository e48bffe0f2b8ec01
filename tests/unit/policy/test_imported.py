# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Artifacts say which library an expression or a parameter is from; those without that are as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.policy.artifact import load
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_data import artifact_data

_TRUE = ["lit", "bool", 0, 4, True]


def data(**file: Any) -> dict[str, Any]:
    """Return a policy that approves by a variable; ``file`` is in its variable, its parameter and its invariant."""
    expression = {"source": "true", "line": 3, "column": 1, "form": _TRUE}
    read = {"source": "variables.v", "line": 9, "column": 1, "form": ["variable", "bool", 0, 11, "v"]}
    match = {"id": "m", "line": 9, "column": 1, "condition": read, "output": "approve"}
    return {
        "name": "p",
        "source": "p.yml",
        "params": [{"name": "a", "type": "int", **file}],
        "rule": {"variables": [{"name": "v", "expr": {**expression, **file}}], "match": [match]},
        "invariants": [{"name": "i", "expression": {**expression, **file}}],
    }


def test_artifact_loads_with_and_without_file_keys() -> None:
    for given in ({}, {"file": "shared/lib.yml"}):
        assert PolicySet(load(json.dumps(artifact_data(data(**given)))), {"a": 1}).names == ("p",)


@pytest.mark.parametrize("wrong", [None, 3, True, ["lib.yml"], {"path": "lib.yml"}])
@pytest.mark.parametrize("where", ["params[0].file", "variables[0].expr.file", "invariants[0].expression.file"])
def test_a_file_is_a_text(where: str, wrong: Any) -> None:
    policy, odd = data(), data(file=wrong)
    if where.startswith("params"):
        policy["params"] = odd["params"]
    elif where.startswith("variables"):
        policy["rule"]["variables"] = odd["rule"]["variables"]
    else:
        policy["invariants"] = odd["invariants"]
    with pytest.raises(InputError) as refused:
        load(artifact_data(policy))
    assert f"{where} is not of type str" in refused.value.message


def test_an_artifact_without_invariants_loads() -> None:
    policy = data()
    del policy["invariants"]
    assert load(artifact_data(policy)).api_version


def test_missing_parameter_names_its_library() -> None:
    with pytest.raises(InputError, match=r"parameter a of policy p, imported from lib\.yml, has no default"):
        PolicySet(load(artifact_data(data(file="lib.yml"))))
    with pytest.raises(InputError, match="parameter a of policy p has no default"):
        PolicySet(load(artifact_data(data())))
