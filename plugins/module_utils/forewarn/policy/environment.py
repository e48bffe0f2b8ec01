# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment in which closures run: where each value of an expression is, and how the closures use it.

Each evaluation has its own environment, a list: item 0 is the number of steps that loops may still take, item 1 is the
trace or None, and each variable and local has one of the items after these, its slot. So closures share nothing, and
any thread may run them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, List

from .evaluation_error import EvaluationError, InternalError

Env = List[Any]  # type alias, evaluated at run time: list[...] exists since Python 3.9
Closure = Callable[[Env], Any]

MAX_STEPS = 20_000  # of loops, per policy and event; the compiler refuses an expression that would likely need more


class _Absent:
    """The value of a variable that is not known. Reading a field of it raises KeyError, as a missing field does."""

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)


ABSENT = _Absent()
UNSET = object()  # the value of a policy variable that has not been evaluated yet


class Scope:
    """The slots of names in the environment. ``size`` is the length of the environment.

    ``variable_closures`` are those of the policy variables that have been built so far, by name.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.slots = {name: index + 2 for index, name in enumerate(names)}
        self.variable_closures: dict[str, Closure] = {}
        self.size = len(names) + 2

    def add(self, name: str) -> int:
        """Reserve a slot for a name; return its index."""
        self.slots[name] = self.size
        self.size += 1
        return self.slots[name]

    def environment(self, values: Mapping[str, Any], trace: list[Any] | None = None) -> Env:
        """Return a new environment, with ABSENT for a variable without a value. Raises KeyError for an unknown name."""
        env: Env = [ABSENT] * self.size
        env[0], env[1] = MAX_STEPS, trace
        slots = self.slots
        for name, value in values.items():
            env[slots[name]] = value
        return env


class CachedError:
    """The error of a policy variable, in its slot: an evaluation evaluates the variable only once."""

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def guard(closure: Closure) -> Closure:
    """Return the closure of a whole expression, which raises EvaluationError and nothing else.

    Any other exception is not a result of CEL, and becomes an InternalError.
    """

    def call(env: Env) -> Any:
        try:
            return closure(env)
        except EvaluationError:
            raise
        except Exception as error:  # of any type: a defect, or an artifact of another program
            raise InternalError(error) from error

    return call


def evaluate_once(slot: int, closure: Closure) -> Closure:
    """Return a closure that keeps its value, or its error, in a slot, and evaluates only if that is UNSET."""

    def get(env: Env) -> Any:
        value = env[slot]
        if value is UNSET:
            try:
                value = env[slot] = closure(env)
            except EvaluationError as error:
                env[slot] = CachedError(error)
                raise
        elif isinstance(value, CachedError):
            raise value.error
        return value

    return get
