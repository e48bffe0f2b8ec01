# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SARIF 2.1.0, as every command that writes it does: the log, its rules, and where results are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .... import __version__
from .repository_paths import uri_of

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(rules: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a log of one run. ``rules`` are reportingDescriptor objects, ``results`` result objects."""
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "forewarn", "version": __version__, "rules": list(rules)}},
                "columnKind": "unicodeCodePoints",
                "results": list(results),
            }
        ],
    }


def sarif_rule(name: str, meaning: str, help_uri: str | None = None, level: str | None = None) -> dict[str, Any]:
    """Return a rule. ``level`` is that of results which do not have their own: ``error``, ``warning`` or ``note``."""
    rule: dict[str, Any] = {"id": name, "shortDescription": {"text": meaning}}
    if help_uri is not None:
        rule["helpUri"] = help_uri
        rule["help"] = {"text": f"{meaning} See {help_uri}"}
    if level is not None:
        rule["defaultConfiguration"] = {"level": level}
    return rule


def sarif_result(
    rules: Sequence[str], rule: str, level: str, text: str, place: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a result of one of the rules, which are named. ``more``: further properties of a result object."""
    found = {"ruleId": rule, "ruleIndex": rules.index(rule), "level": level, "message": {"text": text}}
    return {**found, **({} if place is None else {"locations": [place]}), **more}


def sarif_location(
    path: Path, line: int | None = None, column: int | None = None, end_column: int | None = None
) -> dict[str, Any]:
    """Return a place in a file; line and columns count from 1, in characters, the last being the first one outside."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri_of(path)}}
    if line is not None:
        physical["region"] = {"startLine": line, "startColumn": column}
        if end_column is not None:
            physical["region"]["endColumn"] = end_column
    return {"physicalLocation": physical}
