# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL source to syntax tree: cel-python's grammar, held to the language definition where it is more lenient.

A small scanner of our own finds the string literals and comments by the definition's rules. Where the grammar's tokens
disagree with it, or where CEL engines are known to disagree, the expression is refused rather than read one way.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..requirements import MissingLibraryError, require_libraries
from .literals import disagreement, find_literals, read_number, read_text
from .syntax_hints import syntax_hint, unfinished_hint
from .types import BOOL, NULL, CelSyntaxError, Type

# What cel-python's grammar lacks of the language definition: optional fields and entries, names in back-quotes, and a
# comma after the last element. All else has the same tree with and without it, so that cel-python can evaluate it.
_EXTENSION = r"""
%override member_dot : member "." (IDENT | QUOTED_IDENT)
%extend member       : member_optional_dot | member_optional_index
member_optional_dot  : member "." "?" (IDENT | QUOTED_IDENT)
member_optional_index : member "[" "?" expr "]"
%override list_lit   : "[" [list_elements] "]"
list_elements        : _elements -> exprlist | _elements "," -> exprlist
%override exprlist   : _elements
_elements            : _element | _elements "," _element
_element             : expr | optional_element
%override mapinits   : _entries | _entries ","
_entries             : _entry | _entries "," _entry
_entry               : _element ":" expr
optional_element     : "?" expr
QUOTED_IDENT         : /`[a-zA-Z0-9_.\- \/]+`/
"""
MAX_SOURCE = 10_000  # characters
MAX_DEPTH = 64  # of nested operators, calls, brackets

RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    )
)
_OPERATORS = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
}


NodeKind = Literal[
    "literal", "name", "select", "optional_select", "index", "optional_index", "call", "method", "operator",
    "and", "or", "if", "list", "map", "optional_element",
]  # fmt: skip


@dataclass
class SyntaxNode:
    """A node. ``start`` and ``end`` are offsets in the source, in characters.

    ``value`` is the literal, or the name of what is selected, called or applied; ``type`` is a literal's. The name of a
    ``name`` may begin with a dot: no variable of a loop hides it.
    """

    kind: NodeKind
    start: int
    end: int
    value: Any = None
    children: list[SyntaxNode] = field(default_factory=list)
    type: Type | None = None

    @property
    def is_identifier(self) -> bool:
        """Whether it is a name that a macro can declare as a variable."""
        return self.kind == "name" and not self.value.startswith(".")


def parse(source: str) -> SyntaxNode:
    """Return the syntax tree of an expression. Raises CelSyntaxError."""
    if len(source) > MAX_SOURCE:
        message = f"the expression has {len(source)} characters, more than {MAX_SOURCE}"
        raise CelSyntaxError("too-long", message, 0, 1, "split it into variables")
    if not source.strip():
        raise CelSyntaxError("syntax", "the expression is empty", 0, 0, "write true or false")
    literals = find_literals(source)
    tree = grammar_tree(source)
    converter = _Converter(source, literals)
    node = converter.convert(tree, 0)
    if converter.literals_left:
        start = min(converter.literals_left)
        raise disagreement(start, literals[start])
    return node


def grammar_tree(source: str) -> Any:
    """Return the tree of cel-python's grammar, which cel-python can evaluate, too. Raises CelSyntaxError."""
    from lark.exceptions import LexError, ParseError, UnexpectedInput  # here: a control node may lack it

    try:
        return _parser().parse(source)
    except (LexError, ParseError) as error:
        token = getattr(error, "token", None)
        start = error.pos_in_stream if isinstance(error, UnexpectedInput) else None
        if start is None or getattr(token, "type", "") == "$END":
            end = len(source)
            message, hint = "the expression ends too early", unfinished_hint(source)
            raise CelSyntaxError("syntax", message, len(source.rstrip()), end, hint) from error
        found = re.match(r"\w+|.", source[start:], re.DOTALL)
        text = found.group() if found else ""
        message, hint = f"CEL does not allow {text!r} here", syntax_hint(source, start)
        raise CelSyntaxError("syntax", message, start, start + len(text), hint) from error


