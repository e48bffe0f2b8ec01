# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies as a revision in git has them, for ``policy diff`` and ``policy implies``.

They are read by ``git ls-tree`` and ``git cat-file``, not from an archive: Python's tarfile is safe only in later patch
releases than distributions have.
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from pathlib import Path

from ...compiler.imports.libraries import imported_files
from ...compiler.imports.origins import LocalOrigin
from ...compiler.paths import find_policies
from ...compiler.policies import load_policies
from ...errors import ForewarnError, InputError
from ...policy.artifact import Artifact

_LACKING = "'git fetch' brings what is new, in a partial clone '--refetch' the rest; 'git fsck' says what is damaged."


def load(place: str, api_version: str) -> Artifact:
    """Compile policies of a path, or of a revision in git. Raises InputError."""
    if not place.startswith("git:"):
        return load_policies([Path(place)], api_version)
    revision, colon, path = place[len("git:") :].partition(":")
    if not revision or not colon or not path or revision.startswith("-"):
        raise InputError(f"{place}: this is not git:REVISION:PATH", "For example git:HEAD~1:policies")
    with tempfile.TemporaryDirectory(prefix="forewarn-") as directory:
        checkout = _Revision(place, revision, Path(os.path.realpath(directory)))
        try:
            policies = [checkout.extracted(path)]
            checkout.extract_imports(policies)
            return load_policies(policies, api_version)
        except ForewarnError as error:
            raise InputError(checkout.renamed(error.message), error.hint) from error


class _Revision:
    """What is needed of a revision, in a directory. Paths are relative to the working directory, as for a user."""

    def __init__(self, place: str, revision: str, directory: Path) -> None:
        self._place = place
        self._revision = revision
        self._directory = directory
        prefix = _git(place, "rev-parse", "--show-prefix").decode().rstrip("\n")
        # To the root, from the working directory.
        self._up = _git(place, "rev-parse", "--show-cdup").decode().rstrip("\n")
        self._home = directory / prefix

    def extracted(self, path: str) -> Path:
        """Extract a file or a directory, and return it. Raises InputError if the revision has none."""
        found = self._home / path
        relative = os.path.relpath(found, self._directory)
        if not self._extract(relative):
            raise InputError(
                f"{self._place}: {self._revision} has no {relative}", "'git ls-tree -r' lists what it has."
            )
        return found

    def extract_imports(self, policies: list[Path]) -> None:
        """Extract what policies import by a path, and these libraries import, as far as the revision has it.

        Raises InputError for what leads out of the repository: there is no other revision of that.
        """
        asked: set[str] = set()
        while True:
            imported = imported_files(find_policies(policies))
            here = [Path(origin.key) for origin in imported.found if isinstance(origin, LocalOrigin)]
            for file in (*here, *imported.missing):
                if not file.is_relative_to(self._directory):
                    led = os.path.relpath(file, self._home)
                    message = f"{self._place}: an import leads out of the repository, to {led}"
                    raise InputError(message, "Import only files of the repository, or by git or collection.")
            missing = {os.path.relpath(file, self._directory) for file in imported.missing} - asked
            if not missing:
                return
            for path in sorted(missing):
                asked.add(path)
                self._extract(path)  # what the revision does not have is reported at its import

    def renamed(self, text: str) -> str:
        """Return a text with files named as those of the revision."""
        text = text.replace(f"{self._home}/", f"git:{self._revision}:")
        return text.replace(f"{self._directory}/", f"git:{self._revision}:{self._up}")

    def _extract(self, path: str) -> bool:
        """Write a file, or what a directory has, below the directory; return whether the revision has any.

        Raises InputError if the clone lacks the content of one.
        """
        top = ("-C", self._up or ".")
        listed = _git(self._place, *top, "ls-tree", "-r", "-z", self._revision, "--", path).split(b"\0")
        entries = [(entry.split(b" ", 2), os.fsdecode(entry.partition(b"\t")[2])) for entry in listed if entry]
        blobs = [(mode, rest.partition(b"\t")[0], name) for (mode, kind, rest), name in entries if kind == b"blob"]
        asked = b"".join(sha + b"\n" for _mode, sha, _name in blobs)
        output = io.BytesIO(_git(self._place, *top, "cat-file", "--batch", given=asked))
        for mode, sha, name in blobs:
            # <object> SP <type> SP <size> LF <content> LF, or <object> SP missing LF
            answer = output.readline().split()
            if len(answer) != 3:
                message = f"{self._place}: this clone lacks the content of {name}, which is object {sha.decode()}"
                raise InputError(message, _LACKING)
            content = output.read(int(answer[2]))
            output.readline()
            self._write(name, content, mode == b"120000")
        return bool(entries)

    def _write(self, name: str, content: bytes, link: bool) -> None:
        """Write a file, or a symbolic link to what its content names. Raises InputError if it leads out of here."""
        target = self._directory / name
        for one in (target.parent, target.parent / os.fsdecode(content) if link else target.parent):
            led = os.path.realpath(one)
            if not Path(led).is_relative_to(self._directory):
                raise InputError(f"{self._place}: {name} leads out of the repository, to {led}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if link:
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)


def _git(place: str, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", *arguments]
    try:
        # pylint: disable-next=ansible-bad-function # a command, not a module that has run_command
        done = subprocess.run(command, input=given, capture_output=True, check=False)  # noqa: S603 - git, and no shell
    except OSError as error:
        raise InputError(f"{place}: git cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        hint = "" if arguments[0] == "rev-parse" else _LACKING
        raise InputError(f"{place}: git: {done.stderr.decode(errors='replace').strip()}", hint)
    return done.stdout
