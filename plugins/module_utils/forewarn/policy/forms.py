# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The typed form of a checked expression: JSON in the artifact, objects for evaluation and analysis.

In JSON, which the compiler makes, a form is ``[op, type, start, end, …]``: the type as CEL writes it, the character
offsets of the part of the source that it stands for, and operands that depend on the op (``_OPS``). Nothing but
``read_form`` reads these positions.

The classes are plain ones: named tuples would cost each start of the runner a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Tuple

Place = Tuple[str, int, int]  # the type of a form, and where it begins and ends in the source


class Form:
    """A part of an expression. ``operands`` are as the artifact has them, ``parts`` those that are forms."""

    def __init__(self, place: Place, *operands: Any) -> None:
        self.type, self.start, self.end = place
        self.operands = operands
        self.parts: tuple[Form, ...] = tuple([one for one in operands if isinstance(one, Form)])


class Literal(Form):
    """A constant; durations and timestamps are nanoseconds."""

    def __init__(self, place: Place, value: Any) -> None:
        super().__init__(place, value)
        self.value: Any = bytes.fromhex(value) if self.type == "bytes" else value


class List(Form):
    """A list; its parts are the elements."""


class Map(Form):
    """A map; its parts are a key, its value, the next key, and so on."""


class _Name(Form):
    def __init__(self, place: Place, name: str) -> None:
        super().__init__(place, name)
        self.name = name


class Variable(_Name):
    """A declared variable, such as ``event``."""


class PolicyVariable(_Name):
    """A variable that the policy declares, without ``variables.`` before it."""


class Local(Form):
    """The variable of a loop, by the loop's number."""

    def __init__(self, place: Place, number: int) -> None:
        super().__init__(place, number)
        self.number = number


class Bound(Form):
    """What a ``Bind`` binds, by its number."""

    def __init__(self, place: Place, number: int) -> None:
        super().__init__(place, number)
        self.number = number


class Bind(Form):
    """A body in which ``Bound`` stands for a value, which is evaluated when it is first read."""

    def __init__(self, place: Place, number: int, value: Form, body: Form) -> None:
        super().__init__(place, number, value, body)
        self.number, self.value, self.body = number, value, body


class Dynamic(Form):
    """A value that carries its type (``dynamic.Dyn``)."""

    def __init__(self, place: Place, operand: Form) -> None:
        super().__init__(place, operand)
        self.operand = operand


class Access(Form):
    """A form that reads a field of a record, or tests for one."""

    def __init__(self, place: Place, operand: Form, name: str) -> None:
        super().__init__(place, operand, name)
        self.operand, self.name = operand, name

    @property
    def record(self) -> str | None:
        """The variable whose field it is, as ``event``; None for the field of anything else."""
        return self.operand.name if isinstance(self.operand, Variable) else None


class Field(Access):
    """A field of a record, which may be absent."""


class Has(Access):
    """Whether a record has a field, or a map a key."""


class And(Form):
    """``&&`` of two parts or more."""


class Or(Form):
    """``||`` of two parts or more."""


class If(Form):
    """``condition ? then : otherwise``."""

    def __init__(self, place: Place, condition: Form, then: Form, otherwise: Form) -> None:
        super().__init__(place, condition, then, otherwise)
        self.condition, self.then, self.otherwise = condition, then, otherwise


class Call(Form):
    """A function of ``functions.FUNCTIONS`` with its arguments."""

    def __init__(self, place: Place, function: str, *arguments: Form) -> None:
        super().__init__(place, function, *arguments)
        self.function, self.arguments = function, arguments


class Matches(Form):
    """Whether a text has a match of a pattern, which is compiled (see regex)."""

    def __init__(self, place: Place, operand: Form, program: list[Any]) -> None:
        super().__init__(place, operand, program)
        self.operand, self.program = operand, program


class Loop(Form):
    """A form that evaluates a predicate for each element of a list or map. ``number`` is its variable's."""

    def __init__(self, place: Place, number: int, items: Form, predicate: Form) -> None:
        super().__init__(place, number, items, predicate)
        self.number, self.items, self.predicate = number, items, predicate


class All(Loop):
    """Whether the predicate holds for all elements."""


class Exists(Loop):
    """Whether the predicate holds for some element."""


class ExistsOne(Loop):
    """Whether the predicate holds for exactly one element."""


class Filter(Loop):
    """The elements for which the predicate holds."""


class MapList(Form):
    """An expression's values for the elements for which a predicate holds; for all elements without one."""

    def __init__(self, place: Place, number: int, items: Form, predicate: Form | None, transform: Form) -> None:
        super().__init__(place, number, items, predicate, transform)
        self.number, self.items, self.predicate, self.transform = number, items, predicate, transform


