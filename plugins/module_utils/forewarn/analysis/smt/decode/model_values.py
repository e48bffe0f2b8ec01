# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of many terms in a model, by z3's C API: ``ModelRef.eval`` makes several objects for each."""

from __future__ import annotations

from typing import Any

from ..terms import Formula, Number, is_constant, require


class ModelValues:
    """Reads a model. What it leaves open has some value, the same whenever it is asked for."""

    def __init__(self, model: Any) -> None:
        self._z3, self._model = require(), model
        self._context = model.ctx.ref()
        self._result = (self._z3.Ast * 1)()

    def truth(self, term: Formula) -> bool:
        """Return whether a formula holds."""
        if is_constant(term):
            return bool(term)
        return bool(self._z3.Z3_get_bool_value(self._context, self._value(term)) == self._z3.Z3_L_TRUE)

    def number(self, term: Number) -> int:
        """Return the value of an integer. Raises z3.Z3Exception where it is none."""
        if is_constant(term):
            return int(term)
        return int(self._z3.Z3_get_numeral_string(self._context, self._value(term)))

    def real(self, term: Any) -> float:
        """Return the double next to the value of a real number."""
        return float(self._model.eval(term, True).as_fraction())

    def _value(self, term: Any) -> Any:
        z3 = self._z3
        if not z3.Z3_model_eval(self._context, self._model.model, term.as_ast(), True, self._result):
            raise z3.Z3Exception("failed to evaluate expression in the model")
        return self._result[0]
