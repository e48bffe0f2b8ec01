# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: what it asks of a machine with systemd."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping

from ..check import Check, Orders
from .machine import Machine
from .unit import systemd, unit

DEFAULT_SERVICE = "forewarn.service"
SERVICE_HELP = "systemd unit of the service"


def full_name(given: str) -> str:
    """Return the name of a unit whose suffix may have been left out."""
    return given if "." in given else f"{given}.service"


def orders(name: str) -> Orders:
    """Return the commands for a unit."""
    return Orders(
        start=f"systemctl start {name}",
        restart=f"systemctl restart {name}",
        reload=f"systemctl reload {name}",
        reload_or_restart=f"systemctl reload-or-restart {name}",
        log=f"journalctl -u {name} -n 50",
    )


def of_service(machine: Machine, name: str, _directory: str | None) -> list[Check]:
    """Check systemd and the unit."""
    return [systemd(machine), unit(machine, name, time.monotonic())]


def own_pids(machine: Machine, name: str) -> set[int]:
    """Return the unit's process, if it has one."""
    pid = (machine.properties(name, "MainPID") or {}).get("MainPID", "")
    return {int(pid)} if pid.isdecimal() and pid != "0" else set()


def credentials(machine: Machine, name: str, wanted: Collection[str]) -> tuple[Collection[str] | None, list[str]]:
    """Return the credentials that a unit gives, None if nobody can tell, and what is wrong with those ``wanted``."""
    given = _credentials(machine, name)
    return given, list(_lost(machine, given or {}, wanted, name))


def _lost(machine: Machine, given: Mapping[str, str], wanted: Collection[str], unit: str) -> Iterator[str]:
    for name in sorted(wanted):
        if name in given and not _is_there(machine, given[name]):
            yield f"the credential {name} of {unit} is to come from {given[name]}, which does not exist"


def _credentials(machine: Machine, unit: str) -> dict[str, str] | None:
    """Return the credentials in a unit's files by name, with the path that each comes from, "" if it has none."""
    output = machine.command(["systemctl", "cat", "--", unit])
    if output is None or output.code != 0:
        return None
    found: dict[str, str] = {}
    for line in output.text.splitlines():
        key, _equals, value = line.strip().partition("=")
        if key in ("LoadCredential", "LoadCredentialEncrypted", "SetCredential", "SetCredentialEncrypted"):
            if not value.strip():  # forgets what was set before
                found.clear()
                continue
            name, _colon, path = value.strip().partition(":")
            found[name] = path if key.startswith("Load") else ""
    return found


def _is_there(machine: Machine, path: str) -> bool:
    """Return whether a credential's source is there; a relative one comes from systemd itself."""
    try:
        return not path.startswith("/") or machine.path(path).exists()
    except OSError:  # a directory that may not be entered: before Python 3.12 exists() raises
        return True
