# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cel-go's own tests of its policy format: what it decides, policies here decide.

They are not part of this repository: FOREWARN_CEL_GO names a checkout of github.com/google/cel-go, and
``../cel-go`` beside this one is the default. Outputs there are values of any type, so each becomes the explanation of
an approval; variables of the embedding program become parameters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.compiler.cel.expression import compile_expression
from forewarn.compiler.policies import compile_policies
from forewarn.events import LATEST_API_VERSION, Document, Vm
from forewarn.policy.artifact import load
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.functions import timevalues as tv
from tools.fixtures.events import GUID, event

# What the documentation says of those that are not run (docs/policies.md, "Policies for cel-go").
OTHER = {
    "k8s": "Kubernetes' own kind of policy",
    "pb": "protobuf messages",
    "restricted_destinations": "functions of the program that cel-go is part of",
    "errors": "mistakes, which are found here too",
    "errors_unreachable": "mistakes, which are found here too",
    "nested_incompatible_outputs": "mistakes, which are found here too",
    "yaml_parsing": "line breaks in text literals, which are refused here",
    "yaml_parsing_cel_error": "mistakes, which are found here too",
}
RUN = (
    "limits",
    "nested_rules_unconditional_chaining",
    "nested_rules_unconditional_chaining_optional",
    "nested_rules_unwrap_rewrap",
    "nested_rules_variable_shadowing",
    "unnest",
    "variable_type_propagation",
)
TYPES = {"int": "int", "list": "list(int)"}
DEFAULTS: Mapping[str, Any] = {"int": 0, "list(int)": []}


@pytest.fixture(scope="module")
def directory(repository: Path) -> Path:
    named = os.environ.get("FOREWARN_CEL_GO")
    found = (Path(named) if named else repository.parent / "cel-go") / "policy" / "testdata"
    if not found.is_dir():
        pytest.skip(f"no tests of cel-go at {found}; FOREWARN_CEL_GO may name a checkout")
    return found


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def translated(policy: Mapping[str, Any], params: Mapping[str, str]) -> dict[str, Any]:
    """Return a policy of cel-go as one of Forewarn."""

    def expression(text: str) -> str:
        return re.sub(rf"(?<![.\w])({'|'.join(params) or '-'})\b", r"params.\1", text)

    def rule(given: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {key: given[key] for key in ("id", "description") if key in given}
        if "variables" in given:
            made["variables"] = [{**one, "expression": expression(one["expression"])} for one in given["variables"]]
        return {**made, "match": [match(one) for one in given["match"]]}

    def match(given: Mapping[str, Any]) -> dict[str, Any]:
        made = {"condition": expression(given["condition"])} if "condition" in given else {}
        if "rule" in given:
            return {**made, "rule": rule(given["rule"])}
        return {**made, "output": "'approve'", "explanation": f"'%s'.format([{expression(given['output'])}])"}

    declared = [{"name": name, "type": type_, "default": DEFAULTS[type_]} for name, type_ in params.items()]
    return {"name": policy["name"], "params": declared, "rule": rule(policy["rule"])}


def value_of(given: Mapping[str, Any]) -> Any:
    return compile_expression(str(given["expr"]), {})({}) if "expr" in given else given["value"]


def cases(tests: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Yield the input of each test, and the text of its output; None where there is none."""
    for section in tests["section"]:
        for one in section["tests"]:
            output = one["output"]
            written = str(output["expr"]) if "expr" in output else repr(output["value"])
            if written == "optional.none()":
                yield one.get("input", {}), None
                continue
            written = re.sub(r"^optional\.of\((.*)\)$", r"\1", written)
            yield one.get("input", {}), compile_expression(f"'%s'.format([{written}])", {})({})


@pytest.mark.parametrize("name", RUN)
def test_a_policy_decides_as_cel_go_does(directory: Path, tmp_path: Path, name: str) -> None:
    config = read(directory / name / "config.yaml")
    types = {one["name"]: one.get("type", one.get("type_name")) for one in config["variables"]}
    params = {variable: TYPES[type_] for variable, type_ in types.items() if variable != "now"}
    path = tmp_path / "p.yml"
    path.write_text(yaml.safe_dump(translated(read(directory / name / "policy.yaml"), params), sort_keys=False))
    compilation = compile_policies([path], LATEST_API_VERSION)
    assert compilation.artifact is not None, compilation.findings
    tested = 0
    for given, wanted in cases(read(directory / name / "tests.yaml")):
        values = {variable: value_of(one) for variable, one in given.items()}
        now = tv.at_zone(values.pop("now", 10**18))
        (decision,) = PolicySet(load(compilation.artifact), values).decide(
            Document(1, (event(GUID),)), Facts(now, Vm("web_0"))
        )
        assert (decision.reason if decision.output == "approve" else None) == wanted, given
        tested += 1
    assert tested


def test_the_others_are_those_that_the_documentation_names(directory: Path, repository: Path) -> None:
    assert {one.name for one in directory.iterdir()} == {*RUN, *OTHER}
    text = " ".join((repository / "docs" / "policies.md").read_text(encoding="utf-8").split())
    assert not [reason for reason in OTHER.values() if reason not in text]


@pytest.mark.parametrize("name", [name for name, reason in OTHER.items() if "mistakes" in reason or "line" in reason])
def test_what_is_wrong_there_is_found_here(directory: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.yml"
    path.write_bytes((directory / name / "policy.yaml").read_bytes())
    assert compile_policies([path], LATEST_API_VERSION).artifact is None
