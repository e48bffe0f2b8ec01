# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions as terms: the typed form of an expression, encoded part by part.

The encoding has the meaning of ``policy.evaluate``: a part has a value, or an error that ``&&``, ``||``, ``all`` and
``exists`` may absorb. A part that cannot be encoded exactly may have any value or error, the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....policy import forms as f
from ....policy.forms import Form, read_form
from ...artifacts import Json
from ..effort import Subexpression
from ..terms import Formula
from .calls import function_call, list_of, map_of, matches
from .form_encoder import FormEncoder, FormScope
from .logic import ConditionPart, choice, condition_part, logic
from .loops import exists_one, filter_counted_by, filter_tested_by, quantifier
from .problem import SORTS, Encoding
from .references import bind, bound, dynamic, field, has, literal, local, policy_variable, variable
from .text_functions import TextFunction

_LIGHT = frozenset(  # functions that cost nothing beside what their arguments do
    ("eq", "ne", "lt", "le", "gt", "ge", "not", "same", "size", "index_map", "index_list", "in", "eq_deep", "ne_deep")
)


class ExpressionEncoder(FormEncoder):
    """Encodes expressions of an artifact."""

    def declare(self, name: str, expression: Json) -> None:
        """Have a variable of the policy."""
        form = read_form(expression["form"])
        with self.within(FormScope(expression)):
            self.variables[name] = self.key(form), self.encode(form)

    def value(self, expression: Json) -> Encoding:
        """Return the encoding of an expression whose value in every model is a term's."""
        with self.within(FormScope(expression)):
            return self.plain(self.encode(read_form(expression["form"])))

    def condition(self, expression: Json) -> ConditionPart:
        """Return an expression whose value is a bool, with its operands."""
        with self.within(FormScope(expression)):
            return condition_part(self, read_form(expression["form"]))

    def error(self, expression: Json) -> Formula:
        """Return the formula that holds iff an expression has no value."""
        with self.within(FormScope(expression)):
            found = self.encode(read_form(expression["form"]))
            if isinstance(found.value, TextFunction) and found.value.total:
                return found.error
            return self.plain(found).error

    def expression_key(self, expression: Json) -> str:
        """Return a text that is the same for expressions that have the same value."""
        return self.key(read_form(expression["form"]))

    def encode(self, form: Form) -> Encoding:
        is_loop = _is_loop(form)
        is_light = not isinstance(form, (f.Matches, f.Call)) or (isinstance(form, f.Call) and form.function in _LIGHT)
        if (is_light and not is_loop) or self.scope.locals or form.type not in SORTS:
            return _ENCODERS[type(form)](self, form)
        source = self.source_of(form)
        if source in self.problem.effort.aside:
            return self.fresh(form)
        found = _ENCODERS[type(form)](self, form)
        if source not in self.problem.subexpressions:
            place, divisions = self.place_of(form), self.problem.divisions
            self.problem.subexpressions[source] = Subexpression(source, place, found.value, is_loop, divisions)
        return found


def _is_loop(form: Form) -> bool:
    if isinstance(form, f.Call):
        return filter_tested_by(form) is not None or filter_counted_by(form) is not None
    return isinstance(form, (f.All, f.Exists, f.ExistsOne))


_ENCODERS: Mapping[type[Form], Callable[[FormEncoder, Any], Encoding]] = {
    f.Literal: literal,
    f.List: list_of,
    f.Map: map_of,
    f.Variable: variable,
    f.PolicyVariable: policy_variable,
    f.Local: local,
    f.Bind: bind,
    f.Bound: bound,
    f.Dynamic: dynamic,
    f.Field: field,
    f.Has: has,
    f.And: logic,
    f.Or: logic,
    f.If: choice,
    f.Call: function_call,
    f.Matches: matches,
    f.All: quantifier,
    f.Exists: quantifier,
    f.ExistsOne: exists_one,
    f.MapList: FormEncoder.fresh,
    f.Filter: FormEncoder.fresh,
}
