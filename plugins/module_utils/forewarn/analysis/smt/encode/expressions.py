# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions as terms: the typed form of an expression, translated part by part.

The translation has the meaning of ``policy.evaluate``: a part has a value, or an error that ``&&``, ``||``, ``all`` and
``exists`` may absorb. A part that cannot be translated exactly may have any value or error, the same wherever it
stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ....policy import forms as f
from ....policy.evaluation_error import EvaluationError
from ....policy.forms import Form, read_form
from ....policy.functions.dynamic import Dyn
from ....policy.functions.patterns import compile_pattern
from ....policy.functions.regex import compile_program
from ....policy.functions.table import FUNCTIONS
from ....policy.functions.timevalues import MAX_DURATION, MIN_DURATION, UNITS
from ..effort import Subexpression
from ..terms import Formula, between, conj, disj, is_constant, ite, neg, require, same
from .calls import TOTAL, Arguments, call, is_python
from .filters import counted, emptiness
from .inputs import Inputs, Tags
from .operands import ConditionPart
from .patterns import in_case, samples
from .problem import SORTS, Encoding, OpaqueValue, OptionalValue, Problem, failure
from .resources import Resources, names_of
from .text_functions import TextFunction

_OPTIONAL = frozenset(("none", "some", "has_value", "value_of", "defined"))
_LIGHT = frozenset(  # functions that cost nothing beside what their arguments do
    ("eq", "ne", "lt", "le", "gt", "ge", "not", "same", "size", "index_map", "index_list", "in", "eq_deep", "ne_deep")
)
_MOST_UNROLLED = 64  # elements of a list that a loop goes over one by one
_TIMED = ("event", "events", "notice", "age", "now")
_OF_VM = ("vm", "affects_me", "leader")


