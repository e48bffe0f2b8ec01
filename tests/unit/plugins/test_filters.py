# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters ``decide`` and ``cel`` and the test ``approved``, called as Python."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from forewarn.compiler.policies import load_policies
from tools.fixtures.events import listed

_COLLECTION = "ansible_collections.forewarn.azure.plugins"
POLICY = """\
name: web
description: Freezes pass.
params: [{name: longest, type: duration, default: 10m}]
rule:
  match:
    - id: freeze
      condition: event.EventType == "Freeze" && affects_me && notice < params.longest
      output: approve
    - id: rest
      output: hold
"""
DOCUMENT = {
    "DocumentIncarnation": 1,
    "Events": [
        listed(event_id, EventType=type_, Resources=["web_0"], NotBefore="2026-01-31T15:09:00Z")
        for event_id, type_ in (("a", "Freeze"), ("b", "Reboot"))
    ],
}
NOW = "2026-01-31T15:04:00Z"


@pytest.fixture
def plugins(collections_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(str(collections_path))
    control_node = importlib.import_module(f"{_COLLECTION}.plugin_utils._control_node")
    monkeypatch.setattr(control_node.C, "ANSIBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(control_node.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    (tmp_path / "web.yml").write_text(POLICY)
    filters = importlib.import_module(f"{_COLLECTION}.filter.policies").FilterModule().filters()
    tests = importlib.import_module(f"{_COLLECTION}.test.decisions").TestModule().tests()
    return SimpleNamespace(policy=str(tmp_path / "web.yml"), **filters, **tests)


def test_a_document_of_the_service_is_decided(plugins: SimpleNamespace) -> None:
    for document in (DOCUMENT, json.dumps(DOCUMENT)):
        first, second = plugins.decide(document, plugins.policy, vm="web_0", now=NOW)
        assert (first["event_id"], first["output"], first["rule"]) == ("a", "approve", "freeze")
        assert first["eligibility"]["code"] == "approve"
        assert (second["output"], second["rule"]) == ("hold", "rest")
        assert (plugins.approved(first), plugins.approved(second)) == (True, False)
    (first, _) = plugins.decide(DOCUMENT, [plugins.policy], vm={"name": "web_1"}, now=NOW)
    assert first["output"] == "hold"
    (first, _) = plugins.decide(DOCUMENT, plugins.policy, {"longest": "1m"}, "web_0", NOW)
    assert first["output"] == "hold"


def test_the_content_of_an_artifact_decides_too(plugins: SimpleNamespace) -> None:
    artifact = load_policies([Path(plugins.policy)], "2020-07-01")
    (first, _) = plugins.decide(DOCUMENT, dict(artifact.data), vm="web_0", now=NOW)
    assert first["output"] == "approve"


@pytest.mark.parametrize(
    ("document", "more", "text"),
    [
        (DOCUMENT, {"policies": ""}, "a path of policies is empty"),
        (DOCUMENT, {"policies": ["web.yml", " "]}, "a path of policies is empty"),
        (DOCUMENT, {"policies": []}, "neither a path, nor a list of paths, nor the content of an artifact"),
        (DOCUMENT, {"policies": "nowhere.yml"}, "nowhere.yml: no such file"),
        (DOCUMENT, {"policies": "nowhere.json"}, "nowhere.json: No such file"),
        (DOCUMENT, {"params": {"longst": "1m"}}, "no policy declares a parameter longst"),
        (DOCUMENT, {"vm": {"nam": "web_0"}}, "vm is neither a name nor a mapping of fault_domain, "),
        (DOCUMENT, {"vm": {"name": 5}}, "vm: name is not text"),
        (DOCUMENT, {"vm": {"tags": 5}}, "vm: tags is not a mapping of texts"),
        (DOCUMENT, {"vm": {"tags": {"role": 5}}}, "vm: tags is not a mapping of texts"),
        (DOCUMENT, {"now": "soon"}, "now: 'soon' is not a time"),
        ({"events": []}, {}, "this has events, but no api_version"),
        ("nonsense", {}, "decide: "),
    ],
)
def test_mistakes_are_reported(plugins: SimpleNamespace, document: Any, more: dict[str, Any], text: str) -> None:
    args = {"policies": plugins.policy, "vm": "web_0", "now": NOW, **more}
    with pytest.raises(AnsibleError) as caught:
        plugins.decide(document, **args)
    assert text in str(caught.value)


def test_only_a_decision_is_approved_or_not(plugins: SimpleNamespace) -> None:
    for value in (None, "approve", {}, {"output": "yes"}, [{"output": "approve"}]):
        with pytest.raises(AnsibleError):
            plugins.approved(value)


@pytest.mark.parametrize(
    ("values", "expression", "types", "expected"),
    [
        ({"busy": 3, "limit": 5, "odd": {1: object()}}, "busy < limit", {}, True),
        ({"load": 0.5, "names": ["a", "b"]}, "load > 0.4 && 'b' in names", {}, True),
        ({"a": {"b": {"c": "x"}}}, "a.b.c + 'y'", {}, "xy"),
        ({"vms": [{"name": "a", "n": 1}, {"name": "b"}]}, "vms.exists(v, has(v.n) && v.n == 1)", {}, True),
        ({"vms": [{"name": "a"}, {"name": "b"}]}, "vms.map(v, v.name)", {}, ["a", "b"]),
        ({"window": "45m"}, "window > duration('30m')", {"window": "duration"}, True),
        ({"window": "45m"}, "window + window", {"window": "duration"}, "5400s"),
        ({"at": NOW}, "at + duration('1m')", {"at": "timestamp"}, "2026-01-31T15:05:00Z"),
        ({"none": []}, "size(none)", {}, 0),
        ({"n": 1}, "n + 0.5", {"n": "double"}, 1.5),
        ({"nothing": None}, "nothing == null", {}, True),
        ({"l": ["a"]}, "l in [] || [] in [] || l in [['b'], []]", {}, False),
        ({"l": [["a"]]}, "[['a']] == l && ['a'] in l", {}, True),
    ],
)
def test_expressions_see_the_values_with_their_types(
    plugins: SimpleNamespace, values: dict[str, Any], expression: str, types: dict[str, str], expected: Any
) -> None:
    assert plugins.cel(values, expression, types) == expected


@pytest.mark.parametrize(
    ("values", "expression", "types", "text"),
    [
        ({"busy": 3}, "bussy == 3 || true", {}, "undeclared-name"),
        ({"busy": 3}, "busy == '3'", {}, "type-mismatch"),
        ({"a": {"b": 1}}, "a.c == 1", {}, "unknown-field"),
        ({"l": [1, "a"]}, "size(l) == 2", {}, "l is a list of several types"),
        ({"n": 2**70}, "n > 1", {}, "n: "),
        ({"n": "x"}, "n > 1", {"n": "int"}, "n: 'x' is not of type int"),
        ({}, "n > 1", {"n": "int"}, "n is declared as int, and has no value"),
        ({"n": 1}, "n / 0", {}, "cel: "),
        ({"n": 1}, "n +", {}, "syntax"),
        ({"n": object()}, "n", {}, "n: "),
        ({"l": ["a"]}, "l in {}", {}, "type-mismatch"),
        ({"l": ["a"]}, "{}[l] == 1", {}, "type-mismatch"),
        ({"n": 1}, "n == 1", {"n": 5}, "types: n is declared as 5"),
        ({"n": 1}, "n == 1", [], "types is not a mapping of names"),
        ([1], "n == 1", {}, "the values are not mappings"),
    ],
)
def test_mistakes_of_expressions_are_reported(
    plugins: SimpleNamespace, values: dict[str, Any], expression: str, types: dict[str, str], text: str
) -> None:
    with pytest.raises(AnsibleError) as caught:
        plugins.cel(values, expression, types)
    assert text in str(caught.value)


def test_missing_library_is_named_for_expressions(plugins: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are for policies, and so is the way out of an artifact."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(AnsibleError, match="expressions of CEL need cel-python, not installed for ") as caught:
        plugins.cel({"n": 1}, "n + 1")
    assert "-m pip install cel-python" in str(caught.value)
    assert "polic" not in str(caught.value)
