# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs artifacts with ``ssh-keygen -Y sign``, by a key in a file, in an agent or in hardware."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..policy.signature import NAMESPACE, find_program
from . import sources


def sign(content: bytes, key: str) -> bytes:
    """Return the signature of a file's content, in ASCII armor.

    ``key`` is what ``ssh-keygen -f`` takes: a private key, or a public one whose other half an agent or a security key
    has. ssh-keygen asks for a passphrase, or for a touch, at the terminal. Raises InputError.
    """
    if not Path(key).is_file():
        raise InputError(f"{key}: there is no such key.", "Name a private key, or a public one that an agent has.")
    command = [find_program(), "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE]
    # Its standard error is the user's: it asks there to touch a security key, and says what is wrong.
    # pylint: disable-next=ansible-bad-function # the control node, not a module that has run_command
    done = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=False)  # noqa: S603 - no shell
    if done.returncode != 0:
        hint = "ssh-keygen has said why. ssh-add -l lists the keys that an agent has."
        raise InputError(f"{key}: nothing was signed.", hint)
    return done.stdout


def public_key(key: str) -> str:
    """Return the content of the public key that belongs to ``key``, or its path if that cannot be found."""
    for path in (Path(f"{key}.pub"), Path(key)):
        if path.suffix == ".pub" and path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return key


def serial_of(paths: Sequence[Path]) -> int:
    """Return the serial of policies in these files, in seconds since 1970.

    It is the time of their commit, or when the latest was changed if they are not all in one. Raises InputError.
    """
    source = sources.local([os.path.abspath(path) for path in paths])
    if source["commit"] is not None and not source["modified"]:
        committed = sources.commit_time(Path(paths[0]).absolute(), source["commit"])
        if committed is not None:
            return committed
    files = [file for path in paths for file in (path, *(path.rglob("*") if path.is_dir() else ()))]
    try:
        return max(int(file.stat().st_mtime) for file in files)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}.") from error