class ExpressionEncoder:
    """Translates the expressions of one policy, or a claim.

    ``parameter`` returns the value of a parameter by its name; ``known`` has the values of further variables. Raises
    RuntimeError after the first question to the solver.
    """

    def __init__(
        self, inputs: Inputs, parameter: Callable[[str], Encoding], known: Mapping[str, Encoding] | None = None
    ) -> None:
        self.inputs = inputs
        self.problem: Problem = inputs.problem
        if self.problem.closed:
            raise RuntimeError("nothing can be translated after the first question")
        self._parameter = parameter
        self._known = known or {}
        self._variables: dict[str, tuple[str, Encoding]] = {}  # of the policy, each with the key of its expression
        self._locals: dict[int, Encoding] = {}
        self._bound: dict[int, tuple[str, Encoding]] = {}  # by cel.bind(), each with the key of its value
        self._over_names = False  # inside a loop over Resources
        self._expression: Mapping[str, Any] = {"source": ""}
        self.file = ""  # of expressions that do not name theirs

    def declare(self, name: str, expression: Mapping[str, Any]) -> None:
        """Have a variable of the policy."""
        form, self._expression = read_form(expression["form"]), expression
        self._variables[name] = self._key(form), self._translate(form)

    def value(self, expression: Mapping[str, Any]) -> Encoding:
        """Return the value of an expression of an artifact, as a term."""
        self._expression = expression
        return self._plain(self._translate(read_form(expression["form"])))

    def condition(self, expression: Mapping[str, Any]) -> ConditionPart:
        """Return an expression of an artifact whose value is a truth, with its operands."""
        self._expression = expression
        return self._operand(read_form(expression["form"]))

    def error(self, expression: Mapping[str, Any]) -> Formula:
        """Return whether an expression of an artifact has no value."""
        self._expression = expression
        found = self._translate(read_form(expression["form"]))
        if isinstance(found.value, TextFunction) and found.value.total:
            return found.error
        return self._plain(found).error

    def key(self, expression: Mapping[str, Any]) -> str:
        """Return a text that is the same for expressions of an artifact that have the same value."""
        return self._key(read_form(expression["form"]))

    def _translate(self, form: Form) -> Encoding:
        filtered = isinstance(form, f.Call) and (emptiness(form) is not None or counted(form) is not None)
        loop = filtered or isinstance(form, (f.All, f.Exists, f.ExistsOne))
        readable = loop or isinstance(form, f.Matches) or (isinstance(form, f.Call) and form.function not in _LIGHT)
        if not readable or self._locals or form.type not in SORTS:
            return _TRANSLATIONS[type(form)](self, form)
        source = self._text(form)
        if source in self.problem.effort.aside:
            return self._opaque(form)
        found = _TRANSLATIONS[type(form)](self, form)
        if source not in self.problem.subexpressions:
            place, divisions = self._place(form), self.problem.divisions
            self.problem.subexpressions[source] = Subexpression(source, place, found.value, loop, divisions)
        return found

    def _text(self, form: Form) -> str:
        return " ".join(self._expression["source"][form.start : form.end].split())

    def _place(self, form: Form) -> str:
        """Return where a form begins, for people."""
        line = self._expression.get("line", 1) + self._expression["source"][: form.start].count("\n")
        return f"{self._expression.get('file', self.file)}:{line}"

    def _plain(self, one: Encoding) -> Encoding:
        """Return a value as a term: the solver learns what a function makes of a text."""
        if not isinstance(one.value, TextFunction):
            return one
        if one.value.type not in SORTS:  # only whether there is a value can be known
            made = one.value
            has_value = partial(_has_value, made.function)
            known = replace(made, key=f"has {made.key}", function=has_value, type="bool")
            error = disj((one.error, self.problem.texts.apply(known)[1]))
            return Encoding(OpaqueValue(_value_key(made)), error)
        value, error = self.problem.texts.apply(one.value)
        return Encoding(value, disj((one.error, error)))

    def _opaque(self, form: Form) -> Encoding:
        """Return the value of a form that cannot be translated."""
        return self.problem.fresh_value(self._key(form), self._text(form), form.type)

    def _key(self, form: Form) -> str:
        """Return a text that is the same for forms that have the same value."""
        if isinstance(form, f.PolicyVariable):
            return self._variables[form.name][0]
        if isinstance(form, f.Bound) and form.number in self._bound:
            return self._bound[form.number][0]
        if isinstance(form, f.Local) and form.number in self._locals:
            return f"local:{_value_key(self._locals[form.number].value)}"
        if isinstance(form, f.Field) and form.record == "params":
            return f"param:{_value_key(self._parameter(form.name).value)}"
        if isinstance(form, f.Variable) and form.name in _TIMED:
            number = self.inputs.document if form.name == "events" else self.inputs.number
            return f"{form.name}:{number}"
        if isinstance(form, f.Variable) and form.name in _OF_VM and self.inputs.vm:
            return f"{form.name}:{self.inputs.vm}"
        if isinstance(form, f.Variable) and form.name in self._known:
            return f"{form.name}={_value_key(self._known[form.name].value)}"
        parts = [self._key(one) if isinstance(one, Form) else repr(one) for one in form.operands]
        return f"{type(form).__name__}:{form.type}({', '.join(parts)})"

    def _element_key(self, form: f.Loop) -> str:
        """Return a text that is the same for loops that ask the same of each element."""
        outer = self._locals
        self._locals = {**outer, form.number: Encoding(OpaqueValue("the element"))}
        try:
            return self._key(form.predicate)
        finally:
            self._locals = outer

    # Names

    def _literal(self, form: f.Literal) -> Encoding:
        return Encoding(form.value)

    def _variable(self, form: f.Variable) -> Encoding:
        if form.name in self._known:
            return self._known[form.name]
        self.problem.inputs_read.add(form.name)
        if form.name in ("notice", "age", "now", "affects_me", "leader"):
            return self.inputs.variable(form.name)
        return self._opaque(form)  # records are read by their fields

    def _policy_variable(self, form: f.PolicyVariable) -> Encoding:
        return self._variables[form.name][1]

    def _local(self, form: f.Local) -> Encoding:
        return self._locals.get(form.number) or Encoding(OpaqueValue(self._key(form)))

    def _bind(self, form: f.Bind) -> Encoding:
        outer = self._bound
        self._bound = {**outer, form.number: (self._key(form.value), self._translate(form.value))}
        try:
            return self._translate(form.body)
        finally:
            self._bound = outer

    def _read_bound(self, form: f.Bound) -> Encoding:
        return self._bound[form.number][1] if form.number in self._bound else self._opaque(form)

    def _dynamic(self, form: f.Dynamic) -> Encoding:
        operand = self._translate(form.operand)
        if is_python(operand):
            return Encoding(Dyn(form.operand.type, operand.value))
        return Encoding(OpaqueValue(self._key(form)), self._plain(operand).error)

    def _field(self, form: f.Field) -> Encoding:
        if form.record == "params":
            return self._parameter(form.name)
        if form.record in ("event", "vm"):
            value, there = self._input(form)
            return failure(form.type) if there is False else Encoding(value, neg(there))
        return self._opaque(form)

    def _has(self, form: f.Has) -> Encoding:
        if form.record in ("event", "vm"):
            return Encoding(self._input(form)[1])
        operand = self._translate(form.operand)
        if isinstance(operand.value, Tags):
            return Encoding(operand.value.tag(form.name)[0], operand.error)
        if isinstance(operand.value, dict) and is_python(operand):
            return Encoding(form.name in operand.value)
        return Encoding(True) if form.record == "params" else self._opaque(form)

    def _input(self, form: f.Access) -> tuple[Any, Any]:
        if form.record == "vm":
            return self.inputs.vm_fact(form.name)
        self.problem.inputs_read.add(form.name)
        return self.inputs.event_field(form.name)

    # Logic

    def _logic(self, form: f.And | f.Or) -> Encoding:
        return self._operand(form).value

    def _operand(self, form: Form) -> ConditionPart:
        if not isinstance(form, (f.And, f.Or)):
            return ConditionPart(form, self._plain(self._translate(form)))
        inner = tuple(self._operand(part) for part in form.parts)
        return ConditionPart(form, _decided([one.value for one in inner], deciding=isinstance(form, f.Or)), inner)

    def _if(self, form: f.If) -> Encoding:
        condition = self._plain(self._translate(form.condition))
        if isinstance(condition.value, bool):
            chosen = self._translate(form.then if condition.value else form.otherwise)
            return Encoding(chosen.value, disj((condition.error, chosen.error)))
        then, otherwise = (self._plain(self._translate(part)) for part in (form.then, form.otherwise))
        error = disj((condition.error, ite(condition.value, then.error, otherwise.error)))
        for part, other in ((then, otherwise), (otherwise, then)):
            if other.error is True:  # as in event.?X.value(): where there is a value, it is that of the other part
                return Encoding(part.value, error)
        if isinstance(then.value, OptionalValue) and isinstance(otherwise.value, OptionalValue):
            present = ite(condition.value, then.value.present, otherwise.value.present)
            return Encoding(
                OptionalValue(present, self._kept(form, condition.value, then.value, otherwise.value)), error
            )
        if form.type not in SORTS or isinstance(then.value, OpaqueValue) or isinstance(otherwise.value, OpaqueValue):
            kept = form.type in SORTS and form.type != "string"
            return Encoding(self._opaque(form).value if kept else OpaqueValue(self._key(form)), error)
        return Encoding(self._either(condition.value, then.value, otherwise.value), error)

    def _kept(self, form: f.If, condition: Formula, then: OptionalValue, otherwise: OptionalValue) -> Any:
        """Return the value of one of two optional values; what is not there may be anything."""
        if then.present is False or otherwise.present is False:
            return otherwise.value if then.present is False else then.value
        values = [then.value, otherwise.value]
        if form.type[len("optional(") : -1] not in SORTS or any(isinstance(one, OpaqueValue) for one in values):
            return OpaqueValue(self._key(form))
        return self._either(condition, *values)

    def _either(self, condition: Formula, then: Any, otherwise: Any) -> Any:
        """Return one of two values of a sort."""
        if isinstance(then, str) and isinstance(otherwise, str) and then == otherwise:
            return then
        code = self.problem.texts.code
        return ite(condition, code(then), code(otherwise))

    def _optional(self, form: f.Call) -> Encoding:
        """Return what makes an optional value of a value, or asks for it."""
        if form.function == "none":
            return Encoding(OptionalValue(False, OpaqueValue("nothing")))
        operand = self._translate(form.arguments[0])
        if form.function in ("some", "defined"):
            plain = self._plain(operand)
            return Encoding(True if form.function == "defined" else OptionalValue(True, plain.value), plain.error)
        if not isinstance(operand.value, OptionalValue):
            return self._opaque(form)
        if form.function == "has_value":
            return Encoding(operand.value.present, operand.error)
        error = disj((operand.error, neg(operand.value.present)))
        if isinstance(operand.value.value, OpaqueValue) and form.type in SORTS:
            known = failure(form.type) if error is True else self._opaque(form)
            return Encoding(known.value, error)
        return Encoding(operand.value.value, error)

    # Lists and functions

    def _list(self, form: f.List) -> Encoding:
        items = tuple(self._translate(part) for part in form.parts)
        if all(map(is_python, items)):
            return Encoding([one.value for one in items])
        plain = tuple(map(self._plain, items))
        return Encoding(plain, disj(one.error for one in plain))

    def _map(self, form: f.Map) -> Encoding:
        values = [self._translate(part) for part in form.parts]
        keys = [one.value for one in values[::2]]
        if all(map(is_python, values)) and len({repr(key) for key in keys}) == len(keys):
            return Encoding(dict(zip(keys, (one.value for one in values[1::2]))))
        return self._opaque(form)

    def _call(self, form: f.Call) -> Encoding:
        if form.function in _OPTIONAL:
            return self._optional(form)
        idiom = self._number_and_unit(form) if form.function == "string_to_duration" else self._filtered(form)
        if idiom is not None:
            return idiom
        arguments = tuple(self._translate(argument) for argument in form.arguments)
        if all(map(is_python, arguments)):
            try:
                return Encoding(FUNCTIONS[form.function](*(one.value for one in arguments)))
            except EvaluationError:
                return failure(form.type)
        if any(one.error is True for one in arguments):
            return failure(form.type)
        if form.function == "matches" and is_python(arguments[1]):
            return self._matched(form, arguments[0], compile_pattern(arguments[1].value))
        found = call(Arguments(self.problem, form, arguments, self._plain, partial(self._opaque, form)))
        if found is not None:
            return found
        errors = disj(self._plain(one).error for one in arguments)
        if form.function in TOTAL:
            value = OpaqueValue(self._key(form)) if form.type == "string" else self._opaque(form).value
            return Encoding(value, errors)
        opaque = self._opaque(form)
        return Encoding(opaque.value, disj((errors, opaque.error)))

    def _number_and_unit(self, form: f.Call) -> Encoding | None:
        """Return the value of ``duration(string(n) + "s")``, for any unit; None for another text."""
        (text,) = form.arguments
        number, unit = text.arguments if isinstance(text, f.Call) and text.function == "add_string" else (text, text)
        if not isinstance(number, f.Call) or number.function != "integer_to_string":
            return None
        if not isinstance(unit, f.Literal) or unit.value not in UNITS:
            return None
        count = self._plain(self._translate(number.arguments[0]))
        if isinstance(count.value, OpaqueValue):
            return None
        value = count.value * UNITS[unit.value]
        fits = between(MIN_DURATION, value, MAX_DURATION), between(-MAX_DURATION, count.value, MAX_DURATION)
        return Encoding(value, disj((count.error, neg(conj(fits)))))

    def _filtered(self, form: f.Call) -> Encoding | None:
        """Return how many elements a filter leaves, or whether it leaves any; None for another call."""
        loop = counted(form)
        if loop is not None:
            items = self._translate(loop.items)
            if isinstance(items.value, Resources) and not self._over_names:
                left = items.value.count_of(self._element_key(loop), self._predicate(loop))
                return Encoding(left.number, disj((items.error, left.failed)))
            values = self._each(loop, Encoding(items.value))
            errors = disj((items.error, *(one.error for one in values or ())))
            return None if values is None else Encoding(_number_of(values), errors)
        asked = emptiness(form)
        if asked is None:
            return None
        loop, wanted = asked
        items = self._translate(loop.items)
        names = names_of(items.value)
        if names is not None and not self._over_names:
            found = names.loop(self._element_key(loop), self._predicate(loop), deciding=True)
            some, error = (
                found.decided,
                disj((items.error, found.failed)),
            )  # unlike that of exists(), it is not absorbed
        else:
            values = self._each(loop, Encoding(items.value))
            if values is None:
                return None
            some, error = _number_of(values) != 0, disj((items.error, *(one.error for one in values)))
        return Encoding(some if wanted else neg(some), error)

    def _matches(self, form: f.Matches) -> Encoding:
        return self._matched(form, self._translate(form.operand), form.program)

    def _matched(self, form: Form, operand: Encoding, program: list[Any]) -> Encoding:
        """Return whether a text has a match of a pattern, which is compiled."""
        search = compile_program(program)
        if is_python(operand):
            return Encoding(search(operand.value))
        if operand.error is True:
            return failure(form.type)
        if isinstance(operand.value, OpaqueValue):
            return self._opaque(form)
        if isinstance(operand.value, str):  # known, if it has a value at all
            return Encoding(search(operand.value), operand.error)
        inner = operand.value if isinstance(operand.value, TextFunction) else None
        function = search if inner is None else lambda text: search(inner.function(text))
        key = f"matches({'·' if inner is None else inner.key}, {program})"
        term = operand.value if inner is None else inner.term
        constants = (*(() if inner is None else inner.constants), *samples(program))
        total = inner is None or inner.total
        relation: tuple[str, Any] | None = ("matches", program) if inner is None else None
        if inner is not None and inner.case is not None:
            relation = ("matches", in_case(inner.case, "matches", program))
        return self._plain(
            Encoding(TextFunction(term, key, function, "bool", constants, relation, total), operand.error)
        )

    # Loops

    def _quantifier(self, form: f.All | f.Exists) -> Encoding:
        deciding = isinstance(form, f.Exists)
        items = self._translate(form.items)
        names = names_of(items.value)
        if names is not None and not self._over_names:
            found = names.loop(self._element_key(form), self._predicate(form), deciding=deciding)
            decided, failed = found.decided, found.failed
            error = disj((items.error, conj((neg(decided), failed))))
            return Encoding(decided if deciding else neg(decided), error)
        values = self._each(form, items)
        return self._opaque(form) if values is None else _decided(values, deciding=deciding)

    def _exists_one(self, form: f.ExistsOne) -> Encoding:
        items = self._translate(form.items)
        if isinstance(items.value, Resources) and not self._over_names:
            found = items.value.count_of(self._element_key(form), self._predicate(form))
            return Encoding(found.number == 1, disj((items.error, found.failed)))
        values = self._each(form, items)
        if values is None:
            return self._opaque(form)
        return Encoding(_number_of(values) == 1, disj(one.error for one in values))

    def _each(self, form: f.Loop, items: Encoding) -> list[Encoding] | None:
        """Return the predicate's value for each element of a list of which all are known."""
        elements: list[Encoding] | None = None
        if isinstance(items.value, tuple) and not isinstance(items.value, TextFunction):
            elements = list(items.value)
        elif isinstance(items.value, (list, dict)) and is_python(items):
            elements = [Encoding(item) for item in items.value]
        if elements is None or items.error is not False or len(elements) > _MOST_UNROLLED:
            return None
        return [self._with(form, element) for element in elements]

    def _with(self, form: f.Loop, element: Encoding) -> Encoding:
        """Return the predicate's value for an element."""
        outer = self._locals
        self._locals = {**outer, form.number: element}
        try:
            return self._plain(self._translate(form.predicate))
        finally:
            self._locals = outer

    def _predicate(self, form: f.Loop) -> Callable[[Any], Encoding]:
        """Return a function from a name to the predicate's value, which may be called at any time."""
        expression, outer, bound = self._expression, self._locals, self._bound

        def predicate(name: Any) -> Encoding:
            before = self._expression, self._locals, self._bound
            self._expression, self._locals, self._bound, self._over_names = expression, outer, bound, True
            try:
                return self._with(form, Encoding(name))
            finally:
                (self._expression, self._locals, self._bound), self._over_names = before, False

        return predicate


