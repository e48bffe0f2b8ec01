# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process of a hook: its arguments, its environment, and what it reads. There is no shell.

All kinds are child processes: ``unit`` is a systemctl that waits, ``http`` a Python of its own (``webhook``), so that
TLS costs the runner no memory, and so are the kinds of ``hook_kinds``. docs/policies.md lists what a hook can rely on.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ... import hook_kinds
from ...errors import InputError
from ...events import Event, format_time
from ...policy.decision import HOOK_TIMEOUT_SECONDS
from ...policy.hook_body import content_for_occasion
from ...policy.hook_program import has_expressions, option_source
from ...policy.structure import is_local_url
from ...system import account, programs
from ...system.trust import check_program
from ...texts import redacted_url
from . import credentials

RUN, UNIT, HTTP = "run", "unit", "http"
_UNIT_SYSTEM = "linux"

# Linux starts no process with a string of more than 128 KiB in its environment.
_LONGEST_VALUE_BYTES = 16 * 1024
_REPLACED = re.compile("[\0\ud800-\udfff]")
_BARE = r"[\w./:=@%+,-]+"

# The directory or zip file that the package was imported from. At import: the current directory may change later.
ROOT = str(Path(__file__).absolute().parents[3])
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv[1]); from forewarn.system.processes import exit_at_request; "
    "exit_at_request(); from {} import main; raise SystemExit(main())"
)
_DECISION = ("output", "policy", "rule", "reason")
_SECRET_FIELDS = {"pagerduty": "routing_key"}  # instead of the header Authorization
_HTTP_MODULE, _KIND_MODULE = "forewarn.runner.hooks.webhook", "forewarn.hook_kinds.common.process"


class HookError(InputError):
    """A hook that cannot be run, and why."""


