# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Artifacts for tests, from policies written as Python data with CEL texts in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import BOOL, STRING, Type, parse_type
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.artifact import Artifact, digest_of, load
from forewarn.policy.engine import PolicySet
from forewarn.policy.program import TIME


def policy(
    *match: Mapping[str, Any],
    name: str = "web",
    variables: Mapping[str, str] | None = None,
    params: Sequence[Mapping[str, Any]] = (),
    extra_values: Mapping[str, Sequence[str]] | None = None,
    api_version: str = LATEST_API_VERSION,
) -> dict[str, Any]:
    """Return a policy as artifacts have it. A match is as in the policy file; ``rule`` is a list of matches, or a pair
    of variables and matches.
    """
    extra = {key: tuple(values) for key, values in (extra_values or {}).items()}
    types = {str(param["name"]): parse_type(str(param["type"])) for param in params}
    lines = iter(range(3, 10_000))

    def expression(source: str, known: Mapping[str, Type], expect: Type | None) -> tuple[dict[str, Any], Type]:
        checked = check(source, policy_declarations(api_version, types, known, extra), expect)
        assert checked.form is not None, (source, checked.findings)
        assert checked.type is not None
        return {"source": source, "line": next(lines), "column": 18, "form": checked.form}, checked.type

    def block(matches: Sequence[Mapping[str, Any]], texts: Mapping[str, str], known: dict[str, Type]) -> dict[str, Any]:
        entries = []
        for variable, source in texts.items():
            compiled, type_ = expression(source, known, None)
            known[variable] = type_
            entries.append({"name": variable, "type": str(type_), "expr": compiled})
        result = []
        for number, item in enumerate(matches, 1):
            entry: dict[str, Any] = {"id": f"match-{number}", "line": next(lines), "column": 7, **item}
            condition, explanation = item.get("condition"), item.get("explanation")
            entry["condition"] = None if condition is None else expression(condition, known, BOOL)[0]
            entry["explanation"] = None if explanation is None else expression(explanation, known, STRING)[0]
            limit = item.get("limit")
            if limit is not None and "group" in limit:
                entry["limit"] = {**limit, "group": expression(limit["group"], known, STRING)[0]}
            if "rule" in item:
                inner = item["rule"] if isinstance(item["rule"], tuple) else ({}, item["rule"])
                entry["rule"] = block(inner[1], inner[0], dict(known))
            result.append(entry)
        return {"variables": entries, "match": result}

    rule = block(match, variables or {}, {})
    return {
        "name": name,
        "description": "",
        "source": f"{name}.yml",
        "params": [dict(param) for param in params],
        "extra_values": {key: list(values) for key, values in extra.items()},
        "rule": rule,
        "time_dependent": any(word in repr(rule) for word in TIME),
        "invariants": [],
    }


def artifact_data(*policies: Mapping[str, Any], api_version: str = LATEST_API_VERSION) -> dict[str, Any]:
    """Return an artifact of policies, with its digest."""
    data: dict[str, Any] = {
        "format": "forewarn-policy",
        "version": 1,
        "forewarn": "0.1.0",
        "api_version": api_version,
        "sources": [{"path": str(one["source"]), "sha256": "0" * 64} for one in policies],
        "policies": list(policies),
    }
    data["digest"] = digest_of(data)
    return data


def artifact(*policies: Mapping[str, Any]) -> Artifact:
    """Return a loaded artifact."""
    return load(artifact_data(*policies))


def policy_set(*policies: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> PolicySet:
    """Return policies ready to decide."""
    return PolicySet(artifact(*policies), params)
