# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds closures from the typed form of checked expressions.

Types were checked when the form was made, so nothing is converted here; what can still go wrong raises
EvaluationError. ``&&``, ``||``, ``all`` and ``exists`` absorb errors as the CEL language definition says: a side that
decides the result hides the other side's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from . import forms as f
from .environment import ABSENT, MAX_STEPS, UNSET, Closure, Env, Scope, evaluate_once
from .evaluation_error import EvaluationError, LimitError
from .forms import Form
from .functions.dynamic import Dyn
from .functions.lists import QUADRATIC, count_comparisons
from .functions.regex import compile_program
from .functions.standard import FUNCTIONS

COMPARISONS_PER_STEP = 100  # of elements of lists: these take about as long as a step


class Builder:
    """Builds the closures of one expression of an artifact. ``scope`` has the variables that it may read.

    A subclass may wrap what ``build`` returns. With ``fuses_parts``, one closure may evaluate several parts of a form;
    without, ``build`` is called for every part.
    """

    fuses_parts = True

    def __init__(self, scope: Scope, expression: Mapping[str, Any]) -> None:
        self.scope = scope
        self.expression = expression
        self._local_slots: dict[int, int] = {}
        self._bound_closures: dict[int, Closure] = {}

    def build(self, form: Form) -> Closure:
        """Return the closure of a form. Raises KeyError for a name that the scope does not have."""
        return _METHODS[type(form)](self, form)

    def _literal(self, form: f.Literal) -> Closure:
        value = form.value
        return lambda env: value  # noqa: ARG005  # a closure takes an environment

    def _list(self, form: f.List) -> Closure:
        items = [self.build(item) for item in form.parts]
        return lambda env: [item(env) for item in items]

    def _map(self, form: f.Map) -> Closure:
        closures = [self.build(part) for part in form.parts]
        pairs = list(zip(closures[::2], closures[1::2]))

        def evaluate(env: Env) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value in pairs:
                name = key(env)
                if name in result:
                    raise self._error_at(form, f"the key {name!r} is given more than once")
                result[name] = value(env)
            return result

        return evaluate

    def _variable(self, form: f.Variable) -> Closure:
        slot, name = self.scope.slots[form.name], form.name

        def get(env: Env) -> Any:
            value = env[slot]
            if value is ABSENT:
                raise self._error_at(form, f"{name} is not known")
            return value

        return get

    def _policy_variable(self, form: f.PolicyVariable) -> Closure:
        return evaluate_once(self.scope.slots["variables." + form.name], self.scope.variable_closures[form.name])

    def _local(self, form: f.Local) -> Closure:
        slot = self._local_slot(form.number)
        return lambda env: env[slot]

    def _bind(self, form: f.Bind) -> Closure:
        slot = self._local_slot(form.number)
        self._bound_closures[form.number] = self.build(form.value)
        body = self.build(form.body)

        def evaluate(env: Env) -> Any:
            env[slot] = UNSET
            return body(env)

        return evaluate

    def _bound(self, form: f.Bound) -> Closure:
        return evaluate_once(self._local_slot(form.number), self._bound_closures[form.number])

    def _dynamic(self, form: f.Dynamic) -> Closure:
        type_, operand = form.operand.type, self.build(form.operand)
        return lambda env: Dyn(type_, operand(env))

    def _field(self, form: f.Field) -> Closure:
        name = form.name
        slot = self._record_slot(form.operand) if self.fuses_parts else None
        if slot is not None:

            def get_of_variable(env: Env) -> Any:
                try:
                    return env[slot][name]
                except KeyError:
                    raise self._missing_field(form) from None

            return get_of_variable
        operand = self.build(form.operand)

        def get(env: Env) -> Any:
            try:
                return operand(env)[name]
            except KeyError:
                raise self._missing_field(form) from None

        return get

    def _local_slot(self, number: int) -> int:
        """Return the slot of a local by its number.

        Expressions share no slots, since a policy variable is evaluated in the middle of the expression that reads it.
        """
        if number not in self._local_slots:
            self._local_slots[number] = self.scope.add(f"{id(self)}#{number}")
        return self._local_slots[number]

    def _record_slot(self, form: Form) -> int | None:
        """Return the slot of a variable or a local, None for any other form."""
        if isinstance(form, f.Variable):
            return self.scope.slots[form.name]
        return self._local_slot(form.number) if isinstance(form, f.Local) else None

    def _has(self, form: f.Has) -> Closure:
        operand, name = self.build(form.operand), form.name
        return lambda env: name in operand(env)

    def _logic(self, form: f.And | f.Or) -> Closure:
        """One false decides ``&&``, and one true ``||``, whatever errors the other operands have."""
        deciding = isinstance(form, f.Or)
        operands = tuple(self.build(operand) for operand in form.parts)

        def combine(env: Env) -> Any:
            failure = None
            for operand in operands:
                try:
                    if operand(env) is deciding:
                        return deciding
                except LimitError:  # noqa: PERF203  # each operand's error is absorbed by itself
                    raise
                except EvaluationError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not deciding

        return combine

    def _if(self, form: f.If) -> Closure:
        condition, then, otherwise = map(self.build, form.parts)
        return lambda env: then(env) if condition(env) else otherwise(env)

    def _call(self, form: f.Call) -> Closure:
        test = self._literal_test(form)
        if test is not None:
            return test
        arguments = [self.build(argument) for argument in form.arguments]
        invoke = _invoke(_function(form.function), arguments)
        if form.function in QUADRATIC:
            invoke = self._quadratic_call(form, arguments)
        if form.function in _NEVER_FAILING:
            return invoke

        def call(env: Env) -> Any:
            try:
                return invoke(env)
            except EvaluationError as error:
                raise self._with_position(error, form) from None

        return call

    def _quadratic_call(self, form: f.Call, arguments: list[Closure]) -> Closure:
        """Return the call of a function in QUADRATIC: its comparisons count as steps of a loop."""
        function = _function(form.function)

        def call(env: Env) -> Any:
            values = [argument(env) for argument in arguments]
            self._take_steps(env, form, count_comparisons(values) // COMPARISONS_PER_STEP)
            return function(*values)

        return call

    def _literal_test(self, form: f.Call) -> Closure | None:
        """Return a closure for ``x OP literal`` and ``x in [literals]``, which make up most of a policy."""
        if len(form.arguments) != 2:
            return None
        operand, other = form.arguments
        literals = [item for item in other.parts if isinstance(item, f.Literal)]
        if isinstance(other, f.Literal) and form.function in _COMPARISONS:
            value = other.value
        elif form.function == "in" and isinstance(other, f.List) and literals and len(literals) == len(other.parts):
            value = frozenset(item.value for item in literals)
        else:
            return None
        test = FUNCTIONS[form.function]
        slot = self._record_slot(operand.operand) if isinstance(operand, f.Field) and self.fuses_parts else None
        if slot is None or not isinstance(operand, f.Field):
            first = self.build(operand)
            return lambda env: test(first(env), value)
        field = operand.name

        def test_field(env: Env) -> Any:
            try:
                return test(env[slot][field], value)
            except KeyError:
                raise self._missing_field(operand) from None

        def field_in(env: Env) -> Any:
            try:
                return env[slot][field] in value
            except KeyError:
                raise self._missing_field(operand) from None

        return field_in if form.function == "in" else test_field

    def _matches(self, form: f.Matches) -> Closure:
        operand, search = self.build(form.operand), compile_program(form.program)
        return lambda env: search(operand(env))

    def _quantifier(self, form: f.All | f.Exists) -> Closure:
        deciding = isinstance(form, f.Exists)
        slot, items, predicate = self._local_slot(form.number), self.build(form.items), self.build(form.predicate)

        def quantify(env: Env) -> Any:
            failure = None
            for item in items(env):
                self._take_steps(env, form)
                env[slot] = item
                try:
                    if predicate(env) is deciding:
                        return deciding
                except LimitError:
                    raise
                except EvaluationError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not deciding

        return quantify

    def _exists_one(self, form: f.ExistsOne) -> Closure:
        slot, items, predicate = self._local_slot(form.number), self.build(form.items), self.build(form.predicate)

        def count(env: Env) -> bool:
            found = 0
            for item in items(env):
                self._take_steps(env, form)
                env[slot] = item
                if predicate(env):
                    found += 1
            return found == 1

        return count

    def _filter(self, form: f.Filter | f.MapList) -> Closure:
        slot, items = self._local_slot(form.number), self.build(form.items)
        predicate = None if form.predicate is None else self.build(form.predicate)
        transform = self.build(form.transform) if isinstance(form, f.MapList) else None
        of_map = form.items.type.startswith("map(")

        def evaluate(env: Env) -> list[Any]:
            result = []
            for item in items(env):
                self._take_steps(env, form)
                env[slot] = item
                if predicate is None or predicate(env):
                    result.append(item if transform is None else transform(env))
            if of_map and len(result) > 1:  # each engine iterates over a map in an order of its own
                raise self._error_at(form, "the keys of a map have no order; ask with exists(), all() or exists_one()")
            return result

        return evaluate

    def _take_steps(self, env: Env, form: Form, steps: int = 1) -> None:
        env[0] -= steps
        if env[0] < 0:
            raise self._with_position(LimitError(f"more than {MAX_STEPS} steps of loops"), form)

    def _missing_field(self, field: f.Field) -> EvaluationError:
        """Return the error for a field that its record does not have."""
        # A fact that is not known is not absent: the VM may have tags.
        of_vm = field.operand.type == "record(vm)"
        return self._error_at(field, "this fact about the VM is not known" if of_vm else f"there is no {field.name}")

    def _error_at(self, form: Form, message: str) -> EvaluationError:
        return self._with_position(EvaluationError(message), form)

    def _with_position(self, error: EvaluationError, form: Form) -> EvaluationError:
        """Set the position of an error, unless a part of the form has set a closer one; return the error."""
        if error.expression is None:
            error.expression, error.start, error.end = self.expression, form.start, form.end
        return error


def _function(name: str) -> Callable[..., Any]:
    """Return a function by its name in the typed form. Raises KeyError."""
    found = FUNCTIONS.get(name)
    if found is None:
        # Not at the top: few policies use CEL's extensions, and a runner starts sooner without them.
        from .functions.table import FUNCTIONS as ALL

        found = ALL[name]
    return found


def _invoke(function: Callable[..., Any], arguments: list[Closure]) -> Closure:
    """Return the call of a function; nearly all have one or two arguments."""
    if len(arguments) == 1:
        (only,) = arguments
        return lambda env: function(only(env))
    if len(arguments) == 2:
        first, second = arguments
        return lambda env: function(first(env), second(env))
    return lambda env: function(*[argument(env) for argument in arguments])


_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_NEVER_FAILING = _COMPARISONS | frozenset(
    ("in", "not", "size", "contains", "starts_with", "ends_with", "eq_deep", "ne_deep", "same", "lower_ascii")
)

_METHODS: Mapping[type[Form], Callable[[Builder, Any], Closure]] = {
    f.Literal: Builder._literal,
    f.List: Builder._list,
    f.Map: Builder._map,
    f.Variable: Builder._variable,
    f.PolicyVariable: Builder._policy_variable,
    f.Local: Builder._local,
    f.Bind: Builder._bind,
    f.Bound: Builder._bound,
    f.Dynamic: Builder._dynamic,
    f.Field: Builder._field,
    f.Has: Builder._has,
    f.And: Builder._logic,
    f.Or: Builder._logic,
    f.If: Builder._if,
    f.Call: Builder._call,
    f.Matches: Builder._matches,
    f.All: Builder._quantifier,
    f.Exists: Builder._quantifier,
    f.ExistsOne: Builder._exists_one,
    f.MapList: Builder._filter,
    f.Filter: Builder._filter,
}
