# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn hook try``: runs a hook of a kind on this VM, now, as the runner would."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...hook_kinds.common.declaration import BOOLEAN, COMMAND, DURATION, INTEGER, HookKind, Option
from ...hook_kinds.common.process import PREPARE, RECOVER, perform
from ...hook_kinds.common.work import HookFailedError
from ...policy.functions.timevalues import SECOND, parse_duration
from ...runner.hooks.commands import HookSettings
from .kinds import known

_TYPE = "Reboot"
_BOOLEANS = {"true": True, "false": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="the name of a kind: see forewarn hook list")
    parser.add_argument(
        "options", nargs="*", metavar="OPTION=VALUE", help="its options, as a policy has them; ${…} is not available"
    )
    phase = parser.add_mutually_exclusive_group(required=True)
    phase.add_argument("--prepare", dest="phase", action="store_const", const=PREPARE, help="prepare for an event")
    phase.add_argument("--recover", dest="phase", action="store_const", const=RECOVER, help="undo it")
    parser.add_argument("--type", default=_TYPE, metavar="TYPE", help=f"EventType to prepare for (default: {_TYPE})")
    parser.add_argument("--probe", metavar="HOST:PORT", help="where the runner of this VM answers /readyz")
    parser.epilog = "It acts on real software. It runs as you, not in the sandbox of the runner's unit."


def run(args: argparse.Namespace) -> int:
    """Run the hook; exit code 1 if its effect is not there."""
    kind = known(args.kind)
    options, seconds = _read(kind, args.options)
    event = {"EventId": "00000000-0000-4000-8000-000000000000", "EventType": args.type, "EventStatus": "Scheduled"}
    try:
        perform(kind.name, args.phase, options, event, seconds, _memory(kind, kind.with_defaults(options)), args.probe)
    except HookFailedError as error:
        sys.stdout.write(f"failed: {error}\n")
        return 1
    return 0


def _memory(kind: HookKind, options: dict[str, Any]) -> str | None:
    """Return where --prepare keeps for --recover how things were: not where the runner does."""
    settings = HookSettings(memory_directory=str(Path.home() / ".cache" / "forewarn" / "hook-try"))
    return settings.memory_file({"kind": kind.name, "options": options})


def _read(kind: HookKind, words: list[str]) -> tuple[dict[str, Any], float]:
    known_options = {option.name: option for option in kind.options}
    options: dict[str, Any] = {}
    seconds = kind.timeout_seconds
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            example = f"{kind.options[0].name}={kind.options[0].example}" if kind.options else "timeout=30s"
            raise InputError(f"{word} is not of the form OPTION=VALUE.", f"For example {example}.")
        if name == "timeout":
            seconds = _seconds(name, value)
        elif name in known_options:
            options[name] = _value(known_options[name], value)
        else:
            raise InputError(f"{kind.name} has no option {name}.", f"Its options are {', '.join(known_options)}.")
    problems = kind.problems(options)
    if problems:
        raise InputError(f"{'; '.join(problems)}.", f"forewarn hook show {kind.name} explains them.")
    return options, seconds


def _value(option: Option, text: str) -> Any:
    if option.type == BOOLEAN:
        return _BOOLEANS.get(text, text)
    if option.type == INTEGER:
        return int(text) if text.lstrip("-").isdecimal() else text
    if option.type == DURATION:
        return _seconds(option.name, text)
    return shlex.split(text) if option.type == COMMAND else text


def _seconds(name: str, text: str) -> float:
    try:
        return parse_duration(text) / SECOND
    except ValueError as error:
        raise InputError(f"{name} is not a duration: {text}.", "Write it as 30s, 5m or 1m30s.") from error
