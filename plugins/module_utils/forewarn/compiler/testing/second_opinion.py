# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second opinion on rules: each expression that an event reaches, by our evaluator and by cel-python's interpreter.

The two share the grammar and nothing else. If they differ, one of them would not decide as the policy says, and it is
unknown which: such a policy must not be rolled out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ...events import Document, Event
from ...policy import forms
from ...policy.artifact import Artifact
from ...policy.builder import Builder
from ...policy.decision import Facts
from ...policy.environment import ABSENT, UNSET, CachedError, Closure, Env
from ...policy.evaluation_error import EvaluationError, LimitError
from ...policy.forms import Form, free_variables, read_form
from ...policy.functions import dynamic
from ...policy.params import bind
from ...policy.program import Match, Program
from ...policy.trace import render
from ...policy.view import DocumentView
from ..cel.environment import policy_declarations
from ..cel.types import parse_type
from ..requirements import MissingLibraryError, require_libraries
from .outcome import Outcome

if TYPE_CHECKING:
    from .cel_python import CelPython

CODE = "engines-differ"
HINT = (
    "rewrite the expression, and report the difference to forewarn; or, if you know that forewarn is right, suppress "
    f"{CODE} with that reason"
)
_MAX_SHOWN = 160  # characters of an expression

# When a difference does not count.
ALWAYS, WE_FAIL, IT_FAILS = "always", "forewarn has an error", "cel-python has an error"


class Exemption(NamedTuple):
    """A known difference of cel-python. ``features`` are named as by the function ``features``."""

    when: str
    reason: str
    features: tuple[str, ...]


EXEMPTIONS = (
    Exemption(ALWAYS, "cel-python compares numbers of different types in other ways", tuple(dynamic.FUNCTIONS)),
    Exemption(ALWAYS, "cel-python has no optional values, and other types than CEL", ("types",)),
    Exemption(ALWAYS, "cel-python writes doubles in another way", ("double_to_string",)),
    Exemption(ALWAYS, "cel-python's map() takes no condition", ("map with a condition",)),
    Exemption(ALWAYS, "cel-python writes True and False", ("bool_to_string",)),
    Exemption(ALWAYS, "cel-python writes no fractions of a second", ("timestamp_to_string", "duration_to_string")),
    Exemption(ALWAYS, "cel-python rounds fractions of a second before 1970 up", ("timestamp_to_int",)),
    Exemption(ALWAYS, "cel-python's times end at microseconds", ("nanoseconds",)),
    Exemption(
        ALWAYS, "cel-python reads other texts as times and durations", ("string_to_timestamp", "string_to_duration")
    ),
    Exemption(ALWAYS, "cel-python makes no time of an int", ("int_to_timestamp",)),
    Exemption(ALWAYS, "cel-python divides by -0.0 to a positive infinity", ("div_double",)),
    Exemption(ALWAYS, r"cel-python reads \?, \` and \X41 as they stand", ("escapes",)),
    Exemption(WE_FAIL, "cel-python's has() has false where what it looks into has no value", ("has",)),
    Exemption(WE_FAIL, "cel-python takes a map whose values have errors for one without", ("map",)),
    Exemption(WE_FAIL, "cel-python counts a negative index from the end", ("index_list",)),
    Exemption(WE_FAIL, "cel-python puts the keys of a map in an order", ("map_list", "filter")),
    Exemption(
        WE_FAIL,
        "cel-python's durations go beyond an int64 of nanoseconds",
        ("add_duration", "sub_duration", "diff_timestamp", "add_timestamp", "sub_timestamp"),
    ),
    Exemption(
        WE_FAIL,
        "cel-python converts more texts and numbers",
        ("string_to_bool", "string_to_int", "string_to_uint", "string_to_double", "double_to_int", "double_to_uint"),
    ),
    Exemption(
        WE_FAIL,
        "cel-python knows more time zones",
        ("full_year", "month", "date", "day_of_month", "day_of_week", "day_of_year", "hours", "minutes", "seconds",
         "milliseconds"),
    ),
    Exemption(
        IT_FAILS,
        "cel-python makes a str of Python of a sum, and a timedelta of a difference, which its functions do not take",
        ("add_string", "add_bytes", "add_duration", "sub_duration", "diff_timestamp"),
    ),
    Exemption(IT_FAILS, "cel-python makes a list of Python, which its functions do not take", ("map_list", "filter")),
    Exemption(IT_FAILS, "cel-python lets no && or || outside absorb an error in exists_one()", ("exists_one",)),
)  # fmt: skip
NOT_COMPARED = {
    when: {feature for one in EXEMPTIONS if one.when == when for feature in one.features}
    for when in (ALWAYS, WE_FAIL, IT_FAILS)
}
_OPERATIONS: Mapping[type[Form], str] = {
    forms.Has: "has",
    forms.Map: "map",
    forms.MapList: "map_list",
    forms.Filter: "filter",
    forms.ExistsOne: "exists_one",
}
_OTHER_TYPES = re.compile(r"\b(dyn|optional|pair|type)\b")  # which cel-python lacks
# Not visible in the typed form: escapes are replaced in it, and a constant time is a literal.
_SPELLINGS = {"escapes": re.compile(r"\\[?`X]"), "int_to_timestamp": re.compile(r"\btimestamp\(\s*-?\d")}


