# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: what the service needs on this VM, and what to do where it is missing."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from ... import __version__
from ...errors import InputError
from ...events import LATEST_API_VERSION
from ...imds.client import Client
from ...imds.endpoint import resolve_endpoint
from ...runner.clocks import Clocks
from ...runner.state import dry_runs
from ...runner.telemetry import heartbeat
from ...system.account import is_administrator
from ...system.paths import CONFIG
from ..output.console import Console, write_result
from ..output.page import Page, iso
from ..output.progress import waiting
from ..run.options import defaults
from ..run.setup import Setup, read
from ..runner_state import open_state
from ..status.report import examine
from . import platform as doctor_platform
from . import policy as doctor_policy
from . import service as doctor_service
from .check import AS_ADMIN, NOT_CHECKED, OK, TROUBLE, WARNING, Check, Orders, is_denied
from .system import (
    DEFAULT_SERVICE,
    SERVICE_HELP,
    Machine,
    clock,
    full_name,
    handlers,
    of_service,
    orders,
    own_pids,
)

_ABOVE = "See above."
_STYLES = {OK: ("green",), WARNING: ("bold", "yellow"), TROUBLE: ("bold", "red"), NOT_CHECKED: ("dim",)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", default=CONFIG, help="configuration of the service (default: %(default)s)"
    )
    parser.add_argument(
        "--unit", metavar="NAME", default=DEFAULT_SERVICE, help=f"{SERVICE_HELP} (default: %(default)s)"
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="directory in which the runner keeps its state (default: the configuration's, else as for status)",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "It changes nothing on this VM, but its request for the scheduled events switches the service on where nothing "
        "else has, and it writes a value to the store of the VM's group, which it removes again. "
        "Exit codes: 0 if there is no trouble, 1 if there is, 2 for bad usage. Warnings are no trouble."
    )


def run(args: argparse.Namespace) -> int:
    """Check everything and show the results; return 1 if there is trouble."""
    checks = examine_machine(args, Machine())
    show(Page(write_result(args.json, "doctor", as_json(checks, Clocks().wall()))), checks)
    return 1 if any(check.state == TROUBLE for check in checks) else 0


def examine_machine(args: argparse.Namespace, machine: Machine) -> list[Check]:
    """Run all checks, from the machine to the runner to Azure."""
    unit = full_name(args.unit)
    setup, configuration = _configuration(args.config)
    report, runner = _runner(args.state, setup, orders(unit))
    known: dict[str, Any] = {"pid": None, "vm": None} if report is None else report["runner"]
    if setup is None:
        names = ("policy", "hooks")
        policy = [Check(name, NOT_CHECKED, "the configuration cannot be used", _ABOVE) for name in names]
    else:
        policy = [
            doctor_policy.policy(setup.policies, setup.loaded.problem),
            doctor_policy.hooks(machine, setup.policies, unit),
        ]
    directory = None if report is None else report["state_directory"]
    return [
        doctor_platform.python(),
        *of_service(machine, unit, directory),
        configuration,
        *policy,
        *runner,
        *_azure(machine, setup, known["vm"]),
        *_group(machine, setup, known["vm"]),
        *handlers(machine, _own_pids(machine, known["pid"], directory, unit), unit),
        clock(machine),
    ]


def _configuration(path: str) -> tuple[Setup | None, Check]:
    try:
        # The service has another environment; where others keep their state depends on these.
        environ = {name: os.environ[name] for name in ("HOME", "XDG_STATE_HOME", "LOCALAPPDATA") if name in os.environ}
        setup = read({**defaults(), "config": path}, environ)
    except InputError as error:
        hint = error.hint or "Correct it, or roll it out again with the role forewarn.azure.forewarn."
        return None, Check("config", TROUBLE, error.message, AS_ADMIN if is_denied(error) else hint)
    return setup, Check("config", OK, path)


