# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in files that others can neither change nor read."""

from __future__ import annotations

from ...errors import InputError
from ...system import credentials
from ...system.trust import check_secret

_MAX_BYTES = 64 * 1024


def read_secret(path: str) -> bytes:
    """Return a file's content without white space around it: one line, or nothing.

    Raises InputError, whose text has none of the content, also for more than one line or more than 64 KiB.
    """
    check_secret(path)
    try:
        content = credentials.read(path, _MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"the secret {path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise InputError(f"the secret {path} is longer than {_MAX_BYTES} bytes")
    secret = content.strip()
    if not secret or len(secret.splitlines()) > 1:
        raise InputError(f"the secret {path} is empty, or not one line")
    return secret
