# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions in policy files: their findings at their places, and their entries in the artifact."""

from __future__ import annotations

from typing import Any

from ..cel.expression import CheckResult
from ..yaml.tree import Scalar, YamlFile


def expression_entry(
    file: YamlFile, node: Scalar, source: str, checked: CheckResult, offset: int = 0
) -> dict[str, Any]:
    """Report the findings of an expression that is ``source`` in a scalar, from ``offset`` on; return its entry."""
    for finding in checked.findings:
        file.add_in(node, finding, offset)
    line, column = file.place(node, offset)
    return {"source": source, "line": line, "column": column, "form": checked.form}
