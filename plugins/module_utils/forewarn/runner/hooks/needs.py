# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks need before they can run: programs, secrets, credentials. Only files are examined."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, NamedTuple

from ... import hook_kinds
from ...errors import InputError
from ...policy.hook_program import has_expressions
from ...system import programs, services, trust
from ...system.credentials import PROVIDE
from ...texts import redacted_url
from . import credentials
from .commands import HTTP, RUN, UNIT, find_program, kind, system_problem

CREDENTIAL = "credential"  # a kind of need


class HookNeed(NamedTuple):
    """What a hook of a rule needs. ``name`` is its program, its unit, its URL without secrets, the path of a socket, or
    a credential, for which ``policy`` and ``rule`` are those of the first hook that names it.

    ``problem`` is a sentence on what is missing, or None. ``untrusted`` is the error if others can change the program.
    """

    kind: str
    name: str
    policy: str
    rule: str
    problem: str | None = None
    untrusted: InputError | None = None


class Needs(NamedTuple):
    """The needs of the hooks of all policies."""

    hooks: tuple[HookNeed, ...] = ()
    credentials: tuple[HookNeed, ...] = ()

    def missing(self) -> tuple[str, ...]:
        """Return a sentence for each thing that is missing, with the first rule that needs it."""
        found: dict[str, list[HookNeed]] = {}
        for need in (*self.hooks, *self.credentials):
            if need.problem is not None:
                found.setdefault(need.problem, []).append(need)
        return tuple(f"{_requirer_text(of)}: {problem}" for problem, of in found.items())

    def refuse_untrusted(self) -> None:
        """Raise the InputError of the first program that others can change."""
        for need in self.hooks:
            if need.untrusted is not None:
                raise need.untrusted


def examine(
    hooks: Iterable[tuple[str, str, Mapping[str, Any]]],
    credentials_directory: str | None = None,
    promised: Collection[str] = (),
    unit_problem: Callable[[str, str], str | None] | None = None,
) -> Needs:
    """Return what ``hooks`` need, each after the names of its policy and its rule, and what of that is missing.

    ``credentials_directory`` is systemd's. The credentials ``promised`` are there when the service is started.
    ``unit_problem`` gets a unit and start or stop, and returns what is wrong with that.
    """
    needs: dict[tuple[str, str, str, str], HookNeed] = {}
    found_credentials: dict[str, HookNeed] = {}
    program = lru_cache(maxsize=None)(_program)  # each is examined once
    for policy, rule, hook in hooks:
        found = []
        for name in credentials.names(hook):
            problem = None if name in promised else _credential_problem(name, credentials_directory)
            found_credentials.setdefault(name, HookNeed(CREDENTIAL, name, policy, rule, problem))
        if kind(hook) == RUN:
            found = [_with_arguments(program(hook["run"][0]), hook["run"][1:])]
        elif kind(hook) == HTTP:
            bearer = hook.get("bearer") or {}
            problem = _problem(trust.check_secret, bearer["file"]) if "file" in bearer else None
            found = [HookNeed(HTTP, redacted_url(hook["http"]), "", "", problem)]
        elif kind(hook) == UNIT:
            problem = system_problem(hook)
            if problem is None and unit_problem is not None:
                problem = unit_problem(hook["unit"], hook["action"])
            found = [HookNeed(UNIT, hook["unit"], "", "", problem)]
        else:
            found = list(_of_kind(hook, program, unit_problem))
        for need in found:
            placed = need._replace(policy=policy, rule=rule)
            place = placed[:4]
            if place not in needs or needs[place].problem is None:
                needs[place] = placed
    return Needs(tuple(needs.values()), tuple(found_credentials.values()))


def _of_kind(
    hook: Mapping[str, Any], program: Callable[[str], HookNeed], unit_problem: Callable[[str, str], str | None] | None
) -> Iterator[HookNeed]:
    name = hook["kind"]
    known = hook_kinds.find(name)
    if known is None:
        problem = f"this runner has no kind {name}: roll it out again, together with the policies that use it"
        yield HookNeed(name, name, "", "", problem)
        return
    if programs.TARGET not in known.systems:
        yield HookNeed(name, name, "", "", f"the kind {name} runs on {known.systems_text} alone")
        return
    options = {key: value for key, value in hook["options"].items() if not has_expressions(value)}
    needs = known.needs(known.with_defaults(options))
    for wanted in needs.programs:
        yield program(wanted)
    for path in needs.sockets:
        yield HookNeed(name, path, "", "", None if _is_socket(path) else f"there is no socket {path}")
    for unit in needs.units:
        yield HookNeed(UNIT, unit, "", "", None if unit_problem is None else unit_problem(unit, "stop"))
    for service in needs.services:
        yield HookNeed(name, service, "", "", _problem(services.query, service))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - without pathlib, as everywhere in the runner
    except OSError:
        return False


def _program(program: str) -> HookNeed:
    need = HookNeed(RUN, program, "", "")
    try:
        path = find_program(program)
        if not os.path.lexists(path):
            return need._replace(problem=f"there is no program {path}")
        trust.check_program(path)
    except trust.UntrustedError as error:
        return need._replace(problem=str(error), untrusted=error)
    except InputError as error:
        return need._replace(problem=str(error))
    return need


def _with_arguments(need: HookNeed, arguments: Iterable[str]) -> HookNeed:
    """Return the need of a program, with why it cannot be started with these arguments."""
    if need.problem is not None:
        return need
    return need._replace(problem=programs.problem(find_program(need.name), tuple(arguments)))


def _credential_problem(name: str, directory: str | None) -> str | None:
    load = PROVIDE.format(name)
    if directory is None:
        return f"there is no credential {name}: the runner has none; {load}"
    path = str(Path(directory, name))
    if not os.path.lexists(path):
        return f"there is no credential {name} in {directory}: {load}"
    return _problem(trust.check_secret, path)


def _problem(check: Callable[[str], object], path: str) -> str | None:
    try:
        check(path)
    except InputError as error:
        return str(error)
    return None


def _requirer_text(needs: list[HookNeed]) -> str:
    first, others = needs[0], len(needs) - 1
    more = "" if not others else " and 1 other" if others == 1 else f" and {others} others"
    return f"rule {first.rule} of policy {first.policy}{more}"
