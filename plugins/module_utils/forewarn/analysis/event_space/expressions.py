# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads typed forms: which dimensions an expression depends on, where it cuts them, and what is not understood.

An expression becomes a Term, a tree of logic over atoms. An atom is *exact* if it has one answer for all events of a
class: it compares an ordered dimension with what is constant or enumerable, a text for equality, asks ``has()``, or
reads nothing but enumerable dimensions. The answer itself is the evaluator's, not ours. Anything else is *opaque*: it
may be true or false for any event of any class, and an error where a part of it has no value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...policy import forms as f
from ...policy.evaluation_error import EvaluationError
from ...policy.program import is_conditional
from ..artifacts import Json, every_part
from ..limits import named
from ..policy_outcome import PolicyMatch
from .atoms import Atom, Expressions, Term
from .case import Case
from .domains import LONGEST
from .leaves import Leaves, is_field, is_variable
from .symbol_table import Leaf, SymbolTable, case_of
from .symbols import DURATION, FIRST_NOW, LAST_NOW, NOTICE, NOW, Opaque

_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_ACCESSORS = frozenset(
    ("full_year", "month", "date", "day_of_month", "day_of_week", "day_of_year", "hours", "minutes", "seconds")
)
# Functions that have a value for any arguments of their types; accessors only without a time zone, which may not exist.
_TOTAL = frozenset(
    (
        *("in", "in_deep", "eq", "ne", "eq_deep", "ne_deep", "lt", "le", "gt", "ge", "not", "size", "contains"),
        "matches",
        *("starts_with", "ends_with", "same", "lower_ascii", "upper_ascii", "trim", "reverse", "integer_to_string"),
        *("bool_to_string", "duration_to_string", "timestamp_to_string", "add_string", "add_list", "to_double"),
        *("timestamp_to_int", "duration_hours", "duration_minutes", "duration_seconds"),
        *_ACCESSORS,
    )
)


def _is_total(form: f.Form) -> bool:
    return (
        isinstance(form, f.Call)
        and form.function in _TOTAL
        and not (form.function in _ACCESSORS and len(form.arguments) > 1)
    )


@dataclass(frozen=True, eq=False)
class ReadMatch(PolicyMatch["ReadMatch"]):
    """One match, with its expressions as terms; a limit is true where its group has a name."""

    condition: Term | None  # None: always
    explanation: Term | None  # true where it has a value
    limit: Term | None

    def reads(self) -> set[str]:
        """Return the names of the inputs that its condition, explanation and limit read."""
        terms = (self.condition, self.explanation, self.limit)
        return set().union(*(term.reads() for term in terms if term is not None))


class _Variable(NamedTuple):
    expression: Json
    form: f.Form
    key: Any


