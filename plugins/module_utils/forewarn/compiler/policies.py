# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles policy files to an artifact: each file by itself, then checks them against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import InputError
from ..events import API_VERSIONS, LATEST_API_VERSION
from ..policy.artifact import FORMAT, FORMAT_VERSION, Artifact, digest_of, load
from .findings import Finding, SourceText, blocks, render, sort_findings
from .imports.definitions import Definitions, EntryDefinitions, Imports, merge_imports
from .imports.libraries import Import, Importer, Library, every_library
from .paths import find_policies
from .policy_file.hook_systems import ANY
from .policy_file.rules import compile_file, compile_library
from .policy_file.shared_names import CompiledFile, compare_libraries, compare_policies
from .requirements import require_libraries
from .yaml.tree import YamlFile, read_bytes


class PolicyError(InputError):
    """Policies have mistakes; ``findings`` and the text have all of them."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        count = len(findings)
        lines = [line for finding in findings for line in render(finding)]
        super().__init__("\n".join([f"{count} mistake{'s' if count > 1 else ''} in the policies:", *lines]))
        self.findings = tuple(findings)


@dataclass(frozen=True)
class Compilation:
    """``artifact`` is None if a finding is an error, or if there are no policies. ``files`` are those of policies, as
    findings call them, ``libraries`` those that were checked by themselves. ``imported`` are the libraries that the
    policies import, by their names in the artifact.
    """

    artifact: dict[str, Any] | None
    findings: list[Finding] = field(default_factory=list)
    files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    imported: AnyMapping[str, SourceText] = field(default_factory=dict)


def compile_policies(
    paths: Sequence[Path], api_version: str = LATEST_API_VERSION, *, libraries: bool = False, target: str = ANY
) -> Compilation:
    """Compile policy files, and those of directories, into one artifact. The same files make the same bytes.

    ``target``, one of ``TARGETS``, is the system on which the hooks are to run; for any, only what runs nowhere is a
    finding. With ``libraries``, those among the paths are checked as well, whether or not a policy imports them. Raises
    InputError for a path that does not exist or is a library, a directory without policies, an unknown api-version, a
    missing package of Python.
    """
    require_libraries()
    if api_version not in API_VERSIONS:
        raise InputError(f"api-version {api_version} is not known", f"Use one of {', '.join(API_VERSIONS)}.")
    given = find_policies(paths, libraries=libraries)
    importer, compiler = Importer(given), _LibraryCompiler(api_version, target)
    files: list[CompiledFile] = []
    sources: list[dict[str, str]] = []
    policies: list[dict[str, Any]] = []
    imports: list[Import] = []
    alone = [importer.given(one) for one in given if one.library]
    for library in alone:
        compiler.definitions(library)
    for policy in given:
        if policy.library:
            continue
        content = read_bytes(policy.path)
        file = YamlFile.from_bytes(str(policy.path), content)
        found = importer.imports(file, policy)
        imports += found
        own = compiler.imports(file, found)
        files.append(CompiledFile(file, own, compile_file(file, api_version, own, target)))
        sources.append({"path": policy.name, "sha256": hashlib.sha256(content).hexdigest()})
        policies.append({**files[-1].policy, "source": policy.name})
    imported = every_library(imports)
    compare_policies(files)
    compare_libraries(dict.fromkeys([*alone, *imported]))
    every = dict.fromkeys([*(one.file for one in files), *(library.file for library in (*alone, *imported))])
    findings = sort_findings(
        (finding for file in every for finding in file.report.findings), [file.source.path for file in every]
    )
    result = Compilation(
        None,
        findings,
        tuple(one.path for one in files),
        tuple(library.file.source.path for library in alone),
        {library.name: library.file.source for library in imported},
    )
    if any(blocks(finding) for finding in findings) or not policies:
        return result
    artifact: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "forewarn": __version__,
        "api_version": api_version,
        "sources": [*sources, *(library.source() for library in imported)],
        "policies": policies,
    }
    artifact["digest"] = digest_of(artifact)
    load(artifact)  # never return an artifact that a runner would refuse
    return replace(result, artifact=artifact)


def load_policies(paths: Sequence[Path], api_version: str = LATEST_API_VERSION, *, target: str = ANY) -> Artifact:
    """Compile policies for use at once. Raises PolicyError if they have mistakes, InputError as above."""
    compilation = compile_policies(paths, api_version, target=target)
    if compilation.artifact is None:
        raise PolicyError([finding for finding in compilation.findings if blocks(finding)])
    return load(compilation.artifact)


class _LibraryCompiler:
    """Compiles libraries, each of them once."""

    def __init__(self, api_version: str, target: str) -> None:
        self._api_version = api_version
        self._target = target
        self._done: dict[Library, Definitions] = {}

    def definitions(self, library: Library) -> Definitions:
        """Return what a library and those that it imports define; its mistakes are reported in its file."""
        if library not in self._done:
            imports = self.imports(library.file, library.imports)
            known = imports, library.name, self._target
            self._done[library] = compile_library(library.file, self._api_version, *known)
        return self._done[library]

    def imports(self, file: YamlFile, imports: Sequence[Import]) -> Imports:
        """Return what a file imports."""
        found = (self.definitions(one.library) if one.library else Definitions(complete=False) for one in imports)
        return merge_imports(file, [EntryDefinitions(one.node, each) for one, each in zip(imports, found)])


_PLACES = ("line", "column")  # of the artifact's entries


def compiles_alike(path: str, one: str, other: str) -> bool:
    """Return whether two texts of the policy file ``path`` are the same in an artifact, but for lines and columns.

    A text with mistakes is compared by what could be compiled of it.
    """

    def compiled(text: str) -> Any:
        return _drop_places(compile_file(YamlFile.from_bytes(path, text.encode("utf-8")), LATEST_API_VERSION))

    return bool(compiled(one) == compiled(other))


def _drop_places(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _drop_places(value) for key, value in data.items() if key not in _PLACES}
    return [_drop_places(item) for item in data] if isinstance(data, (list, tuple)) else data
