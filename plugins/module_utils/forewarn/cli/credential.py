# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn credential``: encrypt a secret for the runner of this VM. On Windows alone: elsewhere systemd does it."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from ..system.credentials import protect, read
from ..system.files import create_private_directory, write_in_directory
from ..system.paths import CREDENTIALS

_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}", re.ASCII)
_MOST_BYTES = 1024 * 1024  # as systemd


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("name", metavar="NAME", help="name of the credential, as hooks and settings have it")
    parser.add_argument(
        "--directory", metavar="DIR", default=CREDENTIALS[-1], help="where the credentials are (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Read the secret from standard input and write its file, unless it has that secret. Raises InputError.

    It says which of both: a rollout restarts the service after a change.
    """
    if not _NAME.fullmatch(args.name):
        raise InputError(f"{args.name!r} is no name of a credential.", "Use letters, digits, '.', '_' and '-'.")
    if sys.stdin.isatty():
        raise InputError("the secret is read from standard input.", f"Run: type FILE | forewarn credential {args.name}")
    secret = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if not secret or len(secret) > _MOST_BYTES:
        what = "empty" if not secret else f"longer than {_MOST_BYTES} bytes"
        raise InputError(f"the secret on standard input is {what}.")
    directory = Path(args.directory)
    encrypted = protect(secret)
    with suppress(OSError):  # there is none, or it is damaged
        if read(str(directory / args.name), _MOST_BYTES + 1) == secret:
            sys.stdout.write("unchanged\n")
            return 0
    try:
        for path in (*reversed(directory.parents), directory):
            if not path.exists():
                create_private_directory(path)
        write_in_directory(directory, args.name, encrypted)
    except OSError as error:
        hint = "Run this as an administrator." if isinstance(error, PermissionError) else ""
        raise InputError(f"{directory / args.name} cannot be written: {error.strerror}.", hint) from error
    sys.stdout.write("written\n")
    return 0
