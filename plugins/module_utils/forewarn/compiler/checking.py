# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What checking any kind of node takes: findings, the form, the cost."""

from __future__ import annotations

from typing import Any

from . import types as t
from .hints import Operand, bool_hint
from .syntax import Node
from .types import Declarations, ExpressionFinding, ExpressionSeverity, Type
from .wording import with_article

Typed = tuple[list[Any], Type]
Present = frozenset[str]  # the access paths that are known to be there, as ``event.NotBefore``

MAX_COST = 1_000_000  # steps, were every list of unknown length to have this many elements:
ASSUMED_ELEMENTS = 100


class Checking:
    """Checks one expression. ``findings`` grows; the form is worth something only if it stays empty of errors."""

    def __init__(self, declarations: Declarations, source: str = "") -> None:
        self.declarations = declarations
        self.source = source
        self.findings: list[ExpressionFinding] = []
        self.locals: list[tuple[str, Type, int]] = []
        self.cost = 0
        self.turns = 1

    def report(
        self, node: Node, code: str, message: str, suggestion: str = "", severity: ExpressionSeverity = "error"
    ) -> None:
        """Add a finding at a node."""
        self.findings.append(ExpressionFinding(code, message, node.start, node.end, suggestion, severity))

    def written(self, node: Node) -> str:
        """Return a part of the expression as it is written."""
        return " ".join(self.source[node.start : node.end].split())

    def operand(self, node: Node, type_: Type) -> Operand:
        """Return what hints are made of."""
        return Operand(node, type_, self.written(node))

    def check(self, node: Node, present: Present = frozenset()) -> Typed:
        """Return the form and the type of a node."""
        self.cost += self.turns
        form, type_ = getattr(self, "_" + node.kind)(node, present)
        return form, type_

    def _made(self, op: str, type_: Type, node: Node, *rest: Any) -> Typed:
        return [op, str(type_), node.start, node.end, *rest], type_

    def _unknown(self, node: Node) -> Typed:
        return self._made("unknown", t.UNKNOWN, node)

    def _expect_bool(self, node: Node, type_: Type, where: str) -> None:
        if type_ not in (t.BOOL, t.UNKNOWN):
            message = f"{where} takes bool, and this is {with_article(type_)}"
            self.report(node, "type-mismatch", message, bool_hint(self.operand(node, type_)))
