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
from .errors import PATH, ImportedFileError
from .git_files import read_file, without_secrets


class FileOrigin(abc.ABC):
    """A place of a file.

    ``name`` is what the artifact calls it, wherever a command is started; ``display_name`` is what findings call it.
    Origins of one file have the same ``key``. ``file`` is None if this machine has no file of its own: that of a commit
    never changes. ``source`` is the artifact's entry: ``path``, and where that is if it is not on this machine.
    """

    name: str
    display_name: str
    key: Hashable
    file: Path | None = None

    @property
    @abc.abstractmethod
    def source(self) -> Mapping[str, str]:
        """The artifact's entry."""

    @abc.abstractmethod
    def beside(self, path: str) -> FileOrigin:
        """Return the file that a path in this one leads to. Raises ImportedFileError if it leads where it must not."""

    @abc.abstractmethod
    def read(self) -> bytes:
        """Return the content, but only the start of a huge one. Raises ImportedFileError."""


class LocalOrigin(FileOrigin):
    """A file of this machine. Paths in it may lead anywhere; its ``key`` has no links in it."""

    key: str

    def __init__(self, path: Path, name: str) -> None:
        self.file = self._path = path
        self.name = name
        self.display_name = str(path)
        self.key = os.path.realpath(path)

    @property
    def source(self) -> Mapping[str, str]:
        return {"path": self.name}

    def beside(self, path: str) -> FileOrigin:
        _refuse_absolute(path, "to this file")
        written = os.path.join(os.path.dirname(self._path), path)  # noqa: PTH118, PTH120 - Path would drop a '.'
        plain = os.path.normpath(written)
        # Behind a link to a directory '..' leads elsewhere than it seems to.
        same = os.path.realpath(plain) == os.path.realpath(written)
        name = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), path))
        return LocalOrigin(Path(plain if same else written), name)

    def read(self) -> bytes:
        return _read(self._path)


class GitOrigin(FileOrigin):
    """A file of a commit; ``path`` is relative to the root of the repository."""

    def __init__(self, url: str, commit: str, path: str) -> None:
        self._url, self._commit = url, commit
        self._path = _within(path, "repository")
        self.name = self.display_name = f"{without_secrets(url)}@{commit[:12]}:{self._path}"
        self.key = commit, self._path

    @property
    def source(self) -> Mapping[str, str]:
        return {"path": self._path, "repository": without_secrets(self._url), "commit": self._commit}

    def beside(self, path: str) -> FileOrigin:
        _refuse_absolute(path, "to this file")
        return GitOrigin(self._url, self._commit, posixpath.join(posixpath.dirname(self._path), path))

    def read(self) -> bytes:
        return read_file(self._url, self._commit, self._path)


class CollectionOrigin(FileOrigin):
    """A file of an installed collection; ``path`` is relative to its directory. Raises ImportedFileError without it."""

    def __init__(self, collection: str, path: str) -> None:
        self._collection = collection
        self._path = _within(path, "collection")
        self._home = find_collection(collection)
        self.file = self._file = self._home / self._path
        self.name = f"{collection}:{self._path}"
        self.display_name = str(self._file)
        self.key = os.path.realpath(self._file)

    @property
    def source(self) -> Mapping[str, str]:
        version = version_of(self._home)
        known = {} if version is None else {"version": version}
        return {"path": self._path, "collection": self._collection, **known}

    def beside(self, path: str) -> FileOrigin:
        _refuse_absolute(path, "to this file")
        return CollectionOrigin(self._collection, posixpath.join(posixpath.dirname(self._path), path))

    def read(self) -> bytes:
        home = os.path.realpath(self._home)
        if os.path.commonpath([home, os.path.realpath(self._file)]) != home:
            raise ImportedFileError(f"{self._file} is a link that leads out of the collection", code=PATH)
        return _read(self._file)


def _refuse_absolute(path: str, to: str) -> None:
    if path.startswith("/"):
        message = f"{path} is an absolute path, which other machines lack"
        raise ImportedFileError(message, f"write it relative {to}", PATH)


def _within(path: str, what: str) -> str:
    """Return a path without detours. Raises ImportedFileError if it is absolute or leads out."""
    _refuse_absolute(path, f"to the root of the {what}")
    plain = posixpath.normpath(path)
    if plain == ".." or plain.startswith("../"):
        raise ImportedFileError(f"{path} leads out of the {what}", f"import only files of that {what}", PATH)
    return plain


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise ImportedFileError(f"there is no file {path}") from error
    except OSError as error:
        raise ImportedFileError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):  # reading a pipe would wait for ever
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise ImportedFileError(f"{path} is {what}", "name a file")
    try:
        return read_bytes(path)
    except InputError as error:
        raise ImportedFileError(error.message) from error
