# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of policies as terms: what a host may be given, and which policies run with it.

A parameter varies over all values that its declaration allows, and over all values of its type where it declares no
limits. Of a list of texts the solver knows which texts it has. What any other list, a map or a pattern of matches() has
is not known to it, unless it is given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ....errors import InputError
from ....policy.params import check_bounds, convert
from ...artifacts import Json, ParamDeclaration, declared_params
from ...event_space.domains import RANGES
from ..terms import Formula, between, conj, disj, implies, ite, require, same
from .members import Members
from .problem import Encoding, OpaqueValue, Problem, TextList, any_text

_DAY = 24 * 3600 * 10**9  # ns
_MODEST = {
    "int": (-(10**6), 10**6),
    "duration": (-365 * _DAY, 365 * _DAY),
    "timestamp": (30 * 365 * _DAY, 130 * 365 * _DAY),
}


class _Param(NamedTuple):
    """A parameter. ``given`` is whether a host gives it, ``term`` its value then."""

    type: str
    term: Any
    given: Formula
    declared: Sequence[ParamDeclaration]
    choices: Sequence[str] = ()  # what a text is one of, if all declarations say that
    members: Members | None = None  # of a list of texts, which has no term


class Params:
    """The parameters of several versions of policies, each a list of policies as the artifact has them.

    ``fixed`` are JSON values given for all. ``whose`` tells apart those of several VMs. ``assumptions`` say for people
    what is assumed of the others. Raises InputError for a name that no policy declares, and for a list without a
    default.
    """

    def __init__(self, problem: Problem, versions: Sequence[Sequence[Json]], fixed: Json, whose: str = "") -> None:
        self._problem, self._whose, self._versions = problem, whose, len(versions)
        self._params: dict[str, _Param] = {}
        self.assumptions: list[str] = []
        self._fixed = fixed
        for name, declarations in declared_params(versions, fixed).items():
            self._params[name] = self._param(name, declarations)
        self._accepted = [self._accepts(version) for version in range(len(versions))]
        problem.facts.append(disj(self._accepted))  # otherwise nothing runs

    def value(self, version: int, policy: str | None, name: str) -> Encoding:
        """Return the value that a policy of a version reads; without a policy, that of the first that declares it."""
        param = self._params[name]
        entries = [one.entry for one in param.declared if one.version == version and policy in (None, one.policy)]
        if param.members is not None:
            return Encoding(self._list(name, param.members, param.given, entries))
        if param.term is None:
            return Encoding(OpaqueValue(f"params.{name}, or {entries[0]['default'] if entries else None}"))
        if param.given is True or not entries or "default" not in entries[0]:
            return Encoding(param.term)
        default = convert(entries[0]["default"], param.type)
        value = ite(param.given, self._code(param.term), self._code(default))
        if param.choices:
            self._problem.note_choices(value, param.choices)
        return Encoding(value)

    def owners(self, version: int, name: str) -> list[str]:
        """Return the policies that declare a parameter, one for each of its defaults."""
        found: dict[str, str] = {}
        for one in self._params[name].declared:
            if one.version == version:
                found.setdefault(repr(one.entry.get("default")), one.policy)
        return list(found.values()) if self._params[name].given is not True else list(found.values())[:1]

    def accepted(self, version: int) -> Formula:
        """Return whether a version runs with the parameters."""
        return self._accepted[version]

    def varying(self) -> dict[str, tuple[str, Any, Formula]]:
        """Return the type, the term and ``given`` of each parameter that varies, by its name."""
        return {
            name: (one.type, one.term, one.given)
            for name, one in self._params.items()
            if name not in self._fixed and one.term is not None
        }

    def lists(self) -> dict[str, tuple[Members, Formula, Sequence[Sequence[str]]]]:
        """Return what each list of texts that varies has, whether a host gives it, and its defaults, by its name."""
        return {
            name: (one.members, one.given, [each.entry["default"] for each in one.declared])
            for name, one in self._params.items()
            if one.members is not None
        }

    def usual(self, given: Json) -> list[Formula]:
        """Return that each parameter has its default, or the JSON value given for it."""
        found = []
        for name, (kind, _term, is_given) in self.varying().items():
            entry = self._params[name].declared[0].entry
            if name in given or "default" in entry:
                value = convert(given.get(name, entry.get("default")), kind)
                found.append(implies(is_given, self._is(self._params[name], value)))
        for name, (members, is_given, defaults) in self.lists().items():
            found.append(implies(is_given, members.equals(given.get(name, defaults[0]))))
        return found

    def modest(self) -> list[Formula]:
        """Return that no parameter has a value that is far from what people would give."""
        found = []
        for kind, term, given in self.varying().values():
            if kind in _MODEST:
                low, high = _MODEST[kind]
                whole = term % 10**9 == 0 if kind in ("duration", "timestamp") else True  # seconds
                found.append(implies(given, conj((between(low, term, high), whole))))
        return found

    def _param(self, name: str, places: Sequence[ParamDeclaration]) -> _Param:
        entries = [one.entry for one in places]
        kinds = {entry["type"] for entry in entries}
        kind = entries[0]["type"]
        patterns = any(entry.get("pattern") is True for entry in entries)
        if name in self._fixed:
            self.assumptions.append(f"params.{name} is {self._fixed[name]}, as given")
            value = convert(self._fixed[name], kind)
            if patterns:
                _check_pattern(name, value)
            return _Param(kind, value, True, places)
        defaults = {repr(entry["default"]) for entry in entries if "default" in entry}
        if kind.startswith(("list(", "map(")) or len(kinds) > 1 or patterns:
            if any("default" not in entry for entry in entries):
                raise InputError(f"parameter {name} has no default", f"give it a value: --param {name}=…")
            self.assumptions.append(f"params.{name} is any {'pattern' if patterns else ' or '.join(sorted(kinds))}")
            if kinds == {"list(string)"}:
                members = Members(self._problem, f"params.{name}{self._whose}")
                return _Param(kind, None, self._given(name, defaults), places, members=members)
            return _Param(kind, None, False, places)
        self.assumptions.append(f"params.{name} is anything that {_allowed(places)}")
        given = self._given(name, defaults)
        term = self._variable(name, kind)
        choices: tuple[str, ...] = ()
        everywhere = {one.version for one in places} == set(range(self._versions))
        if kind == "string" and everywhere and all("enum" in entry for entry in entries):
            listed = (text for entry in entries for text in (*entry["enum"], entry.get("default")) if text is not None)
            choices = tuple(dict.fromkeys(listed))
            if given is True:
                self._problem.note_choices(term, choices)
        return _Param(kind, term, given, places, choices)

    def _given(self, name: str, defaults: Collection[str]) -> Formula:
        """Return whether a host gives a parameter; without several defaults it is as if each did."""
        return True if len(defaults) <= 1 else self._problem.boolean(f"params.{name} is given{self._whose}")

    def _list(self, name: str, members: Members, given: Formula, entries: Sequence[Json]) -> TextList:
        """Return the list that a policy reads, of a parameter that is a list of texts."""
        default = entries[0]["default"] if entries else ()

        def given_or_default(text: Any) -> Formula:
            code = self._problem.texts.code
            return ite(given, members.has(text), disj(same(code(text), code(one)) for one in default))

        return TextList(f"params.{name}, or {list(default)}", members.has if given is True else given_or_default)

    def _variable(self, name: str, kind: str) -> Any:
        if kind == "bool":
            return self._problem.boolean(f"params.{name}{self._whose}")
        if kind == "string":
            return self._problem.texts.variable(f"params.{name}{self._whose}", any_text)
        if kind == "double":
            term = self._problem.real(f"params.{name}{self._whose}")
            low, high = (exact(self._problem, one) for one in RANGES[kind])
            self._problem.facts.append(between(low, term, high))  # none is infinite, or NaN
            return term
        return self._problem.integer(f"params.{name}{self._whose}", *RANGES[kind])

    def _accepts(self, version: int) -> Formula:
        parts = []
        for param in self._params.values():
            for entry in (one.entry for one in param.declared if one.version == version):
                if "default" not in entry:
                    parts.append(param.given)
                parts.append(implies(param.given, self._within(param, entry)))
        return conj(parts)

    def _within(self, param: _Param, entry: Json) -> Formula:
        """Return whether a declaration allows a value."""
        if param.members is not None and "each" in entry:
            return param.members.within(entry["each"])
        if param.term is None:
            return True
        low, high = (convert(entry[key], param.type) if key in entry else None for key in ("min", "max"))
        if param.type == "double":
            low, high = (None if one is None else exact(self._problem, one) for one in (low, high))
        allowed = [convert(one, param.type) for one in entry.get("enum", ())]
        listed = True if "enum" not in entry else disj(self._is(param, one) for one in allowed)
        return conj((between(low, param.term, high) if low is not None or high is not None else True, listed))

    def _is(self, param: _Param, value: Any) -> Formula:
        if param.type == "double" and isinstance(value, float):
            value = exact(self._problem, value)
        return same(param.term, self._code(value))

    def _code(self, value: Any) -> Any:
        return self._problem.texts.code(value)


