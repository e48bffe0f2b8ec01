# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The credentials that a hook names: where they are, and a directory that has these and no others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError
from ...system import credentials
from ...system.trust import check_secret

_MOST_BYTES = 1024 * 1024  # of a credential: systemd takes no more


def names(hook: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the credentials that a hook names."""
    bearer = hook.get("bearer") or {}
    return (*hook.get("credentials", ()), *([bearer["credential"]] if "credential" in bearer else []))


def path(name: str, directory: str | None) -> str:
    """Return where a credential is, in the runner's ``directory``. Raises InputError if the runner has none at all."""
    if directory is None:
        raise InputError(f"there is no credential {name}: the runner has none; {credentials.PROVIDE.format(name)}")
    return f"{directory}{os.sep}{name}"


def hand_over(wanted: Sequence[str], directory: str | None, below: str | None) -> tuple[str, tuple[bytes, ...]]:
    """Return a directory that has the credentials ``wanted`` alone, and their contents. Raises InputError.

    It is ``below`` the memory directory of hooks. When the hook has ended, ``system.credentials.take_back`` gets it.
    """
    paths = {name: path(name, directory) for name in wanted}
    if below is None:
        raise InputError("the runner has no state directory, in which it would hand credentials to hooks")
    secrets = tuple(_content(where) for where in paths.values())
    try:
        return credentials.hand_over(paths, below), secrets
    except OSError as error:
        raise InputError(f"the credentials cannot be handed over: {below}: {error.strerror}") from error


def _content(where: str) -> bytes:
    check_secret(where)
    try:
        return credentials.read(where, _MOST_BYTES)
    except OSError as error:
        raise InputError(f"the credential {where} cannot be read: {error.strerror}") from error
