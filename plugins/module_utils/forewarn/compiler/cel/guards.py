# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the optional fields that a condition guards with ``has()``: they may be read where they must exist."""

from __future__ import annotations

from typing import FrozenSet

from .syntax import SyntaxNode

Present = FrozenSet[str]  # the access paths that are known to exist, such as ``event.NotBefore``
_NONE: Present = frozenset()


def access_path(node: SyntaxNode) -> str | None:
    """Return the path of a field access, such as ``event.NotBefore``, None for anything else."""
    if node.kind == "name":
        return str(node.value)
    if node.kind == "select":
        operand = access_path(node.children[0])
        return None if operand is None else f"{operand}.{node.value}"
    return None


def when_true(node: SyntaxNode) -> Present:
    """Return the accesses that exist whenever the node is true."""
    if node.kind == "call" and node.value == "has" and len(node.children) == 1:
        path = access_path(node.children[0])
        return _NONE if path is None else frozenset((path,))
    if node.kind == "and":
        return _NONE.union(*(when_true(child) for child in node.children))
    if node.kind == "operator" and node.value == "!":
        return when_false(node.children[0])
    return _NONE


def when_false(node: SyntaxNode) -> Present:
    """Return the accesses that exist whenever the node is false."""
    if node.kind == "or":
        return _NONE.union(*(when_false(child) for child in node.children))
    if node.kind == "operator" and node.value == "!":
        return when_true(node.children[0])
    return _NONE


def without_name(present: Present, name: str) -> Present:
    """Return the accesses that do not begin with a name, which a new variable hides."""
    return frozenset(path for path in present if path.split(".")[0] != name)
