# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds policy files and their test files, and names them.

Tests lie beside what they test: ``NAME.test.yml`` for ``NAME.yml``, ``tests.yml`` for all policies of its directory,
or either in a directory ``tests`` below it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputError
from .yaml.tree import Scalar, YamlFile, YamlNode, read_bytes, value_at

_SUFFIXES = (".yml", ".yaml")
_TEST_NAME = re.compile(r"(?P<policy>.+)\.test\.ya?ml|tests\.ya?ml")
_TEST_DIRECTORY = "tests"
_ONLY_IMPORTED = "Name policies that import it; 'forewarn policy check' checks a library by itself."


@dataclass(frozen=True)
class PolicyPath:
    """A policy file, or a library. ``name`` is what the artifact calls it: it does not depend on where a command was
    started.
    """

    path: Path
    name: str
    library: bool = False


def paths_of(texts: Sequence[str]) -> list[Path]:
    """Return policies as paths. Raises InputError for an empty text, which as a path is the current directory."""
    if not all(text.strip() for text in texts):
        raise InputError("a path of policies is empty.", "Is a variable not set? The current directory is '.'.")
    return [Path(text) for text in texts]


def find_policies(paths: Sequence[Path], *, libraries: bool = False) -> list[PolicyPath]:
    """Return the policy files in the order of ``paths``, each once; those below a directory are sorted.

    With ``libraries``, those in the directories are returned as well, and one may be a path. Raises InputError for a
    path that does not exist, a directory without policies, a test file, and a library that is not asked for.
    """
    found: dict[Path, PolicyPath] = {}
    for path in paths:
        if _is_directory(path):
            below = [file for file in _files(path) if not is_test(file)]
            if not below:
                raise InputError(f"{path}: no policy files there", "Policies are *.yml and *.yaml files.")
            listed = [PolicyPath(file, file.relative_to(path).as_posix(), is_library(file)) for file in below]
            listed = [policy for policy in listed if libraries or not policy.library]
            if not listed:
                raise InputError(f"{path}: no policies there, only libraries", _ONLY_IMPORTED)
            for policy in listed:
                found.setdefault(policy.path, policy)
        elif _TEST_NAME.fullmatch(path.name):
            raise InputError(f"{path}: a file of tests, not a policy", f"Run it: forewarn policy test {path}")
        else:
            _require_file(path)
            library = is_library(path)
            if library and not libraries:
                raise InputError(f"{path}: a library, not a policy", _ONLY_IMPORTED)
            found.setdefault(path, PolicyPath(path, path.name, library))
    each = [found[path] for path in _each_once(found)]
    names = [policy.name for policy in each]
    return [one if names.count(one.name) == 1 else replace(one, name=one.path.as_posix()) for one in each]


def find_tests(paths: Sequence[Path]) -> list[Path]:
    """Return the test files in the same way; a policy file stands for its own tests.

    Raises InputError for a path that does not exist, and where there are no tests.
    """
    found: list[Path] = []
    for path in paths:
        files = _files_at(path)
        if not is_test(path) and not _is_directory(path):
            files = [file for file in _files(path.parent) if path in policies_tested_by(file)]
        tests = [file for file in files if is_test(file)]
        if not tests and is_library(path):
            raise InputError(f"{path}: a library, not a policy", _ONLY_IMPORTED)
        if not tests:
            hint = "Tests of NAME.yml are in NAME.test.yml beside it, or in tests/NAME.test.yml."
            raise InputError(f"{path}: no tests there", hint)
        found += tests
    return _each_once(found)


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files of policies and of tests in the order of ``paths``, each once, those of a directory sorted.

    Raises InputError for a path that does not exist, and a directory without such files.
    """
    found: list[Path] = []
    for path in paths:
        files = _files_at(path)
        if not files:
            raise InputError(f"{path}: no policy or test files there", "They are *.yml and *.yaml files.")
        found += files
    return _each_once(found)


def policies_tested_by(test: Path) -> list[Path]:
    """Return the policies that a test file tests, found by its name, if they exist."""
    home = test.parent.parent if test.parent.name == _TEST_DIRECTORY else test.parent
    match = _TEST_NAME.fullmatch(test.name)
    if match and match.group("policy") is None:  # tests.yml
        beside = (file for file in sorted(home.glob("[!.]*")) if file.suffix in _SUFFIXES and not file.is_dir())
        return [file for file in beside if not is_test(file) and not is_library(file)]
    name = match.group("policy") if match else test.stem
    return [file for file in (home / (name + suffix) for suffix in _SUFFIXES) if os.path.isfile(file)]  # noqa: PTH113 - as in _is_directory


def is_test(path: Path) -> bool:
    """Return whether a file is a test, not a policy."""
    return bool(_TEST_NAME.fullmatch(path.name)) or path.absolute().parent.name == _TEST_DIRECTORY


def is_library(path: Path) -> bool:
    """Return whether a file is a library. A file that cannot be read is none; its reader reports why."""
    try:
        content = read_bytes(path)
    except InputError:
        return False
    if b"library" not in content and b"\\" not in content:  # an escape could spell the key
        return False
    return declares_library(YamlFile.from_bytes(str(path), content).root)


def declares_library(root: YamlNode | None) -> bool:
    """Return whether a file declares that it is a library, with the right value or another one than false."""
    declared = value_at(root, "library")
    return declared is not None and not (isinstance(declared, Scalar) and declared.data() is False)


def _files_at(path: Path) -> list[Path]:
    """Return a file, or the YAML files below a directory. Raises InputError if it does not exist."""
    if _is_directory(path):
        return _files(path)
    _require_file(path)
    return [path]


def _files(directory: Path) -> list[Path]:
    """Return the YAML files below a directory. Links to directories are not followed; broken links count as files.

    Raises InputError if a directory cannot be read: a policy that is not found would not apply.
    """
    found: list[Path] = []
    for folder, folders, names in os.walk(directory, onerror=_raise_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in names if not name.startswith(".") and name.endswith(_SUFFIXES)]
    return sorted(found)


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """Return the first path of each file, however many links lead to it."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)  # Path.resolve raises for a link to itself
    return list(found.values())


def _is_directory(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a directory may not be entered


def _raise_unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename}: {error.strerror}", "Every directory below must be readable.") from error


def _require_file(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path}: no such file or directory") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