def _runner(given: str | None, setup: Setup | None, orders: Orders) -> tuple[dict[str, Any] | None, list[Check]]:
    """Return what ``forewarn status`` reports, if anything, and the checks of it."""
    try:
        report = examine(open_state(given or (None if setup is None else setup.directory)), Clocks())
    except InputError as error:
        # Without a name, the state of a user's own runner was looked for.
        hidden = is_denied(error) or (given is None and not is_administrator())
        result, hint = (NOT_CHECKED, AS_ADMIN) if hidden else (TROUBLE, orders.start)
        return None, [Check("runner", result, error.message, hint), Check("journal", NOT_CHECKED, "see above", hint)]
    return report, [doctor_policy.runner(report, orders), doctor_policy.journal(report)]


def _azure(machine: Machine, setup: Setup | None, known_name: str | None) -> list[Check]:
    """Check the platform, the service and the VM's name. Nothing is asked on a machine that is not known to be a VM."""
    option = None if setup is None else setup.args.endpoint
    try:
        endpoint = resolve_endpoint(option, machine.environ)
    except InputError as error:
        return [Check("platform", TROUBLE, error.message, error.hint)]
    platform = doctor_platform.platform(machine, option, endpoint)
    if platform.state == TROUBLE:
        why = "nothing is asked where this may not be Azure"
        return [platform, *(Check(name, NOT_CHECKED, why, _ABOVE) for name in ("service", "name"))]
    given = None if setup is None else setup.args.vm_name
    version = LATEST_API_VERSION if setup is None else setup.policies.api_version
    with Client(endpoint, version, sleep=doctor_service.pause) as client:
        with waiting(client, Console(sys.stderr)):
            service, document = doctor_service.service(client, time.monotonic)
        name = doctor_service.name(client, document, given, known_name, socket.gethostname())
    return [platform, service, name]


def _group(machine: Machine, setup: Setup | None, known_name: str | None) -> list[Check]:
    """Check the store of the VM's group, if it belongs to one."""
    if setup is None or setup.group is None:
        return []
    from . import group  # here: most have none

    try:
        endpoint = (
            resolve_endpoint(setup.args.endpoint, machine.environ) if setup.group.store.identity is not None else ""
        )
    except InputError as error:
        return [Check(group.NAME, TROUBLE, error.message, error.hint)]
    name = setup.args.vm_name or known_name
    return [group.group(setup.group, bool(setup.policies.limits), name, endpoint)]


def _own_pids(machine: Machine, runner: float | None, directory: str | None, unit: str) -> set[int]:
    """Return this process, and what is known of runners: the live one, a dry run, and the service's process."""
    numbers: list[object] = [os.getpid(), runner]
    for place in () if directory is None else (directory, dry_runs.directory_beside(directory)):
        beat = heartbeat.read(place)
        numbers.append(None if beat is None else beat.fields.get("pid"))
    numbers += own_pids(machine, unit)
    return {int(str(number)) for number in numbers if str(number).isdecimal() and str(number) != "0"}


def as_json(checks: Sequence[Check], wall: float) -> dict[str, Any]:
    """Return the content of ``--json``."""
    return {
        "at": iso(wall, "milliseconds"),
        "version": __version__,
        "trouble": sum(check.state == TROUBLE for check in checks),
        "warnings": sum(check.state == WARNING for check in checks),
        "checks": [check._asdict() for check in checks],
    }


def show(page: Page, checks: Sequence[Check]) -> None:
    """Write a line for each check, what to do below each that needs it, and the sum."""
    wide = max(len(check.name) for check in checks)
    for check in checks:
        label = f"{check.state:<{len(NOT_CHECKED)}}  {check.name:<{wide}}  "
        page.hanging(label, check.text, lead_styles=_STYLES[check.state])
        if check.hint:
            page.hanging(" " * len(label), check.hint)
    counts = [f"{sum(check.state == state for check in checks)} {state}" for state in _STYLES]
    page.line()
    page.line(", ".join(counts))
