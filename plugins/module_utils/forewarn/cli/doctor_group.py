# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: whether the store of the VM's group does what the runner will ask of it."""

from __future__ import annotations

import os
import time

from ..errors import InputError
from ..runner.groups import documents, semaphore
from ..runner.groups.documents import SharedDocumentError
from ..runner.groups.settings import GroupSettings, open_store
from ..runner.groups.store import Store, StoreFault
from .doctor_check import AS_ROOT, NOT_CHECKED, OK, TROUBLE, WARNING, Check
from .group_common import credentials_directory

NAME = "group"


def group(settings: GroupSettings, limited: bool, vm_name: str | None, endpoint: str) -> Check:
    """Check that the store answers, lets this VM read and write, and has what limits need.

    ``limited``: a policy has a limit. ``vm_name`` is None while it is not known. ``endpoint``: of the VM's metadata.
    """
    try:
        store = open_store(settings.store, credentials_directory(), endpoint)
    except InputError as error:
        return Check(NAME, TROUBLE, error.message, error.hint)
    try:
        began = time.monotonic()
        _write(store, f"{documents.prefix(settings.name)}doctor-{os.urandom(6).hex()}")
        took = (time.monotonic() - began) * 1000.0 / 3.0
        found = store.read(documents.semaphore_key(settings.name)).value
        if found is not None:
            semaphore.decoded(found)
    except StoreFault as fault:
        hidden = "ermission denied" in fault.message
        return Check(NAME, NOT_CHECKED if hidden else TROUBLE, fault.message, AS_ROOT if hidden else fault.hint)
    except SharedDocumentError as error:
        return Check(NAME, TROUBLE, f"the semaphore of {settings.name} cannot be used: {error}")
    finally:
        store.close()
    text = f"{settings.name}: {store.name} answers in {took:.1f} ms, and lets this VM read and write"
    if found is None and limited:
        hint = "Once no VM of the group is disturbed: forewarn group create."
        return Check(NAME, TROUBLE, f"{text}, but has no semaphore: events with a limit are held", hint)
    if settings.members and vm_name is not None and vm_name.lower() not in settings.members:
        hint = "Add it to group_members, on all VMs of the group."
        return Check(NAME, WARNING, f"{text}, but {vm_name} is not among group_members", hint)
    return Check(NAME, OK, text)


def _write(store: Store, key: str) -> None:
    """Write and remove a value. Raises StoreFault."""
    version = store.swap(key, b"{}", "")
    if version is not None:
        store.read(key)
        store.swap(key, None, version)
