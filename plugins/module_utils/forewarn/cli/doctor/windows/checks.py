# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: what it asks of a machine with the service control manager."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ....errors import InputError
from ....system import trust
from ....system.common.service_status import RUNNING, START_PENDING
from ....system.paths import CREDENTIALS
from ..check import NOT_CHECKED, OK, TROUBLE, WARNING, Check, Orders
from . import command_line
from .machine import WindowsMachine

DEFAULT_SERVICE = "forewarn"
SERVICE_HELP = "name of the service"

_AUTOMATIC, _DISABLED = 2, 4  # SERVICE_…_START
_RESTART = 1  # SC_ACTION_RESTART
_ACTIONS_HEADER = 20  # bytes of SERVICE_FAILURE_ACTIONS before its actions, as the registry has it
_SOURCE = r"SYSTEM\CurrentControlSet\Services\EventLog\Application\forewarn"
_LEAST_BYTES = 64 * 1024 * 1024
_ROLL_OUT = "Roll it out with the role forewarn.azure.forewarn."


def full_name(given: str) -> str:
    """Return the name of a service: it is never shortened."""
    return given


def orders(name: str) -> Orders:
    """Return the commands for a service."""
    restart, reload = f"Restart-Service {name}", f"sc.exe control {name} paramchange"
    return Orders(
        start=f"net start {name}",
        restart=restart,
        reload=reload,
        reload_or_restart=f"{reload}, or if it does not run: {restart}",
        log=f"Get-WinEvent -MaxEvents 50 -FilterHashtable @{{LogName='Application'; ProviderName='{DEFAULT_SERVICE}'}}",
    )


def of_service(machine: WindowsMachine, name: str, directory: str | None) -> list[Check]:
    """Check the service, its files, the source of its events, and the disk of the state ``directory``."""
    settings = machine.service_settings(name)
    checks = [installed(machine, name)]
    if settings:
        checks.append(files(machine, str(settings.get("ImagePath", ""))))
    return [*checks, event_log(machine), *([] if directory is None else [disk(directory)])]


def installed(machine: WindowsMachine, name: str) -> Check:
    """Check that the service starts with Windows, runs, and is started again after a fault."""
    settings, status = machine.service_settings(name), machine.service(name)
    if not settings:
        return Check("installed", TROUBLE, f"there is no service {name}", _ROLL_OUT)
    if "--service" not in command_line.words(str(settings.get("ImagePath", "")), machine.environ):
        text = f"the service {name} does not run forewarn run --service: {settings.get('ImagePath')}"
        return Check("installed", TROUBLE, text, _ROLL_OUT)
    start = settings.get("Start")
    automatic = f"sc.exe config {name} start= auto"
    if start == _DISABLED:
        return Check("installed", TROUBLE, f"the service {name} is disabled", f"{automatic}. Then: net start {name}")
    if status is not None and status.state == START_PENDING:
        return Check("installed", WARNING, f"the service {name} is starting", "Ask again in a minute.")
    if status is not None and status.state != RUNNING:
        code = f", and has ended with code {status.exit_code}" if status.exit_code else ""
        text = f"the service {name} is {status.state}{code}: nothing polls Scheduled Events"
        return Check("installed", TROUBLE, text, f"Read the reason: {orders(name).log}. Then: net start {name}")
    if start != _AUTOMATIC:
        text = f"the service {name} is started by hand alone: after a reboot this VM has no runner"
        return Check("installed", TROUBLE, text, automatic)
    if status is None:
        return Check("installed", NOT_CHECKED, f"the service {name} starts with Windows, and cannot be asked more")
    problem = _restart_problem(settings, name)
    if problem is not None:
        return Check("installed", WARNING, *problem)
    if settings.get("DelayedAutostart") == 1:
        text = f"the service {name} runs, but starts minutes after Windows: an event may not wait for it"
        return Check("installed", WARNING, text, automatic)
    return Check("installed", OK, f"the service {name} starts with Windows, and runs")


def _restart_problem(settings: dict[str, object], name: str) -> tuple[str, str] | None:
    """Return why a fault may end the service for good, and what to do; None if it is started again."""
    if not restarts(settings.get("FailureActions")):
        hint = f"sc.exe failure {name} reset= 60 actions= restart/1000/restart/1000/restart/5000"
        return f"the service {name} runs, and is not started again after a crash", hint
    if settings.get("FailureActionsOnNonCrashFailures") != 1:
        text = f"the service {name} runs, and is not started again if it ends itself by a fault"
        return text, f"sc.exe failureflag {name} 1"
    return None


def restarts(failure_actions: object) -> bool:
    """Return whether each of the actions after a failure is a restart (SERVICE_FAILURE_ACTIONS as in the registry)."""
    if not isinstance(failure_actions, bytes):
        return False
    actions = failure_actions[_ACTIONS_HEADER:]
    kinds = [int.from_bytes(actions[place : place + 4], "little") for place in range(0, len(actions) - 7, 8)]
    return bool(kinds) and all(kind == _RESTART for kind in kinds)


def files(machine: WindowsMachine, image: str) -> Check:
    """Check the interpreter and the runner that the service starts: they are there, and nobody else changes them."""
    paths = [word for word in command_line.words(image, machine.environ) if word.lower().endswith((".exe", ".pyz"))]
    for path in paths:
        if not machine.path(path).is_file():
            return Check("files", TROUBLE, f"there is no {path}, which the service starts", _ROLL_OUT)
    try:
        for path in paths:
            trust.check_file(path, "program of the service")
    except InputError as error:
        return Check("files", TROUBLE, error.message, error.hint)
    return Check("files", OK, f"{', '.join(paths)}: only administrators can change them")


def event_log(machine: WindowsMachine) -> Check:
    """Check that the event viewer finds the texts of the runner's events."""
    if machine.values(_SOURCE).get("EventMessageFile"):
        return Check("eventlog", OK, f"the source {DEFAULT_SERVICE} is registered")
    text = f"the source {DEFAULT_SERVICE} is not registered: the event viewer shows its events below a complaint"
    return Check("eventlog", WARNING, text, _ROLL_OUT)


def disk(directory: str) -> Check:
    """Check that the disk of the state directory has room."""
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return Check("disk", NOT_CHECKED, f"{directory}: {error.strerror}", "See above.")
    text = f"{free // 1024 // 1024} MiB are free for {directory}"
    if free < _LEAST_BYTES:
        return Check("disk", WARNING, text, "Make room: without it the journal cannot be written, and events are held.")
    return Check("disk", OK, text)


def own_pids(machine: WindowsMachine, name: str) -> set[int]:
    """Return the process of the service, if it runs."""
    status = machine.service(name)
    return {status.pid} if status is not None and status.pid else set()


def credentials(
    _machine: WindowsMachine, _name: str, _wanted: Collection[str]
) -> tuple[Collection[str] | None, list[str]]:
    """Return the credentials that are here, None if nobody can tell; nothing is wrong with them."""
    found: set[str] = set()
    for directory in CREDENTIALS:
        with suppress(FileNotFoundError):
            try:
                found.update(path.name for path in Path(directory).iterdir())
            except PermissionError:
                return None, []
    return found, []