def _value_key(value: Any) -> str:
    """Return a text that is the same for the same value: no literal is written as a term of z3 is."""
    if isinstance(value, TextFunction):
        return f"{value.key} of {_value_key(value.term)}"
    if isinstance(value, tuple):
        return f"[{', '.join(_value_key(one.value) for one in value)}]"
    return repr(value) if is_constant(value) else f"term {value.sexpr()}"


def _has_value(function: Callable[[str], Any], text: str) -> bool:
    function(text)  # raises EvaluationError if not
    return True


def _number_of(truths: list[Encoding]) -> Any:
    """Return how many truths hold."""
    total: Any = 0
    for one in truths:
        total = total + (int(one.value) if isinstance(one.value, bool) else require().If(one.value, 1, 0))
    return total


def _decided(parts: list[Encoding], *, deciding: bool) -> Encoding:
    """Return the value of ``&&`` or ``||``: one part that is ``deciding`` decides, whatever errors the others have."""
    decided = disj(conj((neg(one.error), same(one.value, deciding))) for one in parts)
    failed = disj(one.error for one in parts)
    return Encoding(decided if deciding else neg(decided), conj((neg(decided), failed)))


_TRANSLATIONS: Mapping[type[Form], Callable[[ExpressionEncoder, Any], Encoding]] = {
    f.Literal: ExpressionEncoder._literal,
    f.List: ExpressionEncoder._list,
    f.Map: ExpressionEncoder._map,
    f.Variable: ExpressionEncoder._variable,
    f.PolicyVariable: ExpressionEncoder._policy_variable,
    f.Local: ExpressionEncoder._local,
    f.Bind: ExpressionEncoder._bind,
    f.Bound: ExpressionEncoder._read_bound,
    f.Dynamic: ExpressionEncoder._dynamic,
    f.Field: ExpressionEncoder._field,
    f.Has: ExpressionEncoder._has,
    f.And: ExpressionEncoder._logic,
    f.Or: ExpressionEncoder._logic,
    f.If: ExpressionEncoder._if,
    f.Call: ExpressionEncoder._call,
    f.Matches: ExpressionEncoder._matches,
    f.All: ExpressionEncoder._quantifier,
    f.Exists: ExpressionEncoder._quantifier,
    f.ExistsOne: ExpressionEncoder._exists_one,
    f.MapList: ExpressionEncoder._opaque,
    f.Filter: ExpressionEncoder._opaque,
}
