# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands ``forewarn group …`` share: the group of a configuration, and its store."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError, ServiceError
from ...imds.endpoint import resolve_endpoint
from ...runner.groups import documents, semaphore, transaction
from ...runner.groups.documents import SharedDocumentError
from ...runner.groups.semaphore import Semaphore
from ...runner.groups.settings import GroupSettings, StoreSettings, open_store
from ...runner.groups.store import Store, StoreFault
from ...system import trust
from ...system.account import ADMINISTRATOR
from ...system.paths import CONFIG, CREDENTIALS
from ..run.config import read_config
from ..run.group import OPTIONS, read_group

_PATIENCE_SECONDS = 15.0  # with a store that does not say whether it has written
_PAUSE_SECONDS = 0.05
_UNSURE = "It may have been done all the same: see forewarn group status."


class Group(NamedTuple):
    """The group that a command is about, and the open store. ``settings`` are those of the configuration's group."""

    name: str
    settings: GroupSettings
    store: Store


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``, ``--group`` and ``--json``."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=CONFIG,
        help="configuration of the runner, or a JSON file with group and group_store alone (default: %(default)s)",
    )
    parser.add_argument(
        "--group", metavar="NAME", help="a group that policies name by CEL (default: the configuration's)"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


@contextmanager
def open_group(args: argparse.Namespace) -> Iterator[Group]:
    """Open the store that a configuration names, and close it. Raises InputError, and ServiceError for its faults."""
    options = _options(args.config)
    settings = read_group(argparse.Namespace(**options))
    if settings is None:
        raise InputError(f"{args.config} names no group.", f"Set {', '.join(OPTIONS)}: see docs/groups.md.")
    name = args.group or settings.name
    if not documents.is_group(name):  # it becomes part of keys
        raise InputError(f"--group is {name!r}.", f"The name of a group has {documents.GROUP_WORDS}.")
    endpoint = resolve_endpoint(options.get("endpoint"), os.environ) if settings.store.identity is not None else ""
    store = open_store(settings.store, credentials_directory(settings.store), endpoint)
    try:
        yield Group(name, settings, store)
    except StoreFault as fault:
        raise ServiceError(fault.message, _UNSURE if fault.unsure else fault.hint) from fault
    except SharedDocumentError as error:
        raise ServiceError(f"The semaphore of {name} in {store.name} cannot be used: {error}.") from error
    finally:
        store.close()


def _options(path: str) -> dict[str, Any]:
    """Return the options of a file that nobody else can change: it says where secrets are sent."""
    try:
        trust.check_file(path, "configuration")
        return read_config(path).options
    except trust.UntrustedError:
        raise
    except InputError as error:
        hint = f"Run this as {ADMINISTRATOR} on a VM, or name a JSON file with group and group_store: --config FILE."
        raise InputError(error.message, error.hint or hint) from error


def credentials_directory(store: StoreSettings) -> str | None:
    """Return the directory that has the credential of the store, None if it needs none. Raises InputError."""
    given = os.environ.get("CREDENTIALS_DIRECTORY")
    sources = (source for source in (store.password, store.sas) if source is not None)
    name = next((source.credential for source in sources if source.credential is not None), None)
    if given or name is None:
        return given or None
    for directory in CREDENTIALS:
        if os.access(Path(directory, name), os.R_OK):
            return directory
    hint = (
        f"Run this as {ADMINISTRATOR} on a VM whose runner runs. Elsewhere set CREDENTIALS_DIRECTORY to a directory "
        f"that has the file {name}."
    )
    raise InputError(f"the store needs the credential {name}, which cannot be read here.", hint)


def read_semaphore(group: Group) -> Semaphore | None:
    """Return the semaphore of the group, None if there is none. Raises StoreFault and SharedDocumentError."""
    found = group.store.read(documents.semaphore_key(group.name)).value
    return None if found is None else semaphore.decode(found)


def change_semaphore(group: Group, step: Callable[[Semaphore | None], Semaphore]) -> None:
    """Replace the group's semaphore by the result of ``step``, which gets None if the group has no semaphore yet.

    An equal result is not written. Other VMs may change the semaphore meanwhile, and an answer may be lost, so ``step``
    may be called several times, also with its own result. Raises StoreFault, and what ``step`` raises.
    """
    key = documents.semaphore_key(group.name)

    def decoded(content: bytes | None) -> Semaphore | None:
        return None if content is None else semaphore.decode(content)

    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            transaction.change(group.store, key, decoded, semaphore.encode, step, time.monotonic, _pause)
            return
        except StoreFault as fault:
            if not fault.unsure or fault.lasting or time.monotonic() >= until:
                raise
        _pause()


def _pause(_attempt: int = 0) -> None:
    time.sleep(_PAUSE_SECONDS)  # before the store is asked again
