# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The group in the configuration of ``forewarn run``: its members, its store, and what policies need of them."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from itertools import combinations
from typing import TYPE_CHECKING

from ...errors import InputError
from ...policy.engine import PolicySet
from ...system import trust

if TYPE_CHECKING:
    from ...runner.groups.settings import GroupSettings

OPTIONS = ("group", "group_members", "group_store")


def read_group(args: argparse.Namespace) -> GroupSettings | None:
    """Return the group that the options name, None if they name none. Raises InputError."""
    name, members, store = (getattr(args, option, None) for option in OPTIONS)
    if name is None and members is None and store is None:
        return None
    if members is not None and not all(isinstance(member, str) and member for member in members):
        raise InputError("group_members is not a list of names of VMs.")
    from ...runner.groups.settings import group_settings  # here: most have none, and a start must be fast

    try:
        settings = group_settings(name, members, store)
    except InputError as error:
        raise InputError(f"the group of this VM: {error.message}", error.hint) from error
    files = settings.store
    for path in (files.ca_file, files.certificate_file):
        if path is not None:
            trust.check_file(path, "certificate")
    if files.key_file is not None:
        trust.check_secret(files.key_file)
    return settings


def check_credential(group: GroupSettings | None, directory: str | None, promised: Collection[str]) -> None:
    """Raise InputError if the store needs a credential that the runner would not have: it would not start.

    ``directory`` is that of this process's credentials, None if it has none; those ``promised`` the runner will have.
    """
    if group is None:
        return
    for source in (group.store.password, group.store.sas):
        if source is not None and source.credential not in promised:
            source.path(directory)


def doubtful_limits(policies: PolicySet) -> list[str]:
    """Return a sentence if two policies limit different groups: an event to which both limits apply gets no slot."""
    found = [
        (rule, " ".join(limit["group"]["source"].split()) if "group" in limit else "the group of the VM")
        for rule, limit in policies.limits
    ]
    for (rule, group), (other, others) in combinations(found, 2):
        if group != others and rule.partition("/")[0] != other.partition("/")[0]:
            return [
                f"rules {rule} and {other} limit different groups, {group} and {others}: an event to which both apply "
                "waits for NotBefore, unapproved. forewarn policy verify says whether there is one"
            ]
    return []


def check_limits(policies: PolicySet, group: GroupSettings | None) -> None:
    """Raise InputError for a limit that nobody could keep: its VMs would all prepare at once."""
    for rule, limit in policies.limits:
        if group is None:
            raise InputError(
                f"rule {rule} has a limit, and this VM has no group_store in which VMs could count each other.",
                "Set group and group_store (see docs/groups.md), or leave 'limit' out of its policies.",
            )
        if limit.get("percent") is not None and "group" in limit:
            raise InputError(
                f"rule {rule} limits a share of a group that CEL names, and nobody knows how many VMs that has.",
                "Limit it to a number.",
            )
        if limit.get("percent") is not None and not group.members:
            raise InputError(
                f"rule {rule} limits a share of group {group.name}, and nobody knows how many VMs that has.",
                "Set group_members, or limit it to a number.",
            )
