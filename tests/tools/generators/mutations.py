# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every version of a policy file in which one token of a condition, a variable or an output is another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|\d+|[A-Za-z_][\w.]*|[=!<>]=|&&|\|\||[<>!]""")
_OPERATORS = {
    "==": ("!=",),
    "!=": ("==",),
    "<": ("<=", ">", "=="),
    "<=": ("<", ">=", "=="),
    ">": (">=", "<", "=="),
    ">=": (">", "<=", "=="),
    "&&": ("||",),
    "||": ("&&",),
    "!": ("",),
}
# Names that could stand for each other, and values.
_KINDS: tuple[tuple[str, ...], ...] = (
    ("event.EventType", "event.EventStatus", "event.EventSource", "event.ResourceType", "event.Description"),
    ("event.DurationInSeconds", "size(event.Resources)"),
    ("affects_me", "leader"),
    ("notice", "age"),
    ("vm.tags.role", "vm.tags.Role"),
    ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "SpotRebalanceRecommendation"),
    ("Scheduled", "Started"),
    ("Platform", "User"),
    ("primary", "replica"),
    ("approve", "hold"),
)


class Mutant(NamedTuple):
    """One version; ``line`` is where ``old`` became ``new``."""

    text: str
    line: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.old} → {self.new or 'nothing'}"


def mutants(text: str) -> Iterator[Mutant]:
    """Yield all versions of a policy file."""
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    params = re.findall(r"- name: (\w+)\n    type: (\w+)", text)
    variables = re.findall(r"^    - name: (\w+)\n      expression", text, re.MULTILINE)
    names = (*_KINDS, tuple(f"params.{name}" for name, _ in params), tuple(f"variables.{name}" for name in variables))
    rule = next(value for key, value in root.value if key.value == "rule")
    for begin, end in _spans(rule, text):
        for token in _TOKEN.finditer(text, begin, end):
            for new in _others(token[0], names):
                line = text.count("\n", 0, token.start()) + 1
                yield Mutant(text[: token.start()] + new + text[token.end() :], line, token[0], new)


def _spans(node: yaml.Node, text: str) -> Iterator[tuple[int, int]]:
    """Yield where conditions, variables and outputs are."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _spans(item, text)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value in ("condition", "expression", "output"):
                begin = value.start_mark.index
                folded = value.style in (">", "|")  # which begins with a header line
                yield text.index("\n", begin) if folded else begin, value.end_mark.index
            elif key.value in ("rule", "match", "variables"):
                yield from _spans(value, text)


def _others(token: str, names: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if token in _OPERATORS:
        yield from _OPERATORS[token]
    elif token.isdigit():
        yield str(int(token) + 1)
        yield f"-{1 - int(token)}" if int(token) < 1 else str(int(token) - 1)
    elif token[0] in "'\"" and _TOKEN.search(token[1:-1]) and len(_TOKEN.findall(token[1:-1])) > 1:
        quote = token[0]  # an expression in quotes of YAML
        for inner in _TOKEN.finditer(token[1:-1]):
            for new in _others(inner[0], names):
                yield quote + token[1 : 1 + inner.start()] + new + token[1 + inner.end() : -1] + quote
    else:
        quote = token[0] if token[0] in "'\"" else ""
        bare = token.strip(quote) if quote else token
        for kind in names:
            if bare in kind:
                yield from (quote + other + quote for other in kind if other != bare)
        yield f"{quote}{bare}x{quote}"
