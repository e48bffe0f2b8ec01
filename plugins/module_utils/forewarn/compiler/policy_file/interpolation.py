# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds ``${…}`` in texts of hooks: a CEL expression each, whose value stands in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..cel.types import CelSyntaxError

# What has no brace that counts: texts of CEL, as in ${vm.tags['}']}.
_TEXT = re.compile(r"""[rR](?:'[^']*'|"[^"]*")|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)


class TextPart(NamedTuple):
    """A part of a text: ``source`` from ``start`` on, which is an expression or stands for itself."""

    source: str
    start: int
    is_expression: bool


def parts(value: str) -> list[TextPart]:
    """Return the parts of a text, in order; ``$${`` stands for ``${``. Raises CelSyntaxError if a brace stays open."""
    return [part for part in _parts(value) if part.is_expression or part.source]


def _parts(value: str) -> Iterator[TextPart]:
    plain, plain_start, position = "", 0, 0
    while position < len(value):
        if value.startswith("$${", position):
            plain += "${"
            position += 3
        elif value.startswith("${", position):
            yield TextPart(plain, plain_start, False)
            end = _closing_brace(value, position + 2)
            yield TextPart(value[position + 2 : end], position + 2, True)
            position = plain_start = end + 1
            plain = ""
        else:
            plain += value[position]
            position += 1
    yield TextPart(plain, plain_start, False)


def _closing_brace(value: str, start: int) -> int:
    """Return the offset of the brace that ends an expression which begins at ``start``."""
    depth, position = 0, start
    while position < len(value):
        quoted = _TEXT.match(value, position)
        if quoted:
            position = quoted.end()
            continue
        if value[position] == "}" and depth == 0:
            return position
        depth += {"{": 1, "}": -1}.get(value[position], 0)
        position += 1
    raise CelSyntaxError("syntax", "'${' has no '}'", start - 2, len(value), "write $${ for a text that begins with ${")
