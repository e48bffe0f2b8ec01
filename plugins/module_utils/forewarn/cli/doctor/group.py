# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: whether the store of the VM's group does what the runner will ask of it."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from ...errors import InputError
from ...imds.errors import GARBAGE
from ...runner.groups import documents, semaphore
from ...runner.groups.documents import SharedDocumentError
from ...runner.groups.settings import GroupSettings, open_store
from ...runner.groups.store import Store, StoreFault
from ...system.account import is_administrator
from ..group.common import credentials_directory
from .check import AS_ADMIN, NOT_CHECKED, OK, TROUBLE, WARNING, Check, is_denied

NAME = "group"
_PROBE = b"{}"


def group(settings: GroupSettings, limited: bool, vm_name: str | None, endpoint: str) -> Check:
    """Check that the store answers, lets this VM read and write, and has what limits need.

    ``limited``: a policy has a limit. ``vm_name`` is None while it is not known. ``endpoint``: of the VM's metadata.
    """
    as_root = is_administrator()
    try:
        store = open_store(settings.store, credentials_directory(settings.store), endpoint)
    except InputError as error:
        return Check(NAME, TROUBLE if as_root else NOT_CHECKED, error.message, error.hint if as_root else AS_ADMIN)
    try:
        seconds = _try(store, f"{documents.prefix(settings.name)}doctor-{os.urandom(6).hex()}")
        found = store.read(documents.semaphore_key(settings.name)).value
        if found is not None:
            semaphore.decode(found)
    except StoreFault as fault:
        hidden = not as_root and is_denied(fault)  # of a file
        return Check(NAME, NOT_CHECKED if hidden else TROUBLE, fault.message, AS_ADMIN if hidden else fault.hint)
    except SharedDocumentError as error:
        hint = "Find out who has written it; Forewarn never replaces it."
        return Check(NAME, TROUBLE, f"the semaphore of {settings.name} cannot be used: {error}", hint)
    finally:
        store.close()
    return _judged(settings, limited, vm_name, f"{store.name} answers in {seconds * 1000.0:.1f} ms", found is not None)


def _judged(settings: GroupSettings, limited: bool, vm_name: str | None, said: str, has_semaphore: bool) -> Check:
    text = f"{settings.name}: {said}, and lets this VM read and write"
    if limited and not has_semaphore:
        hint = "Once no VM of the group is disturbed: forewarn group create."
        return Check(NAME, TROUBLE, f"{text}, but has no semaphore: events with a limit are held", hint)
    if settings.members and vm_name is not None and vm_name.lower() not in settings.members:
        hint = "Add it to group_members, on all VMs of the group."
        return Check(NAME, WARNING, f"{text}, but {vm_name} is not among group_members", hint)
    return Check(NAME, OK, text)


def _try(store: Store, key: str) -> float:
    """Write, read and remove a value; return the seconds of the read. Leaves nothing behind. Raises StoreFault."""
    try:
        store.swap(key, _PROBE, "")
        began = time.monotonic()
        found = store.read(key)
        seconds = time.monotonic() - began
        if found.value != _PROBE:
            raise StoreFault(f"{store.name} does not have what was just written to it.", kind=GARBAGE)
        store.swap(key, None, found.version)
    except StoreFault:
        with suppress(StoreFault):  # the first fault says more
            left = store.read(key)
            if left.value is not None:
                store.swap(key, None, left.version)
        raise
    return seconds
