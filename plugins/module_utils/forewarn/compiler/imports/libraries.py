# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the libraries that policies import, and those that these import, each file once."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..paths import PolicyPath, declares_library
from ..yaml.tree import Mapping, YamlFile, YamlNode, mappings, read_bytes, text_of
from .collection_files import NAME
from .errors import ImportedFileError
from .git_files import COMMIT, URL
from .origins import CollectionOrigin, FileOrigin, GitOrigin, LocalOrigin

MOST_DEPTH = 32  # libraries that import each other in a row
PLAIN_PATH = re.compile(r"[^\x00-\x1f\x7f]+")  # as the schema of policies has it


class Import(NamedTuple):
    """One entry of ``imports``, and what it imports: None if that cannot be read, which is reported at the entry."""

    node: YamlNode
    library: Library | None


@dataclass(eq=False)
class Library:
    """A library. ``name`` is what the artifact calls it; ``imports`` are those that it imports itself."""

    name: str
    origin: FileOrigin
    file: YamlFile
    sha256: str
    imports: list[Import] = field(default_factory=list)

    def source(self) -> dict[str, str]:
        """Return the artifact's entry in ``sources``."""
        return {**self.origin.source, "sha256": self.sha256}


class Importer:
    """Reads what files import. ``given`` are the files of the command line, whose names in the artifact are fixed."""

    def __init__(self, given: Sequence[PolicyPath]) -> None:
        self._names: dict[Hashable, str] = {LocalOrigin(one.path, one.name).key: one.name for one in given}
        self._taken: dict[str, Hashable] = {name: key for key, name in self._names.items()}
        self._libraries: dict[Hashable, Library] = {}
        self._open: list[Library] = []  # those whose imports are being read
        # So that only the first import of a file waits for the network.
        self._refused: dict[Hashable, ImportedFileError] = {}
        self.missing: list[Path] = []  # files of this machine that are imported and not there

    def given(self, path: PolicyPath) -> Library:
        """Return a library of the command line, with what it imports. Raises InputError if it cannot be read."""
        origin = LocalOrigin(path.path, path.name)
        return self._libraries.get(origin.key) or self._add(origin, read_bytes(path.path))

    def imports(self, file: YamlFile, path: PolicyPath) -> list[Import]:
        """Return what a policy imports. What cannot be imported is reported at the entry, in ``file``."""
        return self._imports(file, LocalOrigin(path.path, path.name))

    def _imports(self, file: YamlFile, origin: FileOrigin) -> list[Import]:
        return [Import(entry, self._import(file, origin, entry)) for entry in mappings(file.get("imports"))]

    def _import(self, file: YamlFile, origin: FileOrigin, entry: Mapping) -> Library | None:
        place = entry.get("path") or entry
        try:
            found = _origin_of(origin, entry)
            if found is None:
                return None  # the schema has reported it
            library = self._libraries.get(found.key)
            if library is None:
                library = self._library(found)
            elif library in self._open:
                chain = [one.origin.display_name for one in self._open[self._open.index(library) :]]
                message = f"these libraries import each other: {' → '.join([*chain, library.origin.display_name])}"
                hint = "move what both need into a library of its own"
                file.add("import-cycle", message, place, hint)
                return None
        except ImportedFileError as trouble:
            file.add(trouble.code, trouble.message, place, trouble.hint)
            return None
        if library.file.root is not None and not declares_library(library.file.root):
            message = f"{library.origin.display_name} is not a library"
            hint = "a library has a line 'library: true', and no rule; a policy cannot be imported"
            file.add("not-a-library", message, place, hint)
            return None
        return library

    def _library(self, origin: FileOrigin) -> Library:
        if len(self._open) >= MOST_DEPTH:
            raise ImportedFileError(f"more than {MOST_DEPTH} libraries import each other in a row", code="too-large")
        if origin.key in self._refused:
            raise self._refused[origin.key]
        try:
            content = origin.read()
        except ImportedFileError as trouble:
            self._refused[origin.key] = trouble
            file = origin.file
            if file is not None and not os.path.exists(file):  # noqa: PTH110 - Path.exists may raise
                self.missing.append(Path(os.path.realpath(file) if os.path.islink(file) else file))  # noqa: PTH114 - likewise
            raise
        return self._add(origin, content)

    def _add(self, origin: FileOrigin, content: bytes) -> Library:
        file = YamlFile.from_bytes(origin.display_name, content)
        library = Library(self._name(origin), origin, file, hashlib.sha256(content).hexdigest())
        self._libraries[origin.key] = library
        self._open.append(library)
        if declares_library(file.root):
            library.imports = self._imports(file, origin)
        self._open.pop()
        return library

    def _name(self, origin: FileOrigin) -> str:
        """Return the name of a file in the artifact, which no other file has."""
        given = self._names.get(origin.key)
        if given is not None:
            origin.name = given
        elif origin.name in self._taken:
            origin.name = origin.display_name
        self._taken[origin.name] = origin.key
        return origin.name


def every_library(imports: Iterable[Import]) -> list[Library]:
    """Return libraries with those that they import: each once, after those that it imports."""
    found: dict[Library, None] = {}

    def add(each: Iterable[Import]) -> None:
        for one in each:
            if one.library is not None and one.library not in found:
                add(one.library.imports)
                found[one.library] = None

    add(imports)
    return list(found)


class ImportedFiles(NamedTuple):
    """``found`` are files that policies import, directly or not, each once; ``missing`` are not on this machine."""

    found: list[FileOrigin]
    missing: list[Path]


def imported_files(paths: Sequence[PolicyPath]) -> ImportedFiles:
    """Return what policies import; other mistakes are left out. Raises InputError for a policy that cannot be read."""
    importer = Importer(paths)
    imports: list[Import] = []
    for path in paths:
        content = read_bytes(path.path)
        if b"imports" in content or b"\\" in content:  # most have none; an escape could spell the key
            imports += importer.imports(YamlFile.from_bytes(str(path.path), content), path)
    return ImportedFiles([library.origin for library in every_library(imports)], importer.missing)


def _origin_of(origin: FileOrigin, entry: Mapping) -> FileOrigin | None:
    """Return the file that an entry of ``imports`` names, None if the schema refuses it. Raises ImportedFileError."""
    values = {key: text_of(entry.get(key)) or "" for key in entry.keys}
    path = values.get("path", "")
    if not PLAIN_PATH.fullmatch(path):
        return None
    kinds = values.keys() - {"path"}
    if not kinds:
        return origin.beside(path)
    if kinds == {"git", "commit"} and URL.fullmatch(values["git"]) and COMMIT.fullmatch(values["commit"]):
        return GitOrigin(values["git"], values["commit"], path)
    if kinds == {"collection"} and NAME.fullmatch(values["collection"]):
        return CollectionOrigin(values["collection"], path)
    return None
