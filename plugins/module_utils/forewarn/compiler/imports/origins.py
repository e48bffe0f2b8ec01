# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a policy or a library is: a file of this machine, of a commit in git, or of an Ansible collection.

What a file imports by a path alone is found from there: each origin knows the files beside it.
"""

from __future__ import annotations

import abc
import os
import posixpath
import stat
from collections.abc import Hashable, Mapping
from pathlib import Path

from ...errors import InputError
from ..yaml.tree import read_bytes
from .collection_files import find_collection, version_of
from .errors import PATH, ImportTrouble
from .git_files import read_file, without_secrets


class FileOrigin(abc.ABC):
    """A place of a file. ``name`` is what the artifact calls it, which does not depend on where a command is started;
    ``shown`` is what findings call it. Origins of one file have the same ``key``.
    """

    name: str
    shown: str
    key: Hashable

    @abc.abstractmethod
    def beside(self, path: str) -> FileOrigin:
        """Return the file that a path in this one leads to. Raises ImportTrouble if it leads where it must not."""

    @abc.abstractmethod
    def read(self) -> bytes:
        """Return the content, but only the start of a huge one. Raises ImportTrouble."""

    @abc.abstractmethod
    def source(self) -> Mapping[str, str]:
        """Return what the artifact says of the file's place: ``path``, and where that is not on this machine."""

    def on_this_machine(self) -> Path | None:
        """Return the file, or None if it has none of its own here: that of a commit never changes."""
        return None


class LocalOrigin(FileOrigin):
    """A file of this machine."""

    key: str  # without links

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.shown = str(path)
        self.key = os.path.realpath(path)

    def beside(self, path: str) -> FileOrigin:
        """Return a file by a relative path, which may lead anywhere."""
        _relative(path, "to this file")
        written = os.path.join(os.path.dirname(self.path), path)  # noqa: PTH118, PTH120 - Path would drop a '.'
        plain = os.path.normpath(written)
        # Behind a link to a directory '..' leads elsewhere than it seems to.
        same = os.path.realpath(plain) == os.path.realpath(written)
        name = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), path))
        return LocalOrigin(Path(plain if same else written), name)

    def read(self) -> bytes:
        """Return the content."""
        return _read(self.path)

    def source(self) -> Mapping[str, str]:
        """Return the name as path."""
        return {"path": self.name}

    def on_this_machine(self) -> Path | None:
        """Return the file."""
        return self.path


class GitOrigin(FileOrigin):
    """A file of a commit; ``path`` is relative to the root of the repository."""

    def __init__(self, url: str, commit: str, path: str) -> None:
        self._url, self._commit = url, commit
        self._path = _within(path, "repository")
        self.name = self.shown = f"{without_secrets(url)}@{commit[:12]}:{self._path}"
        self.key = commit, self._path

    def beside(self, path: str) -> FileOrigin:
        """Return a file of the same commit."""
        _relative(path, "to this file")
        return GitOrigin(self._url, self._commit, posixpath.join(posixpath.dirname(self._path), path))

    def read(self) -> bytes:
        """Return the content; fetch the commit if it is not kept on this machine."""
        return read_file(self._url, self._commit, self._path)

    def source(self) -> Mapping[str, str]:
        """Return the path, the repository and the commit."""
        return {"path": self._path, "repository": without_secrets(self._url), "commit": self._commit}


class CollectionOrigin(FileOrigin):
    """A file of an installed collection; ``path`` is relative to its directory. Raises ImportTrouble without it."""

    def __init__(self, collection: str, path: str) -> None:
        self._collection = collection
        self._path = _within(path, "collection")
        self._home = find_collection(collection)
        self._file = self._home / self._path
        self.name = f"{collection}:{self._path}"
        self.shown = str(self._file)
        self.key = os.path.realpath(self._file)

    def beside(self, path: str) -> FileOrigin:
        """Return a file of the same collection."""
        _relative(path, "to this file")
        return CollectionOrigin(self._collection, posixpath.join(posixpath.dirname(self._path), path))

    def read(self) -> bytes:
        """Return the content."""
        home = os.path.realpath(self._home)
        if os.path.commonpath([home, os.path.realpath(self._file)]) != home:
            raise ImportTrouble(f"{self._file} is a link that leads out of the collection", code=PATH)
        return _read(self._file)

    def source(self) -> Mapping[str, str]:
        """Return the path, the collection and its version, if that is known."""
        version = version_of(self._home)
        known = {} if version is None else {"version": version}
        return {"path": self._path, "collection": self._collection, **known}

    def on_this_machine(self) -> Path | None:
        """Return the file."""
        return self._file


def _relative(path: str, to: str) -> None:
    if path.startswith("/"):
        raise ImportTrouble(f"{path} is an absolute path, which other machines lack", f"write it relative {to}", PATH)


def _within(path: str, what: str) -> str:
    """Return a path without detours. Raises ImportTrouble if it is absolute or leads out."""
    _relative(path, f"to the root of the {what}")
    plain = posixpath.normpath(path)
    if plain == ".." or plain.startswith("../"):
        raise ImportTrouble(f"{path} leads out of the {what}", f"import only files of that {what}", PATH)
    return plain


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise ImportTrouble(f"there is no file {path}") from error
    except OSError as error:
        raise ImportTrouble(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):  # reading a pipe would wait for ever
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise ImportTrouble(f"{path} is {what}", "name a file")
    try:
        return read_bytes(path)
    except InputError as error:
        raise ImportTrouble(error.message) from error
