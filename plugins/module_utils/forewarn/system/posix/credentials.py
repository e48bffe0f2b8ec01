# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials of systemd: files in a directory that it makes for the service."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from ...errors import InputError
from .files import open_to_read

# How the runner gets one, for sentences.
PROVIDE = "add LoadCredential={}:/path/of/the/file to the runner's systemd unit"


def read(path: str, most_bytes: int) -> bytes:
    """Return the content of a file with a secret, at most so many bytes. Raises OSError."""
    with open(open_to_read(path), "rb") as file:  # noqa: PTH123 - a descriptor; a pipe must not block
        return file.read(most_bytes)


def protect(secret: bytes) -> bytes:  # noqa: ARG001 - Windows encrypts it
    """Raise InputError: on Linux systemd encrypts credentials, for the unit that loads them."""
    raise InputError(
        "forewarn credential encrypts secrets on Windows alone.",
        "On Linux systemd does: see systemd-creds, and LoadCredentialEncrypted= in the runner's unit.",
    )


def hand_over(paths: Mapping[str, str], below: str) -> str:
    """Return a directory with links to the files of ``paths``, by their names. Raises OSError.

    It is one for each set of names, and has nothing secret itself.
    """
    place = f"{below}/credentials-{hashlib.sha256(' '.join(sorted(paths)).encode('utf-8')).hexdigest()[:16]}"
    os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103 - without pathlib, as everything at each event
    for name, where in paths.items():
        new = f"{place}/.new"
        if os.path.lexists(new):
            os.unlink(new)  # noqa: PTH108 - likewise
        os.symlink(where, new)  # noqa: PTH211 - likewise
        os.replace(new, f"{place}/{name}")  # noqa: PTH105 - likewise; another hook may be reading it
    return place


def take_back(place: str) -> None:
    """Leave the links for the next hook."""


def remove_leftovers(below: str) -> None:
    """Leave the links of an earlier runner, too."""