class Command(NamedTuple):
    """A process to start, with its whole ``environment``. ``stdin`` is what it may read.

    ``secrets`` are what it is given and may not be seen to print, ``lent`` the directory that has them.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    stdin: bytes
    timeout_seconds: float
    secrets: tuple[bytes, ...] = ()
    lent: str | None = None


class HookContext(NamedTuple):
    """What a hook learns about its run, as in the JSON that it reads. ``phase`` is prepare, recover or notify.

    ``occasion``, of notify hooks alone, is decided, started, ended or cancelled. ``seconds_left`` is the time to
    NotBefore, None if the service did not say. ``other_events`` counts the other listed events whose preparation has
    begun. Of ``decision`` a hook learns ``_DECISION``.
    """

    phase: str
    occasion: str | None
    attempt: int
    drill: bool
    event: Event
    vm_name: str | None
    decision: Mapping[str, Any]
    outcome: str | None
    seconds_left: float | None
    other_events: int


class HookSettings(NamedTuple):
    """The runner's configuration for hooks.

    ``proxy`` is ``http://HOST:PORT``; ``ca_file`` (PEM) is trusted instead of the system's authorities;
    ``credentials_directory`` is systemd's, where the credentials that hooks name are looked up. In ``memory_directory``
    hooks keep how things were before them. ``probe_address`` is where the runner itself answers ``/readyz``.
    """

    proxy: str | None = None
    ca_file: str | None = None
    credentials_directory: str | None = None
    memory_directory: str | None = None
    probe_address: str | None = None

    def memory_file(self, hook: Mapping[str, Any]) -> str | None:
        """Return where a hook keeps how things were before it. The same options have the same file."""
        if self.memory_directory is None:
            return None
        name = hashlib.sha256(json.dumps([hook["kind"], hook["options"]], sort_keys=True).encode("utf-8")).hexdigest()
        return f"{self.memory_directory}/{hook['kind']}-{name[:16]}.json"


def kind(hook: Mapping[str, Any]) -> str:
    """Return the kind of a hook: run, unit, http, or the name of a kind in ``hook_kinds``."""
    return str(hook["kind"]) if "kind" in hook else RUN if "run" in hook else UNIT if "unit" in hook else HTTP


def system_problem(hook: Mapping[str, Any]) -> str | None:
    """Return why a hook cannot run on this system, whatever its settings are, or None."""
    if kind(hook) == UNIT and programs.TARGET != _UNIT_SYSTEM:
        return f"{describe(hook)} needs systemd, which is on Linux alone: use the kind service for a Windows service"
    return None


def timeout(hook: Mapping[str, Any]) -> float:
    """Return how many seconds a hook may take."""
    return float(hook.get("timeout_seconds", HOOK_TIMEOUT_SECONDS))


def describe(hook: Mapping[str, Any]) -> str:
    """Return the hook in one line for people. Of a URL, user, password and values of the query are not shown."""
    if "run" in hook:
        return f"run {' '.join(map(_display, hook['run']))}"
    if "unit" in hook:
        return f"{hook['action']} {hook['unit']}"
    if "kind" in hook:
        options = (f"{name}={_display(value)}" for name, value in sorted(hook["options"].items()))
        return " ".join((hook["kind"], *options))
    return f"http {redacted_url(hook['http'])}"


def command(
    hook: Mapping[str, Any],
    occasion: HookContext,
    settings: HookSettings,
    timeout_seconds: float,
    seconds: float | None = None,
) -> Command:
    """Return the process of a hook, which learns that it has ``seconds``: its timeout, or less before NotBefore.

    Raises HookError if it cannot be run, for example a program that others can change.
    """
    unusable = hook.get("problem") or system_problem(hook)
    if unusable is not None:
        raise HookError(unusable)
    seconds = timeout_seconds if seconds is None else seconds
    content = _utf8(_content(occasion, seconds)) + b"\n"
    if "kind" in hook:
        return _kind_command(hook, occasion, settings, content, seconds)._replace(timeout_seconds=timeout_seconds)
    if kind(hook) == HTTP:
        argv = python(_HTTP_MODULE)
        request = request_settings(hook, settings, timeout_seconds)
        if "body" in hook:
            content = _body_value(hook, occasion.occasion)
        elif "template" in hook:
            content = _render_template(hook["template"], occasion, seconds)
        return Command(argv, programs.BASE_ENVIRONMENT, _utf8(request) + b"\n" + content, timeout_seconds)
    if kind(hook) == UNIT:
        # systemctl returns when the job has ended.
        wanted = ["systemctl", "--no-ask-password", hook["action"], "--", hook["unit"]]
    else:
        wanted = list(hook["run"])
    if any(_REPLACED.search(word) for word in wanted):
        raise HookError("an argument has a NUL character or half a character in it, which no program can receive")
    program = _trusted_program(wanted[0])
    objection = programs.problem(program, wanted[1:])
    if objection is not None:
        raise HookError(objection)
    environment = {**programs.BASE_ENVIRONMENT, **_environment(occasion, seconds)}
    lent: str | None = None
    secrets: tuple[bytes, ...] = ()
    if hook.get("credentials"):
        try:
            lent, secrets = credentials.hand_over(
                hook["credentials"], settings.credentials_directory, settings.memory_directory
            )
        except InputError as error:
            raise HookError(error.message, error.hint) from error
        environment["CREDENTIALS_DIRECTORY"] = lent
    return Command((program, *wanted[1:]), environment, content, timeout_seconds, secrets, lent)


def _kind_command(
    hook: Mapping[str, Any], occasion: HookContext, settings: HookSettings, content: bytes, seconds: float
) -> Command:
    """Return the process of a hook of one of ``hook_kinds``, which has ``seconds`` for its effect."""
    kind_ = hook_kinds.find(hook["kind"])
    if kind_ is None:
        raise HookError(
            f"this runner has no kind {hook['kind']}: roll it out again, together with the policies that use it"
        )
    problems = kind_.problems(hook["options"])
    if problems:  # a text may hold a value that the kind cannot use
        raise HookError("; ".join(problems))
    for program in kind_.needs(kind_.with_defaults(hook["options"])).programs:
        _trusted_program(program)
    request = {
        "kind": hook["kind"],
        "phase": occasion.phase,
        "options": hook["options"],
        "seconds": seconds,
        "memory": settings.memory_file(hook),
        "probe": settings.probe_address,
    }
    return Command(
        python(_KIND_MODULE),
        {**programs.BASE_ENVIRONMENT, **_environment(occasion, seconds)},
        _utf8(request) + b"\n" + content,
        seconds,
    )


def _trusted_program(wanted: str) -> str:
    """Return the path of a program that nobody else can change. Raises HookError."""
    program = find_program(wanted)
    try:
        check_program(program)
    except InputError as error:
        raise HookError(str(error)) from error
    return program


def _display(value: Any) -> str:
    """Return a value as one word for people."""
    value = option_source(value) if has_expressions(value) else value
    if isinstance(value, list):
        value = " ".join(map(_display, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if re.fullmatch(_BARE, text) else json.dumps(text, ensure_ascii=False)


def find_program(program: str) -> str:
    """Return the path of a program. Raises HookError if there is none of that name."""
    if Path(program).is_absolute():
        return program
    if not program or not programs.is_name(program):
        raise HookError(f"the program {program!r} is neither a name nor an absolute path")
    path = programs.find(program)
    if path is None:
        raise HookError(f"there is no program {program} in {programs.SEARCH_PATH}")
    return path


def _environment(occasion: HookContext, timeout_seconds: float) -> dict[str, str]:
    """Return the environment of a hook. A variable may be empty, but never missing: many scripts ``set -u``."""
    event = occasion.event
    values = {
        "EVENT_ID": event.event_id,
        "EVENT_TYPE": event.event_type,
        "EVENT_STATUS": event.event_status,
        "EVENT_SOURCE": event.event_source,
        "RESOURCES": ",".join(event.resources),
        "NOT_BEFORE": None if event.not_before is None else format_time(event.not_before),
        "DURATION_SECONDS": event.duration_in_seconds,
        "DESCRIPTION": event.description,
        "VM_NAME": occasion.vm_name,
        "PHASE": occasion.phase,
        "ATTEMPT": occasion.attempt,
        "DRILL": int(occasion.drill),
        **{name.upper(): occasion.decision.get(name) for name in _DECISION},
        "OUTCOME": occasion.outcome,
        "OCCASION": occasion.occasion,
        # A shell calculates with integers.
        "SECONDS_LEFT": None if occasion.seconds_left is None else max(0, int(occasion.seconds_left)),
        "OTHER_EVENTS": occasion.other_events,
        "TIMEOUT_SECONDS": int(timeout_seconds),
    }
    return {
        programs.HOME_VARIABLE: account.home(),
        **{f"FOREWARN_{name}": _value(value) for name, value in values.items()},
    }


def _value(value: str | float | None) -> str:
    text = "" if value is None else _REPLACED.sub("\ufffd", str(value))
    return text.encode("utf-8")[:_LONGEST_VALUE_BYTES].decode("utf-8", "ignore")


def _render_template(template: str, occasion: HookContext, timeout_seconds: float) -> bytes:
    from .templates import render  # here: few hooks have one

    content = _content(occasion, timeout_seconds)
    return _utf8(render(template, content, datetime.now(timezone.utc), socket.gethostname()))


def _body_value(hook: Mapping[str, Any], occasion: str | None) -> bytes:
    """Return the value of a hook's body. Raises HookError if it has none."""
    problem = body_problem(hook, occasion)
    if problem is not None:
        raise HookError(problem)
    return _utf8(content_for_occasion(hook, occasion)["json"])


