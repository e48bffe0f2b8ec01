# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group release``: frees the slots of a VM that will not do it itself."""

from __future__ import annotations

import argparse
import os
import time

from ...errors import InputError
from ...runner.groups import semaphore
from ...runner.groups.semaphore import Semaphore, Slot
from ...runner.hooks import recovery_requests
from ..output.console import one_line, write_result
from ..output.page import iso
from .common import Group, add_group_arguments, change_semaphore, open_group

LONGEST_WHY = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vm", metavar="VM", help="the VM whose slots are freed, as forewarn group status names it")
    parser.add_argument("--why", metavar="TEXT", required=True, help="why; forewarn group status shows it from then on")
    parser.add_argument("--event", metavar="EVENT_ID", help="only its slot for this event, by the beginning of its id")
    add_group_arguments(parser)
    parser.epilog = (
        "Only for a VM that is gone, or is known not to be disturbed: another VM may be disturbed at once. Exit codes: "
        "0 if slots were freed, 2 if it holds none, 3 if the store does not do it."
    )


def run(args: argparse.Namespace) -> int:
    """Free the VM's slots."""
    why = _checked_why(args.why)
    by = recovery_requests.requesting_user(os.environ)
    with open_group(args) as group:
        freed = release(group, args.vm, args.event, by, why, iso(time.time()))
    content = {"group": group.name, "vm": args.vm.lower(), "by": by, "why": why, "events": [*freed]}
    console = write_result(args.json, "group-release", content)
    for key, slot in freed.items():
        console.line(one_line(f"{args.vm} no longer holds a slot of {group.name} for {slot.what or key}."))
    console.note(f"Another VM of {group.name} may be disturbed from now on, even if {args.vm} still is.")
    return 0


def release(group: Group, vm: str, event: str | None, by: str, why: str, at: str) -> dict[str, Slot]:
    """Free the slots of a VM, or those for events whose id begins with ``event``; return them by ``Event.key``.

    ``by``, ``why`` and ``at`` are for the history. Raises InputError if it holds none, and StoreFault.
    """
    freed: dict[str, Slot] = {}
    wanted = (vm.lower(), by, why, at)

    def step(document: Semaphore | None) -> Semaphore:
        if document is None:
            hint = "Create it with: forewarn group create."
            raise InputError(f"{group.store.name} has no semaphore of group {group.name}.", hint)
        mine = {key: slot for key, slot in sorted(document.slots.items()) if vm.lower() in slot.names}
        held = {key: slot for key, slot in mine.items() if event is None or key.startswith(event.lower())}
        done = {entry.key for entry in document.releases if (entry.name, entry.by, entry.why, entry.at) == wanted}
        if freed and freed.keys() <= done:  # by an earlier attempt, whose answer was lost
            return document
        if not held:
            about = f" for an event {event}" if event else ""
            hint = "See who does: forewarn group status."
            raise InputError(f"{vm} holds no slot of group {group.name}{about}.", hint)
        freed.clear()
        freed.update(held)
        return semaphore.force_release(document, vm, by, why, at, None if event is None else held)

    change_semaphore(group, step)
    return freed


def _checked_why(text: str) -> str:
    why = " ".join(text.split())
    if not why:
        raise InputError("--why is blank.", "Say what is known of the VM: others will read it.")
    if len(why) > LONGEST_WHY:
        raise InputError(f"--why has {len(why)} characters, and {LONGEST_WHY} are the limit.")
    return why