def _check_pattern(name: str, value: Any) -> None:
    try:
        check_bounds(value, {"type": "string", "pattern": True})
    except ValueError as error:
        raise InputError(f"parameter {name}: {value!r} {error}") from error


def exact(problem: Problem, value: float) -> Any:
    """Return a double as a number of z3."""
    return require().RealVal(str(Fraction(value)), problem.context)


def _allowed(places: Sequence[ParamDeclaration]) -> str:
    """Return in words what the declarations of a parameter allow."""
    entries = [one.entry for one in places]
    texts = list(dict.fromkeys(map(_limits, entries)))
    versions = {one.version for one in places}
    if len(texts) == 1:
        found = f"its declaration allows: {texts[0]}"
    elif len(versions) > 1 and len(texts) == 2:
        found = f"its declarations allow: {texts[0]} before, {texts[1]} after"
        found += "; with what one of them refuses, it approves nothing"
    else:
        found = f"all of its declarations allow: {'; '.join(texts)}"
    defaults = list(dict.fromkeys(str(entry.get("default", "none")) for entry in entries))
    return found if len(defaults) == 1 else f"{found}; where it is not given, its default is {' or '.join(defaults)}"


def _limits(entry: Json) -> str:
    if "enum" in entry:
        return ", ".join(map(str, entry["enum"]))
    if entry["type"] == "bool":
        return "true or false"
    limits = [f"{words} {entry[key]}" for key, words in (("min", "at least"), ("max", "at most")) if key in entry]
    return " and ".join(limits) or f"any {entry['type']}"
