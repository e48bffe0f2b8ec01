# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of all kinds of nodes share: declarations, variables in scope, findings, and the check of a node.

The modules with checks import this one, and ``checker``, which knows the check of each kind, imports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Callable

from . import types as t
from .forms import Form, TypedForm, call, dyn, unknown
from .guards import Present, access_path
from .syntax import SyntaxNode
from .type_hints import Operand, bool_hint
from .types import Declarations, ExpressionFinding, LocalVariable, Severity, Type, with_article


class CheckContext:
    """The state of the check of one expression.

    ``findings`` grow; a form is usable only if there is no error among them. ``locals`` are the variables of loops and
    of cel.bind(), the innermost last. ``cost`` counts the evaluated nodes, each as often as ``iterations``: the product
    of the lengths of the lists of the loops around it.
    """

    def __init__(self, declarations: Declarations, source: str, check_node: Check) -> None:
        self.declarations = declarations
        self.source = source
        self.findings: list[ExpressionFinding] = []
        self.locals: list[LocalVariable] = []
        self.cost = 0
        self.iterations = 1
        self._check_node = check_node

    def check(self, node: SyntaxNode, present: Present = frozenset()) -> TypedForm:
        """Return the form and the type of a node; ``present`` are the optional fields that exist where it is read."""
        self.count_node()
        return self._check_node(self, node, present)

    def check_all(self, nodes: Iterable[SyntaxNode], present: Present) -> list[TypedForm]:
        """Return the forms and the types of nodes."""
        return [self.check(node, present) for node in nodes]

    def count_node(self) -> None:
        """Add the evaluations of one node to the cost."""
        self.cost += self.iterations

    def fork(self) -> CheckContext:
        """Return a context with the same variables, whose findings are ignored."""
        quiet = CheckContext(self.declarations, self.source, self._check_node)
        quiet.locals = list(self.locals)
        return quiet

    # Findings

    def report(
        self, node: SyntaxNode, code: str, message: str, suggestion: str = "", severity: Severity = "error"
    ) -> None:
        """Add a finding at a node."""
        self.findings.append(ExpressionFinding(code, message, node.start, node.end, suggestion, severity))

    def refuse(self, node: SyntaxNode, code: str, message: str, suggestion: str = "") -> TypedForm:
        """Add a finding at a node, and return the node's form: one of unknown type, so that it is reported once."""
        self.report(node, code, message, suggestion)
        return unknown(node)

    def source_of(self, node: SyntaxNode) -> str:
        """Return the source text of a node, on one line."""
        return " ".join(self.source[node.start : node.end].split())

    def operand(self, node: SyntaxNode, type_: Type) -> Operand:
        """Return the operand that hints are made from."""
        right = self.source_of(node.children[-1]) if node.kind == "operator" else ""
        return Operand(node, type_, self.source_of(node), right)

    def operands(self, nodes: Iterable[SyntaxNode], types: Iterable[Type]) -> list[Operand]:
        """Return the operands that hints are made from."""
        return [self.operand(node, type_) for node, type_ in zip(nodes, types, strict=True)]

    # Conversions

    def to_dyn(self, node: SyntaxNode, value: TypedForm) -> Form:
        """Return the form of a value that carries its type at run time. Reports a record, which cannot."""
        form: Form = value.form
        if value.type in (t.DYN, t.UNKNOWN):
            return form
        if t.contains_kind(value.type, "record"):
            message = f"{with_article(value.type)} cannot stand among values of other types"
            self.report(node, "mixed-types", message)
            return form
        return dyn(node, form)

    def all_to_dyn(self, nodes: Iterable[SyntaxNode], values: Sequence[TypedForm]) -> list[Form]:
        """Return the forms of values that carry their types at run time."""
        return [self.to_dyn(node, value) for node, value in zip(nodes, values, strict=True)]

    def to_bool(self, node: SyntaxNode, value: TypedForm, where: str, hint: str = "") -> Form:
        """Return the form of a bool. Reports a value of another type; ``where`` is what needs the bool."""
        form: Form = value.form
        if value.type == t.DYN:
            return call(t.BOOL, node, "dyn_truth", form)
        if value.type not in (t.BOOL, t.NOTHING, t.UNKNOWN):
            message = f"{where} takes bool, and this is {with_article(value.type)}"
            self.report(node, "type-mismatch", message, hint or bool_hint(self.operand(node, value.type)))
        return form

    # Names

    def local(self, name: str) -> LocalVariable | None:
        """Return the innermost variable of a loop or cel.bind() with a name."""
        return next((local for local in reversed(self.locals) if local.name == name), None)

    def is_variable(self, name: str) -> bool:
        """Return whether there is a variable with a name, declared or local."""
        return name in self.declarations.variables or self.local(name) is not None

    def is_policy_variables(self, node: SyntaxNode) -> bool:
        """Return whether a node is ``variables``, before the name of a policy's variable."""
        return node.kind == "name" and node.value == "variables" and not self.is_variable("variables")

    def dotted_name(self, node: SyntaxNode) -> str | None:
        """Return a name with dots in it that begins with no variable of a loop; None for anything else."""
        path = access_path(node)
        return None if path is None or self.local(path.split(".", maxsplit=1)[0]) else path.lstrip(".")


Check = Callable[[CheckContext, SyntaxNode, Present], TypedForm]  # returns the form and the type of a node