def features(expression: Mapping[str, Any]) -> set[str]:
    """Return the operations and functions that an artifact's expression uses, named as in its typed form.

    Further features are ``escapes``, ``nanoseconds``, ``types`` and ``map with a condition``.
    """
    found = {name for name, spelling in _SPELLINGS.items() if spelling.search(expression["source"])}
    left = [read_form(expression["form"])]
    while left:
        form = left.pop()
        left += form.parts
        if isinstance(form, forms.Call):
            found.add(form.function)
        elif type(form) in _OPERATIONS:
            found.add(_OPERATIONS[type(form)])
        if isinstance(form, forms.MapList) and form.predicate is not None:
            found.add("map with a condition")
        if _OTHER_TYPES.search(form.type):
            found.add("types")
        if isinstance(form, forms.Literal) and form.type in ("timestamp", "duration") and form.value % 1000:
            found.add("nanoseconds")
    return found


class EngineDifference(NamedTuple):
    """An expression of an artifact (``source``, ``line``, ``column``), and its result in each engine."""

    rule: str
    expression: Mapping[str, Any]
    ours: Outcome
    theirs: Outcome

    @property
    def message(self) -> str:
        """A description of the difference."""
        source = " ".join(self.expression["source"].split())
        shown = source if len(source) <= _MAX_SHOWN else source[: _MAX_SHOWN - 1] + "…"
        ours, theirs = self._shown(self.ours), self._shown(self.theirs)
        return f"forewarn and cel-python differ on {shown}: forewarn says {ours}, cel-python says {theirs}"

    def _shown(self, outcome: Outcome) -> str:
        if outcome.kind == "error":
            return f"it has no value ({outcome.detail})"
        alike = type(self.ours.detail) is type(self.theirs.detail)
        return render(outcome.detail, self.expression["form"][1] if alike else "")


class _Observer(Builder):
    """Appends each whole expression, the names that it read and its Outcome to item 1 of the environment.

    Whole expressions are conditions, explanations, groups of limits, and the policy variables that they read.
    """

    _begun = False  # the first form that is built is the whole expression

    def build(self, form: Form) -> Closure:
        """Return the closure of a form; that of a whole expression records its outcome."""
        whole, self._begun = not self._begun, True
        closure = super().build(form)
        if not whole:
            return closure
        slots = {name: self.scope.slots[name] for name in free_variables(form)}

        def observe(env: Env) -> Any:
            try:
                value = closure(env)
            except EvaluationError as error:
                if not isinstance(error, LimitError):  # which is not a result of CEL
                    note(env, Outcome("error", str(error)))
                raise
            note(env, Outcome("value", value))
            return value

        def note(env: Env, outcome: Outcome) -> None:
            read = {name: env[slot] for name, slot in slots.items()}
            known = {name: one for name, one in read.items() if one is not ABSENT and one is not UNSET}
            given = {name: one for name, one in known.items() if not isinstance(one, CachedError)}
            env[1].append((self.expression, given, outcome))

        return observe