def body_problem(hook: Mapping[str, Any], occasion: str | None) -> str | None:
    """Return why a hook has no body on an occasion, which no other attempt changes; None if nothing is wrong."""
    return content_for_occasion(hook, occasion).get("problem") if "content" in hook else None


def _content(occasion: HookContext, timeout_seconds: float) -> dict[str, Any]:
    """Return what a hook reads: the content of its environment, uncut, in which ``_utf8`` replaces lone surrogates."""
    return {
        "forewarn": {"schema": "hook", "version": 1},
        **occasion._asdict(),
        "event": occasion.event.as_dict(),
        "decision": {name: occasion.decision.get(name) for name in _DECISION},
        "timeout_seconds": timeout_seconds,
    }


def _utf8(value: object) -> bytes:
    return _REPLACED.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode("utf-8")


def python(module: str) -> tuple[str, ...]:
    """Return the arguments of a Python that runs a module of ours. No URL or secret is there: ps shows arguments.

    -I and -S exclude the environment and site-packages.
    """
    executable = programs.python()
    if not executable:
        raise HookError("the path of this Python is unknown, and this hook needs a Python of its own")
    return (executable, "-I", "-S", "-X", "utf8", "-c", _BOOTSTRAP.format(module), ROOT)


def request_settings(hook: Mapping[str, Any], settings: HookSettings, timeout_seconds: float) -> dict[str, Any]:
    """Return the first line that ``webhook`` reads. Raises HookError."""
    url = hook["http"]
    bearer = hook.get("bearer")
    secret = None
    if bearer is not None and "file" in bearer:
        secret = bearer["file"]
    elif bearer is not None:
        try:
            secret = credentials.path(bearer["credential"], settings.credentials_directory)
        except InputError as error:
            raise HookError(error.message) from error
    return {
        "url": url,
        "shown": redacted_url(url),
        "timeout_seconds": timeout_seconds,
        "proxy": None if is_local_url(url) else settings.proxy,  # no proxy leads back to this machine
        "ca_file": settings.ca_file,
        "bearer_file": secret,
        **({"once": True} if (hook.get("retry") or {}).get("attempts") == 1 else {}),
        **({"secret_field": _SECRET_FIELDS[hook["template"]]} if hook.get("template") in _SECRET_FIELDS else {}),
    }
