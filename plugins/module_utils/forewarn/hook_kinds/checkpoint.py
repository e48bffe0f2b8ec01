# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoint: has a program save its state, and waits until it has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .common.declaration import CHOICE, COMMAND, NETWORK, PATH, UNIT, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, Work


def _prepare(work: Work) -> str:
    # A file that an earlier run has saved may be hours old, so each run notes its time anew.
    work.notes["before"] = _saved(work)
    if "run" in work.options:
        work.run(*work.options["run"])
    else:
        # systemd sends it: the runner may not signal the processes of others.
        signal, unit = work.options["signal"], work.options["unit"]
        work.run("systemctl", "--no-ask-password", "kill", "--kill-who=main", f"--signal=SIG{signal}", "--", unit)
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    file = work.options["file"]
    # Any other time counts as new: the clock may have been set back meanwhile.
    if "before" in work.notes and _saved(work) not in (0, work.notes["before"]):
        work.notes["saved"] = True
        return complete(f"{file} is saved")
    if work.notes.pop("saved", "before" not in work.notes):
        return absent(f"{file} is not there as it was saved")
    return incomplete(f"{file} has not been written since this hook began")


def _recover(work: Work) -> str:
    work.run(*work.options["restore"])
    work.notes["restored"] = True
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    if "restore" not in work.options:
        return complete("there is nothing to restore")
    if work.outcome == "cancelled":
        return complete("the event was cancelled: nothing was lost, and nothing is restored")
    return complete("it is restored") if work.notes.get("restored") else absent("it is not restored")


def _saved(work: Work) -> int:
    """Return when the file was last written, in nanoseconds; 0 if it does not exist."""
    try:
        return os.stat(work.options["file"]).st_mtime_ns  # noqa: PTH116 - as everywhere on a VM
    except FileNotFoundError:
        return 0
    except OSError as error:
        hint = "forewarn_hooks_need: [files] allows it to look there"
        raise HookFailedError(f"{work.options['file']} cannot be looked at: {error.strerror}; {hint}") from error


def _needs(options: Mapping[str, Any]) -> Requirements:
    commands = [options[name] for name in ("run", "restore") if name in options]
    programs = tuple(command[0] for command in commands) + (("systemctl",) if "unit" in options else ())
    return Requirements(
        programs=programs,
        units=(options["unit"],) if "unit" in options else (),
        sandbox=(NETWORK,) if commands else (),
    )


KIND = HookKind(
    name="checkpoint",
    summary="Has a program save its state, waits until it has, and restores it after the event.",
    prepares="It runs a command, or sends a signal to a unit's main process.",
    recovers="It runs the command in 'restore', if there is one, unless the event was cancelled.",
    effect="It waits until the file has been written since the hook began.",
    repeatable="Another run saves once more, and waits for that.",
    requirements="The program must put the file in place whole: write another, and rename it.",
    tried_with="a program that counts, on systemd 252",
    options=(
        Option("file", PATH, "The file that the program writes.", "/var/lib/worker/checkpoint", required=True),
        Option("run", COMMAND, "The command that saves, without a shell.", ["/usr/local/bin/worker", "save"]),
        Option("unit", UNIT, "The unit whose main process saves when it gets the signal.", "worker.service"),
        Option(
            "signal",
            CHOICE,
            "The signal that makes the program save.",
            "USR1",
            default="USR1",
            choices=("USR1", "USR2", "HUP", "INT", "TERM"),
        ),
        Option("restore", COMMAND, "The command that restores, after the event.", ["/usr/local/bin/worker", "restore"]),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    poll_seconds=0.1,
    needs=_needs,
    timeout_seconds=60.0,
    one_of=("run", "unit"),
)