@functools.lru_cache(maxsize=None)
def _parser() -> Any:
    """Return a parser of cel-python's grammar, made with lark as cel-python does.

    cel-python's CELParser cannot be used. It replaces the tokens ``true`` and ``false`` by new ones without a position,
    so a finding about them, or about a node that begins or ends with them, has no place in the file. Its errors lack
    the unexpected token. The process has only one parser, with the tree class of its first caller. Importing it
    imports the whole evaluator, which takes 7 MiB more.
    """
    require_libraries()
    spec = importlib.util.find_spec("celpy")  # not imported: compiling does not need its evaluator
    if spec is None or not spec.submodule_search_locations:
        raise MissingLibraryError("the Python package cel-python has no directory to read its grammar from")
    import lark

    def keep_literals(token: lark.Token) -> lark.Token:
        if token in ("true", "false"):
            return lark.Token.new_borrow_pos("BOOL_LIT", token, token)
        return token

    grammar = pathlib.Path(spec.submodule_search_locations[0]) / "cel.lark"
    return lark.Lark(
        grammar.read_text(encoding="utf-8") + _EXTENSION,
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        lexer_callbacks={"IDENT": keep_literals},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )


class _Converter:
    """Turns the grammar's tree, a chain of one rule for each level of precedence, into nodes."""

    def __init__(self, source: str, literals: dict[int, int]) -> None:
        self.source = source
        self.literals = literals
        self.literals_left = set(literals)

    def convert(self, tree: Any, depth: int) -> SyntaxNode:
        """Return the node of a rule's tree. Raises CelSyntaxError."""
        while len(tree.children) == 1 and hasattr(tree.children[0], "data") and tree.data not in _OWN_RULES:
            tree = tree.children[0]
        if depth > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} levels deep"
            raise self._error("too-deep", message, tree, "split it into variables")
        if tree.data in _PLAIN_RULES:
            kind, value = _PLAIN_RULES[tree.data]
            return self._node(kind, tree, value, self._convert_all(tree.children, depth + 1))
        node: SyntaxNode = getattr(self, f"_{tree.data}")(tree, depth + 1)  # as lark's visitors: by the rule's name
        return node

    def _convert_all(self, trees: Iterable[Any], depth: int) -> list[SyntaxNode]:
        return [self.convert(tree, depth) for tree in trees]

    def _arguments(self, lists: list[Any], depth: int) -> list[SyntaxNode]:
        return [self.convert(child, depth) for part in lists for child in part.children]

    @staticmethod
    def _node(kind: NodeKind, tree: Any, value: Any, children: list[SyntaxNode] | None = None) -> SyntaxNode:
        return SyntaxNode(kind, tree.meta.start_pos, tree.meta.end_pos, value, children or [])

    @staticmethod
    def _error(code: str, message: str, tree: Any, suggestion: str = "") -> CelSyntaxError:
        return CelSyntaxError(code, message, tree.meta.start_pos, tree.meta.end_pos, suggestion)

    def _chain(self, tree: Any, depth: int) -> SyntaxNode:
        """Flatten ``a || b || c``, which the grammar nests to the left, without recursion."""
        whole, rule, operands = tree, tree.data, []
        kind: NodeKind = "or" if rule == "conditionalor" else "and"
        while tree.data == rule and len(tree.children) == 2:
            operands.append(tree.children[1])
            tree = tree.children[0]
        operands.append(tree)
        return self._node(kind, whole, kind, self._convert_all(reversed(operands), depth))

    _conditionalor = _conditionaland = _chain

    def _binary(self, tree: Any, depth: int) -> SyntaxNode:
        left, right = tree.children
        after = left.meta.end_pos
        if left.data == "relation_in" and re.match(r"\w", self.source[after : after + 1]):
            # The grammar's tokens find the operator in 'a' inside, too.
            raise CelSyntaxError("syntax", "CEL does not allow a word here that begins with in", after - 2, after + 1)
        return self._node("operator", tree, _OPERATORS[left.data], self._convert_all((left.children[0], right), depth))

    _relation = _addition = _multiplication = _binary

    def _unary(self, tree: Any, depth: int) -> SyntaxNode:
        operator, operand = tree.children
        name = "!" if operator.data == "unary_not" else "negate"
        return self._node("operator", tree, name, [self.convert(operand, depth)])

    def _member_dot(self, tree: Any, depth: int) -> SyntaxNode:
        operand, name = tree.children
        kind: NodeKind = "select" if tree.data == "member_dot" else "optional_select"
        return self._node(kind, tree, self._selector(name), [self.convert(operand, depth)])

    _member_optional_dot = _member_dot

    @staticmethod
    def _selector(token: Any) -> str:
        """Return a name after a dot: reserved words may stand there, the words of the grammar itself may not."""
        name = str(token)
        if name.startswith("`"):
            return name[1:-1]
        if name in ("in", "null"):
            raise CelSyntaxError("syntax", f"CEL does not allow {name!r} here", token.start_pos, token.end_pos)
        return name

    def _member_dot_arg(self, tree: Any, depth: int) -> SyntaxNode:
        receiver, name, *arguments = tree.children
        children = [self.convert(receiver, depth), *self._arguments(arguments, depth)]
        return self._node("method", tree, self._selector(name), children)

    def _member_object(self, tree: Any, _depth: int) -> SyntaxNode:
        raise self._error("unsupported", "protobuf messages are not supported", tree)

    def _dot_ident(self, tree: Any, _depth: int) -> SyntaxNode:
        return self._node("name", tree, f".{tree.children[0]}")

    def _dot_ident_arg(self, tree: Any, depth: int) -> SyntaxNode:
        if tree.children[0] == "has":
            raise self._error("bad-macro", "has() is a macro, which has no dot before it", tree, "remove the dot")
        return self._ident_arg(tree, depth)  # no function hides another one

    def _ident(self, tree: Any, _depth: int) -> SyntaxNode:
        name = str(tree.children[0])
        if name in RESERVED or name == "in":  # the grammar accepts it as the name of a loop's variable
            raise self._error("reserved-word", f"{name} is a reserved word of CEL", tree, "choose another name")
        return self._node("name", tree, name)

    def _ident_arg(self, tree: Any, depth: int) -> SyntaxNode:
        name, *arguments = tree.children
        return self._node("call", tree, str(name), self._arguments(arguments, depth))

    def _paren_expr(self, tree: Any, depth: int) -> SyntaxNode:
        return self.convert(tree.children[0], depth)

    def _list_lit(self, tree: Any, depth: int) -> SyntaxNode:
        return self._node("list", tree, None, self._arguments(tree.children, depth))

    def _map_lit(self, tree: Any, depth: int) -> SyntaxNode:
        return self._node("map", tree, None, self._arguments(tree.children, depth))

    def _literal(self, tree: Any, _depth: int) -> SyntaxNode:
        token, start, end = tree.children[0], tree.meta.start_pos, tree.meta.end_pos
        text, kind = str(token), token.type
        value: Any
        if kind in ("STRING_LIT", "MLSTRING_LIT", "BYTES_LIT"):
            if self.literals.get(start) != end:
                raise disagreement(start, end)
            self.literals_left.discard(start)
            value, type_ = read_text(text, start, end)
        elif kind == "BOOL_LIT":
            value, type_ = text == "true", BOOL
        elif kind == "NULL_LIT":
            value, type_ = None, NULL
        else:
            value, type_ = read_number(text, kind, start, end)
        return SyntaxNode("literal", start, end, value, type=type_)


# Rules whose subtrees are the children of a node: the kind of the node, and its value.
_PLAIN_RULES: Mapping[str, tuple[NodeKind, str | None]] = {
    "expr": ("if", "?:"),
    "member_index": ("index", "[]"),
    "member_optional_index": ("optional_index", "[?]"),
    "optional_element": ("optional_element", None),
}
# Rules that mean something even around a single subtree.
_OWN_RULES = frozenset(
    (
        *("paren_expr", "list_lit", "map_lit", "ident_arg", "member_dot_arg", "dot_ident_arg", "member_object"),
        *("dot_ident", "optional_element"),
    )
)
