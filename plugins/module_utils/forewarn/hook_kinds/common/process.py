# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process of a hook of a kind: its settings are the first line of standard input, the event follows.

Exit code 0: the effect is there. The last line that it writes says what was achieved, or what is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from .. import find
from .effect import attain_effect
from .work import HookFailedError, Work

PREPARE, RECOVER = "prepare", "recover"


def main(source: BinaryIO | None = None) -> int:
    """Run the hook that standard input describes; return the exit code."""
    source = source or sys.stdin.buffer
    settings = json.loads(source.readline())
    content = json.loads(source.read())
    event, outcome = content.get("event") or {}, content.get("outcome")
    kind, phase, options = settings["kind"], settings["phase"], settings["options"]
    try:
        perform(kind, phase, options, event, settings["seconds"], settings["memory"], settings["probe"], outcome)
    except HookFailedError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


def perform(
    name: str,
    phase: str,
    options: Mapping[str, Any],
    event: Mapping[str, Any],
    seconds: float,
    memory_file: str | None = None,
    probe_address: str | None = None,
    outcome: str | None = None,
) -> None:
    """Prepare or recover by a kind, in this process. Raises HookFailedError."""
    kind = find(name)
    if kind is None:
        raise HookFailedError(f"this runner has no kind {name}: roll it out again, with the policies that use it")
    problems = kind.problems(options)
    if problems:
        raise HookFailedError("; ".join(problems))
    work = Work(kind.with_defaults(options), event, seconds, memory_file, probe_address, outcome)
    try:
        if phase == PREPARE:
            attain_effect(work, kind.prepare, kind.check_prepared, kind.poll_seconds)
        else:
            attain_effect(work, kind.recover, kind.check_recovered, kind.poll_seconds)
            work.forget()
    except HookFailedError as error:
        raise HookFailedError(work.mask(str(error))) from error
