# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration of a kind of hook: its options, its effect before and after an event, what it needs on the VM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

if TYPE_CHECKING:
    from .effect import Check, Order

# Types of options. Each text, and each item of a list, may have CEL expressions in it: ${…}.
TEXT, PATH, URL, UNIT, COMMAND = "text", "path", "url", "unit", "command"
# Options of these types have no expressions.
INTEGER, BOOLEAN, DURATION, CHOICE = "integer", "boolean", "duration", "choice"
TEXTS = (TEXT, PATH, URL, UNIT)

_PATTERNS = {
    PATH: (re.compile(r"/[^\0-\x1f]*"), "a whole path, which begins with /"),
    UNIT: (
        re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|socket|target|timer|path|mount|slice|scope)"),
        "a unit with its suffix, such as app.service",
    ),
    URL: (re.compile(r"https?://[^\s/?#@]+([/?#]\S*)?"), "a URL that begins with http:// or https://"),
}

# What the sandbox of the runner's unit has to allow, by the categories of forewarn_hooks_need.
NETWORK, FILES, USERS, PROCESSES, EVERYTHING = "network", "files", "users", "processes", "everything"


# The systems on which a kind runs.
LINUX, WINDOWS = "linux", "windows"


class Option(NamedTuple):
    """An option of a kind. Durations are in seconds.

    ``default`` is None if an option that is left out has no value; ``description`` then says what that means.
    ``pattern`` is a regular expression for the whole text, ``wording`` describes it for people: "BACKEND/SERVER".
    """

    name: str
    type: str
    description: str
    example: Any
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    wording: str = ""

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with a value, to be read after the option's name: "must be true or false"; else None."""
        if self.type == BOOLEAN:
            return None if isinstance(value, bool) else "must be true or false"
        if self.type in (INTEGER, DURATION):
            return self._number_problem(value)
        if self.type == COMMAND:
            good = isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
            return None if good else "must be a program and its arguments, as a list"
        if not isinstance(value, str) or not value:
            return "must be a text, and not empty"
        if self.type == CHOICE:
            return None if value in self.choices else f"is one of {', '.join(self.choices)}"
        pattern, wording = _PATTERNS.get(self.type, (None, ""))
        if pattern is not None and not pattern.fullmatch(value):
            return f"must be {wording}"
        if self.pattern and not re.fullmatch(self.pattern, value):
            return f"must be {self.wording}"
        return None

    def _number_problem(self, value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int if self.type == INTEGER else (int, float)):
            return "must be a whole number" if self.type == INTEGER else "must be a duration"
        if self.minimum is not None and value < self.minimum:
            return f"must be at least {self.minimum:g}"
        if self.maximum is not None and value > self.maximum:
            return f"must be at most {self.maximum:g}"
        return None


class Requirements(NamedTuple):
    """What a hook needs on a VM: ``programs`` by name or path, ``sockets`` by path, systemd's ``units`` and the
    ``services`` of Windows by name.

    ``sandbox`` are categories that the runner's unit must allow, ``writable`` are paths to which it must let it write.
    """

    programs: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    sandbox: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class HookKind(NamedTuple):
    """A kind of hook. The texts are whole sentences, for the documentation and for ``forewarn hook show``.

    ``prepare`` and ``recover`` order an effect, ``check_prepared`` and ``check_recovered`` check it every
    ``poll_seconds`` (see ``effect.attain_effect``). All four may run twice; ``recover`` also runs after a hook that was
    killed while it prepared. ``needs`` gets options with their defaults, without texts whose values are not known yet.
    Exactly one of the options in ``one_of`` must be given. ``systems`` are those on which it runs.
    """

    name: str
    summary: str
    prepares: str
    recovers: str
    effect: str
    repeatable: str
    requirements: str
    tried_with: str
    options: tuple[Option, ...]
    prepare: Order
    check_prepared: Check
    recover: Order
    check_recovered: Check
    poll_seconds: float = 0.5
    needs: Callable[[Mapping[str, Any]], Requirements] = lambda _options: Requirements()
    timeout_seconds: float = 300.0
    one_of: tuple[str, ...] = ()
    systems: tuple[str, ...] = (LINUX,)

    @property
    def systems_text(self) -> str:
        """The systems on which it runs: "Linux and Windows"."""
        return " and ".join(map(str.title, self.systems))

    def with_defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given options, and the defaults of all others that have one."""
        defaults = {option.name: option.default for option in self.options if option.default is not None}
        return {**defaults, **given}

    def problems(self, given: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with the given options, a sentence without its full stop for each problem."""
        known = {option.name: option for option in self.options}
        found = [f"{name} is not an option of {self.name}" for name in given if name not in known]
        found += [f"{name} is missing" for name, option in known.items() if option.required and name not in given]
        if self.one_of and sum(name in given for name in self.one_of) != 1:
            found.append(f"exactly one of {', '.join(self.one_of)} has to be given")
        for name, value in given.items():
            problem = known[name].problem(value) if name in known else None
            if problem is not None:
                found.append(f"{name} {problem}, not {value!r}")
        return found
