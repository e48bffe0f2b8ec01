# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: by what it knows other programs that may answer scheduled events.

What is known by name is trouble: it approves events that the policies hold. Everything else that asks for scheduled
events, or talks to the metadata address, *may* do so, and is a warning: identity tokens and instance metadata come from
the same address.
"""

from __future__ import annotations

from pathlib import Path

from ...imds.endpoint import DEFAULT_ENDPOINT
from .check import TROUBLE, WARNING, Check

NAME = "handlers"
ADDRESS = DEFAULT_ENDPOINT.partition("://")[2]
KNOWN = {
    "azure-scheduledevents-manager": "webdevops' manager, which drains Kubernetes nodes and can approve events",
    "azure-events-az": "Pacemaker's agent for scheduled events, which stops resources and approves events",
    "azure-events": "Pacemaker's older agent for scheduled events, which stops resources and approves events",
}
RESOURCE = "scheduledevents"  # of the service's URL; every script that asks has it somewhere
URL_PATH = f"metadata/{RESOURCE}"  # in a command line: a person who reads the log of a handler names the handler, too
STOP = "Two programs that answer the same events undo each other's decisions. Stop and disable this one, or the runner."
_LOOK = "Find out whether it approves events: only one program on a VM should."
_MOST_BYTES = 1024 * 1024


def handler_check(why: tuple[bool, str], known: str, unknown: str) -> Check:
    """Return the result for a known handler, which ``known`` introduces, or for another one."""
    is_known, text = why
    return Check(NAME, TROUBLE, known + text, STOP) if is_known else may(unknown + text)


def may(text: str) -> Check:
    """Return the result for a program of which nobody knows whether it answers events."""
    return Check(NAME, WARNING, text, _LOOK)


def asks(path: Path) -> bool:
    """Return whether a script asks for scheduled events. A program in binary form is not searched."""
    try:
        if not path.is_file():  # to open a device can have effects, and a pipe can block
            return False
        with path.open("rb") as file:
            begin = file.read(1024)
            content = b"" if b"\0" in begin else begin + file.read(_MOST_BYTES)
    except OSError:
        return False
    return RESOURCE.encode() in content.lower()
