# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: the Scheduled Events service, and the name under which it knows this VM."""

from __future__ import annotations

import time
from typing import Callable

from ...errors import ServiceError
from ...events import Document
from ...imds.client import Client
from ...imds.errors import HTTP, REFUSED, Fault
from ...texts import duration_text
from ..output.progress import FIRST_NOTE_SECONDS
from .check import NOT_CHECKED, OK, TROUBLE, WARNING, Check

PATIENCE_SECONDS = 20.0  # for faults that pass: somebody is waiting at a terminal
_PAUSE_SECONDS = 1.0  # at least

_REACH = (
    "Let this VM reach the address directly: look for a firewall of the system, a network policy, and an NSG rule that "
    "denies the service tag AzurePlatformIMDS."
)


def pause(seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait between two requests: for a client of ``forewarn doctor``, whose runner asks the service too."""
    sleep(max(_PAUSE_SECONDS, seconds))


def service(client: Client, clock: Callable[[], float]) -> tuple[Check, Document | None]:
    """Ask for the document once; after a passing fault again, for a while. Return the result and the document."""
    begun = clock()
    try:
        document = client.read(PATIENCE_SECONDS)
    except ServiceError as fault:
        return Check("service", TROUBLE, fault.message, _what_to_do(fault)), None
    number = len(document.events)
    listed = "nothing is scheduled" if number == 0 else f"{number} {'event is' if number == 1 else 'events are'} listed"
    text = f"{client.endpoint.url} answers, api-version {client.api_version}: {listed}"
    if document.problems:
        text = f"{client.endpoint.url} answers, but cannot be read in full: {document.problems[0]}"
        return Check("service", WARNING, text, "Report this: the service may have changed."), document
    took = clock() - begun
    if took >= FIRST_NOTE_SECONDS and number == 0:
        text += f". The answer took {duration_text(took)}: it may just have been switched on"
        return Check("service", WARNING, text, "Ask again in five minutes: events appear only then."), document
    return Check("service", OK, text), document


def _what_to_do(fault: ServiceError) -> str:
    kind = fault.kind if isinstance(fault, Fault) else ""
    if kind == REFUSED:
        return f"{fault.hint} {_REACH}".lstrip()
    if fault.hint:
        return fault.hint
    return "Ask again later." if kind == HTTP else _REACH


def name(client: Client, document: Document | None, given: str | None, known: str | None, host: str) -> Check:
    """Check the VM's name. ``given``: by the configuration; ``known``: to the runner; ``host``: the host name.

    The instance metadata is asked unless only the runner's name is of interest.
    """
    if document is None:
        return Check("name", NOT_CHECKED, "the service does not answer", "See above.")
    found, why = known, ""
    if given is not None or known is None:
        client.sleep(0.0)  # as long as ``pause`` makes of it, since the document was asked for
        try:
            found = client.read_instance(PATIENCE_SECONDS).name
        except ServiceError as error:
            found, why = None, f": {error.message}"
    used = given or found
    if used is None:
        text = f"the instance metadata has no name for this VM, so no event affects it{why}"
        return Check("name", TROUBLE, text, "Set vm_name in the configuration to the resource's name in Azure.")
    if given is not None and found is not None and given.lower() != found.lower():
        text = f"the configuration says {given}, and the instance metadata {found}"
        return Check("name", WARNING, text, "Remove vm_name from the configuration, unless the service uses it.")
    listed = [event for event in document.events if event.resources]
    mine = [event for event in listed if event.place_of(used) is not None]
    if listed and not mine and any(event.place_of(host) is not None for event in listed):
        text = f"{used} is in no listed event, but {host} is, which is this machine's host name"
        return Check("name", WARNING, text, f"If the events are this VM's, set vm_name to {host} in the configuration.")
    text = used if not listed else f"{used}, affected by {len(mine)} of {len(listed)} listed events"
    if listed and not mine:
        text += f", which are about {', '.join(listed[0].resources[:3])}"
    return Check("name", OK, text)
