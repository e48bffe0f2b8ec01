# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters: policies and type-checked CEL expressions in any playbook. The YAML files beside document them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.adhoc.decisions import (
    assess,
    describe,
    reading_of,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.cel.inference import evaluate, plain_json
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import paths_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError, InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.policies import find_artifact
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import load
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.evaluation_error import EvaluationError
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import cache


def decide(
    document: Any,
    policies: Any,
    params: Mapping[str, Any] | None = None,
    vm: Any = None,
    now: str | None = None,
    api_version: str | None = None,
) -> list[dict[str, Any]]:
    """Return the decision of policies on each event of a document, or of a result of the module scheduled_events."""
    try:
        policy_set = _policy_set(plain_json(policies, "policies"), params, api_version)
        given = plain_json(document, "the document")
        reading = reading_of(given, policy_set.api_version, plain_json(vm, "vm"), now)
        decisions = policy_set.decide(reading.document, reading.facts)
        return [describe(decision, assess(decision, reading.facts)) for decision in decisions]
    except (ForewarnError, ValueError) as error:
        raise AnsibleFilterError(f"forewarn.azure.decide: {error}") from error


def cel(values: Mapping[str, Any], expression: str, types: Mapping[str, str] | None = None) -> Any:
    """Type-check a CEL expression over the entries of a mapping, and return its value."""
    try:
        wanted: dict[str, str] = plain_json({} if types is None else types, "types")
        return evaluate(values, str(expression), wanted)
    except (ForewarnError, EvaluationError) as error:
        raise AnsibleFilterError(f"forewarn.azure.cel: {error}") from error


def _policy_set(policies: Any, params: Mapping[str, Any] | None, api_version: str | None) -> PolicySet:
    if isinstance(policies, dict):
        artifact = load(policies)
    else:
        paths = [policies] if isinstance(policies, str) else policies
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise InputError("policies is neither a path, nor a list of paths, nor the content of an artifact.")
        artifact = find_artifact([path.expanduser() for path in paths_of(paths)], api_version, cache())
    return PolicySet(artifact, plain_json(params or {}, "params"))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"decide": decide, "cel": cel}
