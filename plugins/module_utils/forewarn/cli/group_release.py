# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group release``: frees the slots of a VM that will not do it itself."""

from __future__ import annotations

import argparse
import os
import sys
import time

from ..errors import InputError
from ..runner.groups import semaphore
from ..runner.groups.semaphore import Semaphore
from ..runner.hooks import recovery_requests
from .console import Console, write_json
from .group_common import add_config_argument, change_semaphore, open_group
from .page import iso

LONGEST_WHY = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vm", metavar="VM", help="the VM whose slots are freed, as forewarn group status names it")
    parser.add_argument("--why", metavar="TEXT", required=True, help="why; the group's history keeps it")
    parser.add_argument("--event", metavar="EVENT_ID", help="only its slot for this event, by the beginning of its id")
    add_config_argument(parser)
    parser.add_argument(
        "--group", metavar="NAME", help="a group that policies name by CEL (default: the configuration's)"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Only for a VM that is gone, or is known not to be disturbed: another VM may be disturbed at once. Exit codes: "
        "0 if slots were freed, 2 if it holds none, 3 if the store does not do it."
    )


def run(args: argparse.Namespace) -> int:
    """Free the VM's slots."""
    why = args.why.strip()[:LONGEST_WHY]
    by = recovery_requests.asker(os.environ)
    with open_group(args) as group:
        name = args.group or group.settings.name

        def step(document: Semaphore) -> Semaphore:
            keys = _held(document, args.vm, args.event)
            if not keys:
                about = f" for an event {args.event}" if args.event else ""
                hint = "See who does: forewarn group status."
                raise InputError(f"{args.vm} holds no slot of group {name}{about}.", hint)
            return semaphore.released(document, args.vm, by, why, iso(time.time()), keys)

        before = change_semaphore(group, name, step)
        keys = _held(before, args.vm, args.event)
    if args.json:
        write_json("group-release", {"group": name, "vm": args.vm.lower(), "by": by, "why": why, "events": keys})
        return 0
    console = Console(sys.stdout)
    for key in keys:
        console.line(f"{args.vm} no longer holds a slot of {name} for {before.slots[key].what or key}.")
    return 0


def _held(document: Semaphore, vm: str, event: str | None) -> list[str]:
    """Return the events for which a VM holds a slot, by ``Event.key``; ``event`` is the beginning of one."""
    held = (key for key, slot in document.slots.items() if vm.lower() in slot.names)
    return sorted(key for key in held if event is None or key.startswith(event.lower()))