class SecondOpinion:
    """Asks both engines about the rules of compiled policies, and asks each question once.

    Raises MissingLibraryError where cel-python cannot be imported.
    """

    def __init__(self, artifact: Artifact) -> None:
        require_libraries()
        from .cel_python import IMPORT_ERROR, CelPython  # not at the top: compiling takes cel-python's grammar only

        if IMPORT_ERROR is not None:
            raise MissingLibraryError(
                f"a second opinion on policies needs cel-python, which cannot be imported: {IMPORT_ERROR}",
                f"install with: {sys.executable} -m pip install cel-python",
            ) from IMPORT_ERROR
        self._policies: dict[str, tuple[Program, CelPython]] = {}
        self._asked: set[tuple[int, str]] = set()
        for policy in artifact.data["policies"]:
            params = {entry["name"]: parse_type(entry["type"]) for entry in policy["params"]}
            records = policy_declarations(artifact.api_version, params, {}, {}).records
            self._policies[policy["name"]] = Program(policy, _Observer), CelPython(records)

    def differences(
        self,
        policy: str,
        rules: Collection[str],
        event: Event,
        document: Document,
        facts: Facts,
        params: Mapping[str, Any],
    ) -> Iterator[EngineDifference]:
        """Yield the differences between the engines in some rules of a policy, whichever rule decides the event.

        ``params`` are JSON values for parameters of this policy, and maybe of others.
        """
        program, engine = self._policies[policy]
        declared = program.policy["params"]
        given = {entry["name"]: params[entry["name"]] for entry in declared if entry["name"] in params}
        bound = bind(declared, given, policy)
        if any(entry["type"] in ("duration", "timestamp") and bound[entry["name"]] % 1000 for entry in declared):
            return  # cel-python's times end at microseconds
        roots = DocumentView(document, facts).roots(event, bound)
        for match in program.all_matches:
            for expression, values, ours in _evaluate_rule(program, match, roots) if match.rule in rules else ():
                theirs = self._their_outcome(engine, expression, values)
                if theirs is not None and not ours.same(theirs) and not is_exempt(expression, ours, theirs):
                    yield EngineDifference(match.rule, expression, ours, theirs)

    def _their_outcome(
        self, engine: CelPython, expression: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Outcome | None:
        """Return cel-python's result; None if the question is old or exempt, or cel-python cannot answer."""
        source, form = expression["source"], read_form(expression["form"])
        if "record(" in form.type:  # cel-python gets only the fields that the expression names
            return None
        types = _types(form)
        read = {_source_name(name): _named_fields(value, types[name], source) for name, value in values.items()}
        types = {_source_name(name): type_ for name, type_ in types.items()}
        question = (id(expression), repr(read))
        if question in self._asked or features(expression) & NOT_COMPARED[ALWAYS]:
            return None
        self._asked.add(question)
        outcome = engine.evaluate(source, read, types)
        return None if outcome.kind == "broken" else outcome


def _evaluate_rule(program: Program, match: Match, roots: tuple[Any, ...]) -> list[Any]:
    """Return the results of a rule's condition, of its other expressions if it holds, and of the variables in them."""
    seen: list[Any] = []
    if match.evaluate_condition(program.environment(seen, roots)) is True:
        for closure in (match.explanation, match.limit_group):
            if closure is not None:
                with suppress(EvaluationError):
                    closure(program.environment(seen, roots))
    return seen


def is_exempt(expression: Mapping[str, Any], ours: Outcome, theirs: Outcome) -> bool:
    """Return whether a difference between two outcomes is a known one."""
    if ours.kind == theirs.kind:
        return False
    return bool(features(expression) & NOT_COMPARED[WE_FAIL if ours.kind == "error" else IT_FAILS])


def _named_fields(value: Any, type_: str, source: str) -> Any:
    """Return a value without the record fields that an expression does not name: none uses a whole record."""
    if type_.startswith("list(record("):
        return [_named_fields(item, type_[len("list(") : -1], source) for item in value]
    return {name: item for name, item in value.items() if name in source} if type_.startswith("record(") else value


def _source_name(name: str) -> str:
    """Return a name as expressions have it: of a variable without the path of the rule in which it hides another."""
    return f"variables.{name.rpartition('.')[2]}" if name.startswith("variables.") else name


def _types(form: Form) -> dict[str, str]:
    """Return the types of the names that a form reads."""
    if isinstance(form, (forms.Variable, forms.PolicyVariable)):
        return {next(iter(free_variables(form))): form.type}
    return {name: type_ for part in form.parts for name, type_ in _types(part).items()}
