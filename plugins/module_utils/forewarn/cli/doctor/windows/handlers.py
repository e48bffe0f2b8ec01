# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: other services and scheduled tasks on this VM that may answer scheduled events.

A program that asks without naming scheduled events in its command line or its script can be missed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html import unescape
from pathlib import PureWindowsPath

from ..check import AS_ADMIN, NOT_CHECKED, OK, Check
from ..other_handlers import ADDRESS, KNOWN, NAME, URL_PATH, asks, handler_check
from .command_line import words
from .machine import SERVICES, WindowsMachine

_PROGRAM_TYPES = 0x10 | 0x20  # SERVICE_WIN32: what is not a driver
_DISABLED = 4  # SERVICE_DISABLED
_SCRIPT = re.compile(r"[A-Za-z]:\\[^\"'<>|*?;]+?\.(?:ps1|pyw?|cmd|bat|vbs|js)\b", re.IGNORECASE)
# Azure's agent and its extensions, which use the metadata for other things.
_AGENTS = re.compile(r"\\WindowsAzure\\|\\Packages\\Plugins\\|\\AzureConnectedMachineAgent\\", re.IGNORECASE)
_ACTION = re.compile(r"<Exec\b.*?</Exec>", re.DOTALL)
_ELEMENT = r"<{0}>(.*?)</{0}>"
_TASK_DISABLED = re.compile(r"<Settings>.*<Enabled>\s*false\s*</Enabled>.*</Settings>", re.DOTALL)


def handlers(machine: WindowsMachine, _own_pids: Collection[int], own_service: str) -> list[Check]:
    """Look for other handlers. Return at least one result."""
    checks = [*_by_service(machine, own_service)]
    try:
        checks += _by_task(machine)
    except OSError:
        if not checks:
            text = "not in full: scheduled tasks of other users are hidden"
            return [Check(NAME, NOT_CHECKED, text, AS_ADMIN)]
    return checks or [Check(NAME, OK, "no other service or scheduled task was found that asks for scheduled events")]


def _by_service(machine: WindowsMachine, own_service: str) -> Iterator[Check]:
    for name in machine.subkeys(SERVICES):
        settings = machine.service_settings(name)
        kind, start = settings.get("Type"), settings.get("Start")
        if not isinstance(kind, int) or not kind & _PROGRAM_TYPES or start == _DISABLED:
            continue
        if name.lower() == own_service.lower():
            continue
        # The service manager of many scripts, NSSM, has the command among the parameters.
        more = machine.values(rf"{SERVICES}\{name}\Parameters")
        command = " ".join(str(text) for text in (settings.get("ImagePath", ""), *_texts(more)))
        why = _why_command(machine, command)
        if why:
            yield handler_check(why, f"the service {name}: ", f"the service {name} may answer events: ")


def _texts(values: dict[str, object]) -> Iterator[str]:
    return (value for name, value in values.items() if name.startswith("App") and isinstance(value, str))


def _by_task(machine: WindowsMachine) -> Iterator[Check]:
    for name, xml in machine.tasks():
        if _TASK_DISABLED.search(xml):
            continue
        for action in _ACTION.findall(xml):
            program, arguments = _element(action, "Command").strip('" '), _element(action, "Arguments")
            why = _why_command(machine, f'"{program}" {arguments}')
            if why:
                yield handler_check(why, f"the task {name} runs ", f"the task {name} may answer events: ")
                break


def _element(xml: str, name: str) -> str:
    found = re.search(_ELEMENT.format(name), xml, re.DOTALL)
    return "" if found is None else unescape(found.group(1))


def _why_command(machine: WindowsMachine, command: str) -> tuple[bool, str] | None:
    """Return whether a command runs a known handler, and why it is one; None if it is none."""
    found = words(command, machine.environ)
    for word in found:
        known = KNOWN.get(PureWindowsPath(word).stem.lower())
        if known:
            return True, known
    if URL_PATH in command.lower():
        return False, "its command line names scheduled events"
    for script in _SCRIPT.findall(command):
        if asks(machine.path(script)):
            return False, f"{script} asks for scheduled events"
    if ADDRESS in command and not _AGENTS.search(command):
        return False, f"its command line names {ADDRESS}"
    return None
