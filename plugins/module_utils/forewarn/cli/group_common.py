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
from typing import NamedTuple

from ..errors import InputError, ServiceError
from ..imds.endpoint import resolve
from ..runner.groups import documents, semaphore
from ..runner.groups.documents import SharedDocumentError
from ..runner.groups.semaphore import Semaphore
from ..runner.groups.settings import GroupSettings, open_store
from ..runner.groups.store import Store, StoreFault
from .run_config import read_config
from .run_group import OPTIONS, read_group

DEFAULT_CONFIG = "/etc/forewarn/config.json"
# Where the secrets are if this command has none of its own: what systemd gives the service, and what the role installs.
_CREDENTIALS = ("/run/credentials/forewarn.service", "/etc/forewarn/credentials")
MOST_ATTEMPTS = 20
_PAUSE_SECONDS = 0.05


class Group(NamedTuple):
    """A group, and its open store."""

    settings: GroupSettings
    store: Store


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=DEFAULT_CONFIG,
        help="configuration that has the group and its store (default: %(default)s)",
    )


@contextmanager
def open_group(args: argparse.Namespace) -> Iterator[Group]:
    """Open the store that a configuration names, and close it. Raises InputError, and ServiceError for its faults."""
    options = read_config(args.config).options
    settings = read_group(argparse.Namespace(**options))
    if settings is None:
        raise InputError(f"{args.config} names no group.", f"Set {', '.join(OPTIONS)}: see docs/groups.md.")
    endpoint = resolve(options.get("endpoint"), os.environ) if settings.store.identity is not None else ""
    store = open_store(settings.store, credentials_directory(), endpoint)
    try:
        yield Group(settings, store)
    except StoreFault as fault:
        raise ServiceError(fault.message, fault.hint) from fault
    except SharedDocumentError as error:
        raise ServiceError(f"What {store.name} has cannot be used: {error}.") from error
    finally:
        store.close()


def credentials_directory() -> str | None:
    """Return the directory that has the secrets, None if there is none."""
    given = os.environ.get("CREDENTIALS_DIRECTORY")
    return given or next((path for path in _CREDENTIALS if Path(path).is_dir()), None)


def read_semaphore(group: Group, name: str) -> tuple[Semaphore | None, str]:
    """Return the semaphore of a group with its version, None if there is none. Raises StoreFault."""
    found = group.store.read(documents.semaphore_key(name))
    return None if found.value is None else semaphore.decoded(found.value), found.version


def change_semaphore(group: Group, name: str, step: Callable[[Semaphore], Semaphore]) -> Semaphore:
    """Change a group's semaphore, however often others are faster; return what it was before.

    Raises StoreFault, and what ``step`` raises. A write whose answer was lost is not repeated blindly.
    """
    unsure: tuple[Semaphore, Semaphore] | None = None  # before a write whose answer was lost, and after it
    for _attempt in range(MOST_ATTEMPTS):
        document, version = read_semaphore(group, name)
        if unsure is not None and document == unsure[1]:
            return unsure[0]
        if document is None:
            raise InputError(
                f"{group.store.name} has no semaphore of group {name}.", "Create it with: forewarn group create."
            )
        after = step(document)
        if after == document:
            return document
        try:
            written = group.store.swap(documents.semaphore_key(name), semaphore.encoded(after), version)
        except StoreFault as fault:
            if not fault.unsure or unsure is not None:
                raise
            unsure = document, after
            continue
        if written is not None:
            return document
        time.sleep(_PAUSE_SECONDS)
    raise ServiceError(f"Others change the semaphore of {name} all the time.", "Try it again.")
