# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles policy files to an artifact: each file by itself, then checks them against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import InputError
from ..events import API_VERSIONS, LATEST_API_VERSION
from ..policy.artifact import FORMAT, FORMAT_VERSION, Artifact, digest_of, load
from .findings import Finding, blocks, in_order, render
from .libraries import require_libraries
from .params import plain_type, text
from .paths import find_policies
from .rules import compile_file
from .types import Type, parse_type
from .yamltree import Mapping, Scalar, YamlFile, YamlNode, mappings, read_bytes


class PolicyError(InputError):
    """Policies have mistakes; ``findings`` and the text have all of them."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        count = len(findings)
        lines = [line for finding in findings for line in render(finding)]
        super().__init__("\n".join([f"{count} mistake{'s' if count > 1 else ''} in the policies:", *lines]))
        self.findings = tuple(findings)


@dataclass(frozen=True)
class Compilation:
    """``artifact`` is None if a finding is an error. ``files`` are the files read, as findings call them."""

    artifact: dict[str, Any] | None
    findings: list[Finding] = field(default_factory=list)
    files: tuple[str, ...] = ()


def compile_policies(paths: Sequence[Path], api_version: str = LATEST_API_VERSION) -> Compilation:
    """Compile policy files, and those of directories, into one artifact. The same files make the same bytes.

    Raises InputError for a path that does not exist, a directory without policies, an unknown api-version, a missing
    library.
    """
    require_libraries()
    if api_version not in API_VERSIONS:
        raise InputError(f"api-version {api_version} is not known", f"Use one of {', '.join(API_VERSIONS)}.")
    files: list[YamlFile] = []
    sources: list[dict[str, str]] = []
    policies: list[dict[str, Any]] = []
    for policy in find_policies(paths):
        content = read_bytes(policy.path)
        file = YamlFile.from_bytes(str(policy.path), content)
        files.append(file)
        sources.append({"path": policy.name, "sha256": hashlib.sha256(content).hexdigest()})
        policies.append({**compile_file(file, api_version), "source": policy.name})
    _compare(files)
    names = tuple(file.source.path for file in files)
    findings = in_order((finding for file in files for finding in file.report.findings), names)
    if any(blocks(finding) for finding in findings):
        return Compilation(None, findings, names)
    artifact: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "forewarn": __version__,
        "api_version": api_version,
        "sources": sources,
        "policies": policies,
    }
    artifact["digest"] = digest_of(artifact)
    load(artifact)  # never return an artifact that a runner would refuse
    return Compilation(artifact, findings, names)


def load_policies(paths: Sequence[Path], api_version: str = LATEST_API_VERSION) -> Artifact:
    """Compile policies for use at once. Raises PolicyError if they have mistakes, InputError as above."""
    compilation = compile_policies(paths, api_version)
    if compilation.artifact is None:
        raise PolicyError([finding for finding in compilation.findings if blocks(finding)])
    return load(compilation.artifact)


def _compare(files: Sequence[YamlFile]) -> None:
    """Report conflicts between policies: the same name, or a parameter with two types."""
    names: dict[str, str] = {}
    params: dict[str, tuple[Type, str]] = {}
    for file in files:
        if not isinstance(file.root, Mapping):
            continue
        node = file.root.get("name")
        name = text(node)
        if node is not None and name is not None:
            if name in names:
                message = f"a policy called '{name}' is in {names[name]} already"
                file.add("duplicate-policy", message, node, "give it another name")
            names.setdefault(name, file.source.path)
        for param, kind, place in _params(file.root.get("params")):
            known, where = params.setdefault(param, (kind, file.source.path))
            if known != kind and where != file.source.path:
                message = f"parameter '{param}' is of type {known} in {where}, and one value is given for both"
                file.add("param-conflict", message, place, "give it the same type or another name")


def _params(node: YamlNode | None) -> list[tuple[str, Type, YamlNode]]:
    result: list[tuple[str, Type, YamlNode]] = []
    for item in mappings(node):
        place, name = item.get("type"), text(item.get("name"))
        if name is None or not isinstance(place, Scalar):
            continue
        try:
            result.append((name, parse_type(plain_type(place.text)), place))
        except ValueError:  # the schema has reported it
            continue
    return result
