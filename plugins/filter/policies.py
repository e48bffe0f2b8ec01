# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters: policies and checked CEL expressions in playbooks of the user's own. Documented in the YAML files beside."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import paths_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError, InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.events import (
    LATEST_API_VERSION,
    Vm,
    parse_document,
    parse_time,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import load
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.decision import Facts
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.functions import EvaluationError
from ansible_collections.forewarn.azure.plugins.plugin_utils import _decisions, _expressions, _policies

_VM_FIELDS = frozenset(Vm.__dataclass_fields__)


def decide(
    document: Any,
    policies: Any,
    params: Mapping[str, Any] | None = None,
    vm: Any = None,
    now: str | None = None,
    api_version: str | None = None,
) -> list[dict[str, Any]]:
    """Return what policies decide on each event of a document, or of a result of the module scheduled_events."""
    try:
        policy_set = _policy_set(_policies.plain(policies, "policies"), params, api_version)
        reading = _reading(_policies.plain(document, "the document"), policy_set.api_version)
        facts = Facts(
            now=reading.facts.now if now is None else _time(str(now)),
            vm=reading.facts.vm if vm is None else _vm(_policies.plain(vm, "vm")),
        )
        decisions = policy_set.decide(reading.document, facts)
        return [_decisions.describe(decision, _decisions.stand(decision, facts)) for decision in decisions]
    except (ForewarnError, ValueError) as error:
        raise AnsibleFilterError(f"forewarn.azure.decide: {error}") from error


def cel(values: Mapping[str, Any], expression: str, types: Mapping[str, str] | None = None) -> Any:
    """Return the value of a CEL expression, which is type-checked first, over the entries of a mapping."""
    try:
        wanted: dict[str, str] = _policies.plain({} if types is None else types, "types")
        return _expressions.evaluate(values, str(expression), wanted)
    except (ForewarnError, EvaluationError) as error:
        raise AnsibleFilterError(f"forewarn.azure.cel: {error}") from error


def _policy_set(policies: Any, params: Mapping[str, Any] | None, api_version: str | None) -> PolicySet:
    if isinstance(policies, dict):
        artifact = load(policies)
    else:
        paths = [policies] if isinstance(policies, str) else policies
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise InputError("policies is neither a path, nor a list of paths, nor the content of an artifact.")
        artifact = _policies.find_artifact([path.expanduser() for path in paths_of(paths)], api_version)
    return PolicySet(artifact, _policies.plain(params or {}, "params"))


def _reading(document: Any, api_version: str) -> _decisions.Reading:
    """Read a document as the service gives it, as text or parsed, or a result of the module."""
    if isinstance(document, dict) and "events" in document:
        missing = sorted({"api_version", "document_incarnation", "problems", "read_at", "vm"} - document.keys())
        if missing:
            raise InputError(
                f"this has events, but no {missing[0]}.",
                "Give a document of the service, or the whole result of forewarn.azure.scheduled_events.",
            )
        return _decisions.read(document)
    text = document if isinstance(document, str) else json.dumps(document)
    return _decisions.Reading(parse_document(text, api_version or LATEST_API_VERSION), Facts(now=_now()))


def _vm(vm: Any) -> Vm:
    fields = {"name": vm} if isinstance(vm, str) else vm
    if not isinstance(fields, dict) or not fields.keys() <= _VM_FIELDS:
        raise InputError(f"vm is neither a name nor a mapping of {', '.join(sorted(_VM_FIELDS))}.")
    for name, value in fields.items():
        if name == "tags" and value is not None:
            if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
                raise InputError("vm: tags is not a mapping of texts to texts.")
        elif value is not None and not isinstance(value, str):
            raise InputError(f"vm: {name} is not text.")
    return Vm(**fields)


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise InputError(f"now: {text!r} is not a time.", "Write it like 2026-01-31T15:04:05Z.") from error


def _now() -> datetime:
    return datetime.now(timezone.utc)


class FilterModule:
    """Tells Ansible the names."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"decide": decide, "cel": cel}
