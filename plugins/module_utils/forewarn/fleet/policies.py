# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled policies for the control node: each set of files is compiled once for all hosts and runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..compiler.imports.libraries import imported_files
from ..compiler.paths import find_policies
from ..errors import InputError
from ..events import LATEST_API_VERSION
from ..policy.artifact import Artifact, load, load_file
from .cache import Cache, digest


class PoliciesRefusedError(InputError):
    """Policies have mistakes; ``findings`` has them as JSON values, and the text names them all."""

    def __init__(self, text: str, findings: Sequence[dict[str, Any]]) -> None:
        super().__init__(text)
        self.findings = list(findings)


def find_artifact(paths: Sequence[Path], api_version: str | None, cache: Cache) -> Artifact:
    """Return an artifact: loaded, or compiled from policy files. Raises InputError."""
    artifacts = [path for path in paths if path.suffix == ".json"]
    if not artifacts:
        return compile_policies(paths, api_version or LATEST_API_VERSION, cache)
    if len(paths) > 1:
        raise InputError(
            f"{artifacts[0]} is an artifact, which has all its policies in it.",
            "Give one artifact, or YAML files and directories.",
        )
    artifact = load_file(artifacts[0])
    if api_version not in (None, artifact.api_version):
        raise InputError(
            f"{artifacts[0]} was compiled for api-version {artifact.api_version}, api_version is {api_version}.",
            "Leave api_version out, or compile the policies again for it.",
        )
    return artifact


def compile_policies(paths: Sequence[Path], api_version: str, cache: Cache) -> Artifact:
    """Compile policy files, which takes a third of a second, or return what was compiled before.

    A refusal is remembered for the rest of the run. Raises InputError, also if a library is missing.
    """
    sources = _sources(paths)
    refused = cache.run / f"forewarn-refused-{digest([api_version, sources])}"

    def compiled() -> bytes:
        with suppress(FileNotFoundError):
            raise PoliciesRefusedError(**json.loads(refused.read_bytes()))
        # Not at the top: an artifact does not need the compiler.
        from ..compiler.policies import PolicyError, load_policies

        try:
            return json.dumps(load_policies(paths, api_version).data).encode()
        except PolicyError as error:
            what: dict[str, Any] = {"text": str(error), "findings": [finding.as_dict() for finding in error.findings]}
            refused.write_text(json.dumps(what), encoding="utf-8")
            raise PoliciesRefusedError(**what) from error

    def belongs(content: bytes) -> bool:
        found = json.loads(content)["sources"]
        here = [source["sha256"] for source in found if "commit" not in source]  # what is of a commit never changes
        return sorted(here) == sorted(source[2] for source in sources)

    return cache.once("policies", [api_version, sources], compiled, load, belongs)


def _sources(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Return path, name and digest of the content of each policy file, and of what they import on this machine."""
    policies = find_policies(paths)
    imported = imported_files(policies)
    files = [(file.path, file.name) for file in policies]
    files += [(path, origin.name) for origin in imported.found if (path := origin.file) is not None]
    try:
        return [
            *((str(path), name, hashlib.sha256(path.read_bytes()).hexdigest()) for path, name in files),
            *((str(path), "", "") for path in imported.missing),
        ]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
