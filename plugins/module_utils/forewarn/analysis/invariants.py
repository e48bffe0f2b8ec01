# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads claims about policies from a separate file, for ``policy verify --invariants``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..compiler.cel.environment import invariant_declarations, policy_declarations
from ..compiler.cel.expression import ExpressionError, check
from ..compiler.cel.types import BOOL, Type, parse_type
from ..compiler.yaml import tree
from ..compiler.yaml.tree import Scalar, YamlFile, YamlNode, text_of
from ..errors import InputError
from ..policy.artifact import Artifact
from .artifacts import extra_values

_FORM = "It is a list, or a mapping with a list 'invariants', of {name: …, expression: …}."


def read_invariants(path: Path, artifact: Artifact) -> list[dict[str, Any]]:
    """Read and check the claims of a file; they may name any parameter that a policy declares.

    Raises InputError with all mistakes.
    """
    file = YamlFile.read(path)
    if file.report.findings:
        first = file.report.findings[0]
        raise InputError(f"{first.where}: {first.message}", first.suggestion)
    types, extra = declared([artifact])
    declarations = invariant_declarations(policy_declarations(artifact.api_version, types, {}, extra))
    claims, mistakes = [], []
    for number, item in enumerate(_items(file.root, path), 1):
        name, node = text_of(item.get("name")), item.get("expression")
        unknown = sorted(item.values.keys() - {"name", "expression"})
        if unknown or not isinstance(node, Scalar) or node.empty or not name:
            what = f"unknown key {unknown[0]}" if unknown else "it needs a name and an expression"
            raise InputError(f"{path}: claim {number}: {what}", _FORM)
        source = file.expression(node)
        checked = check(source, declarations, BOOL)
        line, column = file.place(node)
        if checked.form is None:
            mistakes.append(f"{path}:{line}: {name}: {ExpressionError(source, checked.findings).message}")
            continue
        expression = {"source": source, "line": line, "column": column, "form": checked.form}
        claims.append({"name": name, "expression": expression, "source": str(path)})
    if mistakes:
        raise InputError("\n".join(mistakes))
    return claims


def declared(versions: Sequence[Artifact]) -> tuple[dict[str, Type], dict[str, tuple[str, ...]]]:
    """Return what expressions about policies may read: the types of parameters, and the extra types and statuses."""
    types = {entry["name"]: parse_type(entry["type"]) for artifact in versions for entry in artifact.params}
    return types, extra_values(data for artifact in versions for data in artifact.data["policies"])


def _items(root: YamlNode | None, path: Path) -> Iterator[tree.Mapping]:
    listed = root.get("invariants") if isinstance(root, tree.Mapping) else root
    if not isinstance(listed, tree.Sequence):
        raise InputError(f"{path}: no list of claims", _FORM)
    for number, item in enumerate(listed.items, 1):
        if not isinstance(item, tree.Mapping):
            raise InputError(f"{path}: claim {number} is not a mapping", _FORM)
        yield item
