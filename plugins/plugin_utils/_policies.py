# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled policies for the control node: each set of files is compiled once, whatever the number of hosts and runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 - its usual name

from ..module_utils.forewarn import __version__
from ..module_utils.forewarn.compiler import paths as compiler_paths
from ..module_utils.forewarn.errors import InputError
from ..module_utils.forewarn.events import LATEST_API_VERSION
from ..module_utils.forewarn.policy.artifact import Artifact, load

KEPT = 32  # compiled sets of policies, the ones used last


class PoliciesRefusedError(InputError):
    """Policies have mistakes; ``findings`` are these as JSON values, and the text has them all."""

    def __init__(self, text: str, findings: Sequence[dict[str, Any]]) -> None:
        super().__init__(text)
        self.findings = list(findings)


def find_artifact(paths: Sequence[Path], api_version: str | None) -> Artifact:
    """Return what an artifact holds, or policy files compile to. Raises InputError."""
    artifacts = [path for path in paths if path.suffix == ".json"]
    if not artifacts:
        return compile_policies(paths, api_version or LATEST_API_VERSION)
    if len(paths) > 1:
        raise InputError(
            f"{artifacts[0]} is an artifact, which has all its policies in it.",
            "Give one artifact, or YAML files and directories.",
        )
    try:
        artifact = load(artifacts[0].read_bytes())
    except OSError as error:
        raise InputError(f"{artifacts[0]}: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{artifacts[0]}: {error.message}", error.hint) from error
    if api_version not in (None, artifact.api_version):
        raise InputError(
            f"{artifacts[0]} was compiled for api-version {artifact.api_version}, api_version is {api_version}.",
            "Leave api_version out, or compile the policies again for it.",
        )
    return artifact


def compile_policies(paths: Sequence[Path], api_version: str) -> Artifact:
    """Compile policy files on this machine. Raises InputError, also where a library is missing.

    Each host of a run has a process of its own. The first one compiles, while the others wait for it, and what came of
    it is kept below Ansible's home directory for the next run too: compiling takes a third of a second.
    """
    sources = _sources(paths)
    key = _key(sources, api_version)
    kept = _home() / f"{key}.json"
    of_this_run = Path(C.DEFAULT_LOCAL_TMP) / f"forewarn-{key}"
    refused = of_this_run.with_suffix(".refused")
    with contextlib.suppress(OSError, InputError):
        return load(kept.read_bytes())
    with _locked(of_this_run.with_suffix(".lock")):
        with contextlib.suppress(OSError, InputError):  # another process may have been faster
            return load(kept.read_bytes())
        with contextlib.suppress(FileNotFoundError):
            raise PoliciesRefusedError(**json.loads(refused.read_bytes()))
        # Not at the top: an artifact needs none of the compiler.
        from ..module_utils.forewarn.compiler.policyfile import PolicyError, load_policies

        try:
            artifact = load_policies(paths, api_version)
        except PolicyError as error:
            what: dict[str, Any] = {"text": str(error), "findings": [finding.as_dict() for finding in error.findings]}
            refused.write_text(json.dumps(what), encoding="utf-8")
            raise PoliciesRefusedError(**what) from error
        # A file that was changed meanwhile would be kept under the key of its former content.
        if [source["sha256"] for source in artifact.data["sources"]] == [source[2] for source in sources]:
            _keep(kept, artifact)
        return artifact


def _sources(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Return path, name and digest of the content of each policy file."""
    try:
        return [
            (str(file.path), file.name, hashlib.sha256(file.path.read_bytes()).hexdigest())
            for file in compiler_paths.find_policies(paths)
        ]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error


def _key(sources: Sequence[tuple[str, str, str]], api_version: str) -> str:
    """Return a text that changes when the policies do, or the compiler."""
    package = Path(compiler_paths.__file__).parents[1]
    compiler = []
    for room in ("compiler", "policy"):
        with os.scandir(package / room) as entries:
            states = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith((".py", ".json"))]
        compiler += sorted((room, name, state.st_mtime_ns, state.st_size) for name, state in states)
    return hashlib.sha256(json.dumps([__version__, compiler, api_version, list(sources)]).encode()).hexdigest()


def _home() -> Path:
    """Return where compiled policies are kept: this user's own directory, or else the run's."""
    directory = Path(C.ANSIBLE_HOME) / "forewarn"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = directory.stat()
    except OSError:
        return Path(C.DEFAULT_LOCAL_TMP)
    # Whoever can write there decides what is approved.
    if state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Path(C.DEFAULT_LOCAL_TMP)
    return directory


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process of this run is inside."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keep(path: Path, artifact: Artifact) -> None:
    """Keep an artifact; one that cannot be kept is compiled again."""
    part = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(artifact.data), encoding="utf-8")
        part.replace(path)
        known = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in known[KEPT:]:
            old.unlink()


def plain(value: Any, what: str) -> Any:
    """Return JSON values without Ansible's own subclasses of str and dict: the evaluator is strict about types."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}.", "Write dates, times and durations as quoted texts.") from error
