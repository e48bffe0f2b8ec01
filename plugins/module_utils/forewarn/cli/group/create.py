# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn group create``: the semaphore of a group, once, before its first limit."""

from __future__ import annotations

import argparse

from ...runner.groups.semaphore import Semaphore
from ..output.console import write_result
from .common import Group, add_group_arguments, change_semaphore, open_group


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    parser.epilog = (
        "Without the semaphore all events with a limit are held: a store that has lost it has lost who is disturbed. "
        "Create it again only when no VM of the group is. Exit codes: 0 if it is there now, 2 for bad usage, 3 if the "
        "store does not do it."
    )


def run(args: argparse.Namespace) -> int:
    """Create the semaphore, unless there is one."""
    with open_group(args) as group:
        created = create(group)
    content = {"group": group.name, "store": group.store.name, "created": created}
    text = "has its semaphore now" if created else "had its semaphore already; nothing was changed"
    console = write_result(args.json, "group-create", content)
    console.line(f"Group {group.name} {text}: {group.store.name}.")
    return 0


def create(group: Group) -> bool:
    """Write an empty semaphore if there is none; return whether there was none. Raises StoreFault."""
    found: list[Semaphore | None] = []

    def step(document: Semaphore | None) -> Semaphore:
        found.append(document)
        return Semaphore() if document is None else document

    change_semaphore(group, step)
    return found[0] is None
