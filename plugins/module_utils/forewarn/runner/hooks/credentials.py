# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd credentials that a hook names: where they are, and a directory that has these and no others."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError
from ..state.trust import check_secret

_MOST_BYTES = 1024 * 1024  # of a credential: systemd takes no more


def names(hook: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the credentials that a hook names."""
    bearer = hook.get("bearer") or {}
    return (*hook.get("credentials", ()), *([bearer["credential"]] if "credential" in bearer else []))


def path(name: str, directory: str | None) -> str:
    """Return where a credential is, in systemd's ``directory``. Raises InputError if the runner has none at all."""
    if directory is None:
        raise InputError(
            f"there is no credential {name}: the runner has none; "
            f"add LoadCredential={name}:/path/of/the/file to its systemd unit"
        )
    return f"{directory}/{name}"


def link_credentials(wanted: Sequence[str], directory: str | None, below: str | None) -> tuple[str, tuple[bytes, ...]]:
    """Return a directory with links to the credentials ``wanted`` alone, and their contents. Raises InputError.

    It is ``below`` the memory directory of hooks, one for each set of names, and has nothing secret itself.
    """
    paths = {name: path(name, directory) for name in wanted}
    if below is None:
        raise InputError("the runner has no state directory, in which it would hand credentials to hooks")
    secrets = tuple(_content(where) for where in paths.values())
    place = f"{below}/credentials-{hashlib.sha256(' '.join(sorted(paths)).encode('utf-8')).hexdigest()[:16]}"
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103 - without pathlib, as everything at each event
        for name, where in paths.items():
            new = f"{place}/.new"
            if os.path.lexists(new):
                os.unlink(new)  # noqa: PTH108 - likewise
            os.symlink(where, new)  # noqa: PTH211 - likewise
            os.replace(new, f"{place}/{name}")  # noqa: PTH105 - likewise; another hook may be reading it
    except OSError as error:
        raise InputError(f"the credentials cannot be handed over: {place}: {error.strerror}") from error
    return place, secrets


def _content(where: str) -> bytes:
    check_secret(where)
    try:
        with open(os.open(where, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - likewise
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise InputError(f"the credential {where} cannot be read: {error.strerror}") from error
