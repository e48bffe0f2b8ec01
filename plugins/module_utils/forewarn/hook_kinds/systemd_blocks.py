# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks starts of units until the event is over, by drop-ins in /run, which a reboot removes.

systemd.unit(5) has AssertPathExists=. 'systemctl mask --runtime' does not work for units whose file is in /etc.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from .common.work import HookFailedError, Work
from .systemd_units import SYSTEMCTL, Unit

DROP_INS = "/run/systemd/system"
_WAS_ACTIVE = "# It was active before.\n"


def drop_in(name: str) -> Path:
    """Return the file that lets every start of a unit fail, as long as it exists."""
    return Path(DROP_INS, f"{name}.d", "50-forewarn.conf")


def block(work: Work, units: Mapping[str, bool]) -> None:
    """Let every start of units fail: name -> whether the unit was active, for other hooks. Raises HookFailedError."""
    for name, was_active in units.items():
        path = drop_in(name)
        note = _WAS_ACTIVE if was_active else ""
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                f"# Until a scheduled event is over.\n{note}[Unit]\nAssertPathExists=!{path}\n", encoding="utf-8"
            )
            path.chmod(0o644)
        except OSError as error:
            raise HookFailedError(f"{path} cannot be written: {error.strerror}") from error
    if units:
        work.run(*SYSTEMCTL, "daemon-reload")


def is_blocked(unit: Unit) -> bool:
    """Return whether systemd lets every start of a unit fail."""
    return str(drop_in(unit.name)) in unit.drop_ins


def unblock(work: Work, names: Iterable[str]) -> None:
    """Let units start again. Raises HookFailedError."""
    blocked = [path for path in map(drop_in, names) if path.exists()]
    for path in blocked:
        try:
            path.unlink()
        except OSError as error:
            raise HookFailedError(f"{path} cannot be removed: {error.strerror}") from error
        with contextlib.suppress(OSError):  # somebody else's drop-ins are there too
            path.parent.rmdir()
    if blocked:
        work.run(*SYSTEMCTL, "daemon-reload")


def was_active(name: str) -> bool:
    """Return whether a unit that is blocked was active before."""
    try:
        return _WAS_ACTIVE in drop_in(name).read_text(encoding="utf-8")
    except OSError:
        return False