class Reader:
    """Reads the expressions of one policy, in the order of the file, into terms over a symbol table.

    ``policy`` is the artifact's entry; a claim about all policies has none.
    """

    def __init__(self, symbols: SymbolTable, params: Json, policy: Json | None = None) -> None:
        self._policy = policy or {}
        self.symbols = symbols
        self.params = params  # fixed ones
        self.variables: dict[str, _Variable] = {}
        self._leaves = Leaves(params, symbols.params)
        self._expressions = Expressions(params)
        self._expression: Json = {}
        self._defined: dict[Any, Term] = {}
        self._terms: dict[Any, Term] = {}

    # Building

    def block(self, block: Json, prefix: str, numbers: Iterator[int]) -> tuple[ReadMatch, ...]:
        """Read the matches of a rule, whose paths begin with ``prefix``; each takes the next of the numbers."""
        for variable in block["variables"]:
            self._add_variable(variable["name"], variable["expr"])
        found = []
        for data in block["match"]:
            path, number = prefix + data["id"], next(numbers)
            form = None if data["condition"] is None else self._form(data["condition"])
            condition = None if form is None else self._term(form)
            explanation = self._has_value(self._form(data["explanation"])) if data.get("explanation") else None
            limit = group = None
            if "group" in data.get("limit", ()):
                group = self.key(self._form(data["limit"]["group"]))
                limit = self._term(self._form(named(data["limit"]["group"])))
            inner = self.block(data["rule"], path + ".", numbers) if "rule" in data else None
            conditional = is_conditional(form)
            place = (self._policy, path, data, number)
            found.append(ReadMatch(*place, conditional, group, inner, condition, explanation, limit))
        return tuple(found)

    def _add_variable(self, name: str, expression: Json) -> None:
        """Declare a policy variable; what follows may read it."""
        form = self._form(expression)
        self._expressions.add_variable(name, expression, form)
        self.variables[name] = _Variable(expression, form, self.key(form))
        self._leaves.variables[name] = form

    def term(self, expression: Json, variables: Mapping[str, str]) -> Term:
        """Return the term of an expression of type bool, in which ``variables`` have these values."""
        return self._term(self._form(expression, variables))

    def _form(self, expression: Json, variables: Mapping[str, str] | None = None) -> f.Form:
        """Return the form of an expression, whose places are those of all forms from now on."""
        self._expression = expression
        return f.read_form(expression["form"], variables=variables)

    def key(self, form: f.Form) -> Any:
        """Return a form without its places, variables and fixed parameters replaced by what they are.

        Literals differ by their type, and by how they are written: -0.0 equals 0.0, and is another value.
        """
        if isinstance(form, f.PolicyVariable):
            return self.variables[form.name].key
        if isinstance(form, f.Field) and form.record == "params" and form.name in self.params:
            return ("fixed", form.type, repr(self.params[form.name]))
        inner = (self.key(one) if isinstance(one, f.Form) else repr(one) for one in form.operands)
        return (type(form), form.type, *inner)

    @contextmanager
    def _inside(self, name: str) -> Iterator[f.Form]:
        """Give the form of a policy variable, while places are those of its expression."""
        around, variable = self._expression, self.variables[name]
        self._expression = variable.expression
        try:
            yield variable.form
        finally:
            self._expression = around

    # Logic

    def _term(self, form: f.Form) -> Term:
        key = self.key(form)
        if key not in self._terms:
            self._terms[key] = self._make(form)
        return self._terms[key]

    def _make(self, form: f.Form) -> Term:
        if isinstance(form, f.PolicyVariable):
            with self._inside(form.name) as inner:
                return self._term(inner)
        if isinstance(form, f.Literal):
            return Term("lit", name="true" if form.value else "false")
        if isinstance(form, (f.And, f.Or, f.If)):
            return Term(type(form).__name__.lower(), tuple(map(self._term, form.parts)))
        if isinstance(form, f.Call) and form.function == "not":
            return Term("not", (self._term(form.arguments[0]),))
        if isinstance(form, f.Call) and form.function == "same":
            return self._term(form.arguments[0])
        if isinstance(form, f.Call) and form.function in ("eq", "ne") and {one.type for one in form.parts} == {"bool"}:
            return Term("same" if form.function == "eq" else "differ", tuple(map(self._term, form.parts)))
        dims = self.safe(form)
        if dims is not None:
            return Term("exact", atom=self._atom(form, dims))
        name = self._free_dimension(form, self.key(form), self._atom(form, frozenset()))
        return Term("opaque", (self._parts_have_values(form),), name=name)

    def _atom(self, form: f.Form, dims: frozenset[str]) -> Atom:
        return self._expressions.atom(self._expression, form, dims)

    def _free_dimension(self, form: f.Form, key: Any, atom: Atom) -> str:
        if self._reads(form, DURATION.key):  # so that events differ in it, though nothing else asks for it
            self.symbols.use(DURATION)
        source = self._source(form)
        return self.symbols.use_opaque(key, lambda number: Opaque(number, source, atom)).name

    def _reads(self, form: f.Form, field: str) -> bool:
        """Return whether a form reads a field of the event, maybe by variables of the policy."""
        form = self._leaves.resolved(form)
        is_read = isinstance(form, f.Access) and (form.record, form.name) == ("event", field)
        return is_read or any(self._reads(part, field) for part in form.parts)

    def _source(self, form: f.Form) -> str:
        return " ".join(self._expression.get("source", "")[form.start : form.end].split())

    # Whether a part has a value

    def _has_value(self, form: f.Form) -> Term:
        key = self.key(form)
        if key not in self._defined:
            self._defined[key] = self._make_has_value(form)
        return self._defined[key]

    def _make_has_value(self, form: f.Form) -> Term:
        if form.type == "bool":
            return Term("defined", (self._term(form),))
        if isinstance(form, f.PolicyVariable):
            with self._inside(form.name) as inner:
                return self._has_value(inner)
        leaf = self._leaves.of(form)
        if leaf is not None:
            self.symbols.use_leaf(leaf)
            return Term("exact", atom=self._atom(form, leaf.dims))
        dims = self.safe(form)
        if dims is not None:
            return Term("exact", atom=self._atom(form, dims))
        if isinstance(form, f.If):
            return Term("if", (self._term(form.condition), self._has_value(form.then), self._has_value(form.otherwise)))
        return self._parts_have_values(form)

    def _parts_have_values(self, form: f.Form) -> Term:
        """Return where a form that is not understood has a value: where its parts have, and maybe not even there."""
        if isinstance(form, (f.List, f.Matches)) or _is_total(form):
            return Term("defined", tuple(map(self._has_value, form.parts)))
        if is_field(form, "event", "Resources") or (isinstance(form, f.Field) and form.record == "params"):
            return Term("lit", name="true")  # the parser requires Resources
        if is_field(form, "event", "NotBefore"):
            self.symbols.use(NOTICE)
            return Term("exact", atom=self._atom(form, frozenset((NOTICE.name,))))
        atom = self._atom(form, frozenset())._replace(is_test=False)
        name = self._free_dimension(form, ("fails", self.key(form)), atom)
        return Term("if", (Term("opaque", (Term("lit", name="true"),), name=name), Term("lit", name="true"), _ERROR))

    # Exactness

    def safe(self, form: f.Form) -> frozenset[str] | None:
        """Return the dimensions that an exact form reads, cutting them as needed; None if it is not exact."""
        if isinstance(form, (f.Literal, f.Local, f.Bound)):
            return frozenset()
        if isinstance(form, f.PolicyVariable):
            return self.safe(self.variables[form.name].form)
        leaf = self._leaves.of(form)
        if leaf is not None:
            if not leaf.enumerable:
                return None
            self.symbols.use_leaf(leaf)
            return leaf.dims
        if isinstance(form, (f.Variable, f.Access)):
            return None
        if isinstance(form, f.Call) and form.function in _COMPARISONS:
            compared = self._comparison(form.function, *form.arguments)
            if compared is not None:
                return compared
        if isinstance(form, f.Call) and form.function == "in":
            members = self._membership(form.arguments[0], self._leaves.resolved(form.arguments[1]))
            if members is not None:
                return members
        dims: frozenset[str] = frozenset()
        for part in form.parts:
            found = self.safe(part)
            if found is None:
                return None
            dims |= found
        return dims

    def _leaf(self, form: f.Form) -> Leaf | None:
        leaf = self._leaves.of(form)
        return None if leaf is None or leaf.enumerable else leaf

    def _comparison(self, op: str, left: f.Form, right: f.Form) -> frozenset[str] | None:
        first, second = self._leaf(left), self._leaf(right)
        if first is None and second is None:
            return self._times(left, right)
        if first is not None and second is not None:
            return self.symbols.join(first, second)
        leaf, other, seen = (first, right, op) if first is not None else (second, left, _MIRRORED[op])
        dims = self.safe(other)
        if leaf is None or dims is None:
            return self._times(left, right)
        return self._cut(leaf, seen, other, dims)

    def _cut(self, leaf: Leaf, op: str, other: f.Form, dims: frozenset[str]) -> frozenset[str] | None:
        if leaf.kind == "text" and op not in ("eq", "ne"):
            return None
        values = self._values(other, dims)
        if values is None:
            return None
        self.symbols.cut(leaf, op, values)
        return leaf.dims | dims

    def _membership(self, element: f.Form, container: f.Form) -> frozenset[str] | None:
        leaf = self._leaf(element)
        if leaf is None:
            return None
        self.symbols.use_leaf(leaf)
        if not isinstance(container, f.List):
            return self._constant_membership(leaf, container)
        dims = leaf.dims
        for item in container.parts:
            found = self.safe(item)
            cut = None if found is None else self._cut(leaf, "eq", item, found)
            if cut is None:
                return None
            dims |= cut
        return dims

    def _constant_membership(self, leaf: Leaf, container: f.Form) -> frozenset[str] | None:
        if self.safe(container) != frozenset():
            return None
        try:
            items = list(self._atom(container, frozenset()).value_in(Case()))
        except EvaluationError:
            return None
        self.symbols.cut(leaf, "eq", items)
        return leaf.dims

    def _values(self, form: f.Form, dims: frozenset[str]) -> set[Any] | None:
        """Return the values that an enumerable form can have; None if they are too many, or are containers."""
        if any(isinstance(one, (f.Local, f.Bound)) for one in every_part(form)) or form.type.startswith(
            ("list(", "map(")
        ):
            return None
        chosen = [self.symbols.dimension(name) for name in sorted(dims)]
        if math.prod(len(dimension.values) for dimension in chosen) > 1000:
            return None
        atom = self._atom(form, dims)
        values = set()
        for combination in itertools.product(*(dimension.values for dimension in chosen)):
            case = case_of(zip(chosen, combination))
            if atom.has_value_in(case):  # otherwise it compares with nothing
                values.add(atom.value_in(case))
        return values

    def _times(self, left: f.Form, right: f.Form) -> frozenset[str] | None:
        """Read a comparison of sums of ``event.NotBefore``, ``now`` and constants: it asks for a difference."""
        first, second = self._sum(left), self._sum(right)
        if first is None or second is None:
            return None
        not_before, now, constant = (one - other for one, other in zip(first, second))
        notice, moment = Leaf("duration", (NOTICE,), signed=True), Leaf("timestamp", (NOW,))
        leaves = {(1, -1): (notice, -constant), (-1, 1): (notice, constant), (0, 1): (moment, -constant)}
        leaves[0, -1] = (moment, constant)
        if (not_before, now) not in leaves or not self._in_range(left, right):
            return None
        leaf, value = leaves[not_before, now]
        self.symbols.cut(leaf, "eq", [value])
        if not self._reads(left, "NotBefore") and not self._reads(right, "NotBefore"):
            return leaf.dims
        self.symbols.use_leaf(notice)  # without NotBefore they have no value, even where it cancels out
        return leaf.dims | notice.dims

    def _in_range(self, *forms: f.Form) -> bool:
        """Return whether sums have a value for all times that are looked at: no difference passes 292 years.

        The parts of a sum grow or shrink steadily with each time, so the ends hold for all times between them.
        """
        ends = [
            Case(now=now, notice=lead) for now, lead in itertools.product((FIRST_NOW, LAST_NOW), (-LONGEST, LONGEST))
        ]
        return all(self._atom(form, frozenset()).has_value_in(end) for form in forms for end in ends)

    def _sum(self, form: f.Form) -> tuple[int, int, int] | None:
        """Return how often NotBefore and now are in a sum, and the rest of it."""
        form = self._leaves.resolved(form)
        if is_variable(form, "now"):
            return 0, 1, 0
        if is_field(form, "event", "NotBefore"):
            return 1, 0, 0
        if isinstance(form, f.Call) and form.function in ("add_timestamp", "sub_timestamp", "diff_timestamp"):
            first, second = map(self._sum, form.arguments)
            if first is None or second is None:
                return None
            sign = 1 if form.function == "add_timestamp" else -1
            return tuple(one + sign * other for one, other in zip(first, second))  # type: ignore[return-value]  # of 3
        if form.type in ("timestamp", "duration") and self.safe(form) == frozenset():
            values = self._values(form, frozenset())
            return None if not values else (0, 0, values.pop())
        return None


_ERROR = Term("lit", name="error")