def read_form(value: Any, where: str = "form", variables: Mapping[str, Any] | None = None) -> Form:
    """Return the form that JSON stands for.

    ``where`` is its place in the artifact, for messages. ``variables`` with a known value become literals.
    Raises ValueError naming the place where it is not a form.
    """
    if not isinstance(value, list) or len(value) < 4 or not isinstance(value[0], str) or value[0] not in _OPS:
        raise not_a(where, "a form")
    op, type_, start, end, *rest = value
    if not isinstance(type_, str) or not is_int(start) or not is_int(end):
        raise not_a(where, "a form with a type and its place in the source")
    make, kinds = _OPS[op]
    if kinds[-1] is _MORE:
        kinds = (*kinds[:-1], *[_FORM] * max(0, len(rest) - len(kinds) + 1))
    if len(rest) != len(kinds):
        raise not_a(where, f"a form {op} with its operands")
    operands: list[Any] = []
    for number, (operand, kind) in enumerate(zip(rest, kinds), 4):
        if kind is _FORM or (kind is _FORM_OR_NULL and operand is not None):
            operands.append(read_form(operand, f"{where}[{number}]", variables))
        elif kind.accepts(operand):
            operands.append(operand)
        else:
            raise not_a(f"{where}[{number}]", kind.words)
    if variables is not None and make is Variable and operands[0] in variables:
        make, operands = Literal, [variables[operands[0]]]
    return make((type_, start, end), *operands)


def free_variables(form: Form) -> set[str]:
    """Return the names that a form reads: variables, and policy variables as ``variables.NAME``."""
    if isinstance(form, Variable):
        return {form.name}
    if isinstance(form, PolicyVariable):
        return {"variables." + form.name}
    return set().union(*map(free_variables, form.parts))


def every_match(block: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the matches of a rule of an artifact by their paths of ids, in the order of the file, nested ones too."""
    for match in block["match"]:
        path = prefix + match["id"]
        yield path, match
        if "rule" in match:
            yield from every_match(match["rule"], path + ".")


def every_variable(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the variables that a rule of an artifact and its nested rules declare."""
    yield from block["variables"]
    for _path, match in every_match(block):
        if "rule" in match:
            yield from match["rule"]["variables"]


def every_expression(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the expressions of a rule of an artifact and of its nested rules."""
    for variable in every_variable(block):
        yield variable["expr"]
    for _path, match in every_match(block):
        for name in ("condition", "explanation"):
            if match.get(name) is not None:
                yield match[name]
        if "group" in match.get("limit", ()):
            yield match["limit"]["group"]


class _Kind(NamedTuple):
    """A kind of operand: the test for its values, and its name."""

    accepts: Callable[[Any], bool]
    words: str


def is_int(value: Any) -> bool:
    """Return whether a JSON value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def not_a(where: str, wanted: str) -> ValueError:
    """Return the error for the part of an artifact at ``where`` that is not what it has to be."""
    return ValueError(f"{where} is not {wanted}")


_FORM = _Kind(lambda value: False, "a form")  # noqa: ARG005  # read by itself
_FORM_OR_NULL = _Kind(lambda value: value is None, "a form or null")
_MORE = _Kind(lambda value: False, "forms")  # noqa: ARG005  # any number of forms, at the end
_SCALAR = _Kind(lambda value: isinstance(value, (type(None), bool, int, float, str)), "a literal")
_TEXT = _Kind(lambda value: isinstance(value, str), "of type str")
_INT = _Kind(is_int, "of type int")
_PROGRAM = _Kind(lambda value: isinstance(value, list), "of type list")

_OPS: Mapping[str, tuple[type[Form], tuple[_Kind, ...]]] = {
    "lit": (Literal, (_SCALAR,)),
    "bytes": (Literal, (_TEXT,)),
    "list": (List, (_MORE,)),
    "map": (Map, (_MORE,)),
    "var": (Variable, (_TEXT,)),
    "variable": (PolicyVariable, (_TEXT,)),
    "local": (Local, (_INT,)),
    "bound": (Bound, (_INT,)),
    "bind": (Bind, (_INT, _FORM, _FORM)),
    "dyn": (Dynamic, (_FORM,)),
    "field": (Field, (_FORM, _TEXT)),
    "has": (Has, (_FORM, _TEXT)),
    "and": (And, (_MORE,)),
    "or": (Or, (_MORE,)),
    "if": (If, (_FORM, _FORM, _FORM)),
    "call": (Call, (_TEXT, _MORE)),
    "matches": (Matches, (_FORM, _PROGRAM)),
    "all": (All, (_INT, _FORM, _FORM)),
    "exists": (Exists, (_INT, _FORM, _FORM)),
    "exists_one": (ExistsOne, (_INT, _FORM, _FORM)),
    "map_list": (MapList, (_INT, _FORM, _FORM_OR_NULL, _FORM)),
    "filter": (Filter, (_INT, _FORM, _FORM)),
}
