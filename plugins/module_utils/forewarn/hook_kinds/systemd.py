# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd: stops a unit, lets nothing else start it meanwhile, and starts it again (systemctl(1), systemd.unit(5))."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .declaration import BOOLEAN, UNIT, HookKind, Option, Requirements
from .effect import EffectSeen, missing, there, undone
from .work import HookFailedError, Work

_SYSTEMCTL = ("systemctl", "--no-ask-password")
_DROP_INS = "/run/systemd/system"  # which a reboot forgets
_DOWN = ("inactive", "failed")


def _drain(work: Work) -> str:
    if work.options["block"] and not (work.notes and _drop_in(work).exists()):
        _block(work)
    # Even if it is down: a start of it may be queued.
    _order(work, "stop")
    work.notes["ordered"] = True
    return ""


def _drained(work: Work) -> EffectSeen:
    unit, found = work.options["unit"], _properties(work)
    if found["LoadState"] != "loaded":
        raise HookFailedError(f"systemd has no usable unit {unit}: it is {found['LoadState']}")
    work.remember(was_active=found["ActiveState"] not in (*_DOWN, "deactivating"))
    if work.options["block"] and not _drop_in(work).exists():
        return undone(f"starts of {unit} are allowed")
    if found["ActiveState"] not in (*_DOWN, "deactivating") or not work.notes.get("ordered"):
        return undone(f"{unit} is {found['ActiveState']} ({found['SubState']})")
    if found["ActiveState"] == "deactivating":
        return missing(f"{unit} is deactivating ({found['SubState']})")
    return there(f"{unit} is stopped")


def _undo(work: Work) -> str:
    drop_in = _drop_in(work)
    if drop_in.exists():
        drop_in.unlink()
        work.run(*_SYSTEMCTL, "daemon-reload")
    if work.memory.get("was_active", True):
        _order(work, "start")
    work.notes["ordered"] = True
    return ""


def _undone(work: Work) -> EffectSeen:
    unit, found = work.options["unit"], _properties(work)
    if not work.notes.get("ordered") or _drop_in(work).exists():
        return undone(f"starts of {unit} are not allowed")
    if not work.memory.get("was_active", True):
        return there(f"{unit} was not running before, and is not started")
    if found["ActiveState"] == "failed":
        raise HookFailedError(f"{unit} has failed ({found['Result']}): journalctl --unit={unit} says why")
    if found["ActiveState"] != "active":
        return missing(f"{unit} is {found['ActiveState']} ({found['SubState']})")
    return there(f"{unit} is active")


def _block(work: Work) -> None:
    """Let every start of the unit fail. 'systemctl mask --runtime' does not work for units whose file is in /etc."""
    drop_in = _drop_in(work)
    try:
        drop_in.parent.mkdir(exist_ok=True)
        drop_in.write_text(
            f"# Until a scheduled event is over.\n[Unit]\nAssertPathExists=!{drop_in}\n", encoding="utf-8"
        )
        drop_in.chmod(0o644)
    except OSError as error:
        raise HookFailedError(f"{drop_in} cannot be written: {error.strerror}") from error
    work.run(*_SYSTEMCTL, "daemon-reload")


def _drop_in(work: Work) -> Path:
    return Path(_DROP_INS, f"{work.options['unit']}.d", "50-forewarn.conf")


def _order(work: Work, verb: str) -> None:
    work.run(*_SYSTEMCTL, verb, "--no-block", "--", work.options["unit"])


def _properties(work: Work) -> dict[str, str]:
    names = "LoadState,ActiveState,SubState,Result"
    output = work.run(*_SYSTEMCTL, "show", f"--property={names}", "--", work.options["unit"]).output
    lines = (line.partition("=") for line in output.splitlines())
    return {name: value for name, _equals, value in lines}


def _needs(options: Mapping[str, Any]) -> Requirements:
    return Requirements(
        programs=("systemctl",),
        units=(options["unit"],) if "unit" in options else (),
        writable=(_DROP_INS,) if options["block"] else (),
    )


KIND = HookKind(
    name="systemd",
    summary="Stops a unit of systemd, and keeps it stopped until the event is over.",
    prepares="It lets every start of the unit fail, until the next boot at the latest, and stops it.",
    recovers="It allows starts again, and starts the unit if it was running before.",
    effect="It waits until the unit is inactive, and after the event until it is active.",
    repeatable="A unit that is stopped already stays stopped. It remembers how the unit was before the first run.",
    requirements="A service of type oneshot needs RemainAfterExit=yes, or it never becomes active.",
    tried_with="systemd 247, 252 and 257",
    options=(
        Option("unit", UNIT, "The unit, with its suffix.", "app.service", required=True),
        Option("block", BOOLEAN, "Whether nothing else may start the unit meanwhile.", True, default=True),
    ),
    drain=_drain,
    drained=_drained,
    undo=_undo,
    undone=_undone,
    every=0.2,
    needs=_needs,
)
