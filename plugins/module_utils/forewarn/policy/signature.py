# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody who may do so has signed a file: ``ssh-keygen -Y verify`` says it (ssh-keygen(1), OpenSSH 8.1).

Nothing here computes a signature. Content and signature are bytes: what was verified is what is used, whatever happens
to the file meanwhile.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..system import programs
from ..system.program_run import run_program
from ..system.trust import check_file

NAMESPACE = "forewarn-policy"  # a signature for another purpose is none for this one
SUFFIX = ".sig"  # of the file beside the one that is signed, as ssh-keygen names it
MAX_SIGNATURE_BYTES = 64 * 1024
_PROGRAM = "ssh-keygen"
_MAX_SIGNERS_BYTES = 256 * 1024
_LONGEST_NAME = 1000  # of a signer; Linux starts no process with an argument of more than 128 KiB
_SECONDS = 10.0
_INSTALL = "Install OpenSSH 8.1 or newer: the package openssh-client or openssh, on Windows the feature OpenSSH Client."


class Signers(NamedTuple):
    """``allowed`` is the path of an ``allowed_signers`` file, ``revoked`` that of a revocation list or None."""

    allowed: str
    revoked: str | None = None

    def check(self) -> None:
        """Raise InputError if others can change the files, or if ssh-keygen is missing or too old."""
        self._check_files()
        if not any(self._principals()):
            hint = "Write a line for each signer, such as: release@example.com ssh-ed25519 AAAA… (see ssh-keygen(1))."
            raise InputError(f"{self.allowed} allows nobody to sign.", hint)
        # Older ones do not know -Y, newer ones say that this is no signature.
        done = _ssh_keygen("-Y", "check-novalidate", "-n", NAMESPACE, "-s", os.devnull)
        if b"option" in done.stderr:
            raise InputError(f"{done.args[0]} is older than OpenSSH 8.1: it cannot verify signatures.", _INSTALL)

    def verify(
        self, content: bytes, signature: bytes, directory: str | None = None, accepted: float | None = None
    ) -> str:
        """Return who has signed the content, as the list of allowed signers names them.

        ``directory`` is for a temporary file, None where the system has its own. ``accepted`` is when the content was
        put in use, in seconds since 1970: a key that has expired since was valid then. Raises InputError that says why
        nobody has signed it.
        """
        self._check_files()
        reasons: list[str] = []
        try:
            with tempfile.TemporaryDirectory(prefix="forewarn-", dir=directory) as private:
                file = Path(private, "signature")
                file.write_bytes(signature)
                options = ["-n", NAMESPACE, "-s", str(file), "-f", os.path.abspath(self.allowed)]
                if self.revoked is not None:
                    options += ["-r", os.path.abspath(self.revoked)]
                if accepted is not None and b"valid-" in Path(self.allowed).read_bytes():  # which OpenSSH 8.7 brought
                    options.append(time.strftime("-Overify-time=%Y%m%d%H%M%S", time.localtime(accepted)))
                for principal in self._principals():
                    done = _ssh_keygen("-Y", "verify", "-I", principal, *options, given=content)
                    if done.returncode == 0:
                        return principal
                    reasons.append(_reason(done))
        except OSError as error:
            raise InputError(f"a signature cannot be verified: {error.filename}: {error.strerror}") from error
        said = next((reason for reason in reasons if not reason.startswith("Could not verify")), None)
        why = said or "it was signed with another key or for another purpose, or has been changed since"
        raise InputError(f"nobody in {self.allowed} has signed it: {why}")

    def _check_files(self) -> None:
        check_file(self.allowed, "list of allowed signers")
        if self.revoked is not None:
            check_file(self.revoked, "list of revoked signers")

    def _principals(self) -> Iterator[str]:
        """Yield what can be named as signer: a pattern is a text that it matches itself. Raises InputError."""
        try:
            content = Path(self.allowed).read_bytes()
        except OSError as error:
            raise InputError(f"{self.allowed}: {error.strerror}.") from error
        if len(content) > _MAX_SIGNERS_BYTES:
            raise InputError(f"{self.allowed} is larger than {_MAX_SIGNERS_BYTES} bytes.")
        found: dict[str, None] = {}
        for line in content.decode("utf-8", "surrogateescape").splitlines():
            listed = re.match(r'\s*(?:"([^"]*)"|([^\s#"]\S*))\s', line)
            names = (listed[1] or listed[2] or "").split(",") if listed else []
            found.update(dict.fromkeys(name for name in names if _can_be_named(name)))
        yield from found


def _can_be_named(name: str) -> bool:
    """Return whether a name is that of a signer, and can be an argument of a program."""
    return 0 < len(name) <= _LONGEST_NAME and "\0" not in name and not name.startswith("!")


def find_program() -> str:
    """Return the path of ssh-keygen. Raises InputError if there is none."""
    path = programs.find(_PROGRAM)
    if path is None:
        raise InputError(f"signatures cannot be verified: there is no {_PROGRAM} in {programs.SEARCH_PATH}.", _INSTALL)
    return path


def _ssh_keygen(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [find_program(), *arguments]
    try:
        return run_program(command, Path(os.sep), programs.BASE_ENVIRONMENT, _SECONDS, given)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{shlex.quote(command[0])} could not verify a signature: {error}") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return said[0][:200] if said else f"ssh-keygen ended with exit code {done.returncode}"
