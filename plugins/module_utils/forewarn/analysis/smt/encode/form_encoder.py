# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the encoders of all kinds of forms share: where a form stands, what names mean there, and keys of values."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from ....policy import forms as f
from ....policy.forms import Call, Form
from ...artifacts import Json
from ..terms import Formula, disj, is_constant
from .inputs import Inputs, Tags
from .problem import SORTS, Encoding, OpaqueValue, Problem, failure
from .resources import Distinct, Resources
from .text_functions import TextFunction

_OF_EVENT = ("event", "events", "notice", "age", "now")
_OF_VM = ("vm", "affects_me", "leader")


class FormScope(NamedTuple):
    """Where a form stands: in which expression of an artifact, and inside which loops and calls of cel.bind().

    ``locals`` are the elements of loops, ``bound`` the values of cel.bind(), each with its key; both by numbers.
    """

    expression: Json
    locals: Mapping[int, Encoding] = {}
    bound: Mapping[int, tuple[str, Encoding]] = {}
    in_name_loop: bool = False  # inside a loop over Resources


class FormEncoder(abc.ABC):
    """Encodes the forms of one policy, or a claim.

    ``parameter`` returns the value of a parameter by its name; ``known`` has the values of further variables.
    ``variables`` are those of the policy, each with the key of its expression. Raises RuntimeError after the first
    question to the solver.
    """

    def __init__(
        self, inputs: Inputs, parameter: Callable[[str], Encoding], known: Mapping[str, Encoding] | None = None
    ) -> None:
        self.inputs = inputs
        self.problem: Problem = inputs.problem
        if self.problem.closed:
            raise RuntimeError("nothing can be translated after the first question")
        self.parameter = parameter
        self.known = known or {}
        self.variables: dict[str, tuple[str, Encoding]] = {}
        self.scope = FormScope({"source": ""})
        self.file = ""  # of expressions that do not name theirs

    @abc.abstractmethod
    def encode(self, form: Form) -> Encoding:
        """Return the encoding of a form where it stands."""

    @contextmanager
    def within(self, scope: FormScope) -> Iterator[None]:
        """Let forms stand in another scope."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    def encode_with(self, form: f.Loop, element: Encoding) -> Encoding:
        """Return the encoding of a loop's predicate for an element."""
        with self.within(self.scope._replace(locals={**self.scope.locals, form.number: element})):
            return self.encode_bool(form.predicate)

    def encode_bool(self, form: Form) -> Encoding:
        """Return the encoding of a form whose value is a bool. One of type nothing, as ``[][0]`` is, has no value."""
        return failure("bool") if form.type == "nothing" else self.plain(self.encode(form))

    def plain(self, one: Encoding) -> Encoding:
        """Return an encoding whose value is a term, not a function of a text: the solver learns of the function."""
        function = one.value
        if not isinstance(function, TextFunction):
            return one
        if function.type in SORTS:
            value, error = self.problem.texts.apply(function)
            return Encoding(value, disj((one.error, error)))

        def has_value(text: str) -> bool:
            function.function(text)  # raises EvaluationError if not
            return True

        known = replace(function, key=f"has {function.key}", function=has_value, type="bool")
        error = disj((one.error, self.problem.texts.apply(known)[1]))
        return Encoding(OpaqueValue(value_key(function)), error)

    def fresh(self, form: Form) -> Encoding:
        """Return fresh variables for a form that cannot be translated, the same for forms of the same value."""
        return self.problem.fresh_value(self.key(form), self.source_of(form), form.type)

    def source_of(self, form: Form) -> str:
        """Return a form as it is written, on one line."""
        return " ".join(self.scope.expression["source"][form.start : form.end].split())

    def place_of(self, form: Form) -> str:
        """Return where a form begins, for people: file, line."""
        expression = self.scope.expression
        line = expression.get("line", 1) + expression["source"][: form.start].count("\n")
        return f"{expression.get('file', self.file)}:{line}"

    def key(self, form: Form) -> str:
        """Return a text that is the same for forms that have the same value."""
        if isinstance(form, f.PolicyVariable):
            return self.variables[form.name][0]
        if isinstance(form, f.Bound) and form.number in self.scope.bound:
            return self.scope.bound[form.number][0]
        if isinstance(form, f.Local) and form.number in self.scope.locals:
            return f"local:{value_key(self.scope.locals[form.number].value)}"
        if isinstance(form, f.Field) and form.record == "params":
            return f"param:{value_key(self.parameter(form.name).value)}"
        if isinstance(form, f.Variable) and form.name in _OF_EVENT:
            number = self.inputs.document if form.name == "events" else self.inputs.number
            return f"{form.name}:{number}"
        if isinstance(form, f.Variable) and form.name in _OF_VM and self.inputs.vm:
            return f"{form.name}:{self.inputs.vm}"
        if isinstance(form, f.Variable) and form.name in self.known:
            return f"{form.name}={value_key(self.known[form.name].value)}"
        parts = [self.key(one) if isinstance(one, Form) else repr(one) for one in form.operands]
        return f"{type(form).__name__}:{form.type}({', '.join(parts)})"


def value_key(value: Any) -> str:
    """Return a text that is the same for the same value: no literal is written as a term of z3 is."""
    if isinstance(value, TextFunction):
        return f"{value.key} of {value_key(value.term)}"
    if isinstance(value, tuple):
        return f"[{', '.join(value_key(one.value) for one in value)}]"
    return repr(value) if is_constant(value) else f"term {value.sexpr()}"


# Functions that have a value wherever their arguments have one: no text reaches the evaluator's limit (CONSTRAINTS).
TOTAL = frozenset(
    (
        *("eq", "ne", "lt", "le", "gt", "ge", "eq_deep", "ne_deep", "in", "in_deep", "not", "same", "size"),
        *("add_double", "sub_double", "mul_double", "div_double", "neg_double", "to_double"),
        *("add_string", "add_bytes", "add_list", "contains", "starts_with", "ends_with", "matches", "replace", "join"),
        *("lower_ascii", "upper_ascii", "trim", "reverse", "quote", "defined", "non_zero"),
        *("number_eq", "number_ne", "number_lt", "number_le", "number_gt", "number_ge"),
        *("ceil", "floor", "round", "trunc", "is_nan", "is_inf", "is_finite", "sqrt", "abs_double", "sign_double"),
        *("sign_int", "sign_uint", "bit_and", "bit_or", "bit_xor", "bit_not_int", "bit_not_uint"),
        *("integer_to_string", "bool_to_string", "timestamp_to_string", "duration_to_string"),
    )
)


class Arguments(NamedTuple):
    """The arguments of a call. ``plain`` makes a term of a value; ``fresh`` is the call's value as fresh variables."""

    problem: Problem
    form: Call
    values: tuple[Encoding, ...]
    plain: Callable[[Encoding], Encoding]
    fresh: Callable[[], Encoding]

    @property
    def value(self) -> Any:
        """The fresh variable of the call's value."""
        return self.fresh().value

    @property
    def error(self) -> Formula:
        """The formula that holds iff an argument has no value."""
        return disj(one.error for one in self.values)

    def type_of(self, place: int) -> str:
        """Return the type of an argument."""
        return self.form.arguments[place].type


def is_python(one: Encoding) -> bool:
    """Return whether the value of an encoding is a known value of Python."""
    symbolic = (OpaqueValue, TextFunction, tuple, Tags, Resources, Distinct)  # an OptionalValue is a tuple, too
    return one.error is False and not isinstance(one.value, symbolic) and is_constant(one.value)
