# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an expression raises instead of a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EvaluationError(Exception):
    """An expression has no value. ``&&``, ``||`` and quantifiers may absorb this.

    ``expression`` is the artifact's entry of the expression it happened in, ``start`` and ``end`` are character offsets
    into its source; they are set on the way out.
    """

    expression: Mapping[str, Any] | None = None
    start = 0
    end = 0


class LimitError(EvaluationError):
    """The loops took too many steps. Nothing absorbs this: a result found after it would depend on the limit."""


class InternalError(EvaluationError):
    """The evaluator itself failed. Another program may have made the artifact: its digest and the structure of its
    forms are checked, but not their types.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"internal error ({type(cause).__name__}: {cause}): this is a defect of forewarn, unless another program "
            "made the artifact; please report it"
        )
