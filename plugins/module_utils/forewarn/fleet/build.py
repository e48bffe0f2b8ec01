# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds what a VM gets: the runner and its policies, compiled, tested and proven on the control node for all hosts.

The command ``forewarn``, in another process, handles the policies: an operator sees the same messages as there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import bundle
from ..atomic_file import replace_file
from ..compiler.imports.libraries import imported_files
from ..compiler.imports.origins import FileOrigin, LocalOrigin
from ..compiler.paths import find_policies
from ..errors import ForewarnError, InputError
from ..policy.artifact import load, with_serial, with_source
from ..policy.signature import SUFFIX
from . import signing, sources
from .cache import Cache, digest, file_digest
from .commands import run, said
from .hooks import hook_files, kinds_of

_PACKAGE = Path(__file__).parents[1]


def build(
    paths: Sequence[str],
    git: str,
    ref: str,
    api_version: str,
    hooks: Sequence[str],
    cache: Cache,
    reference: str = "",
    target: str = "any",
    signing_key: str = "",
) -> dict[str, Any]:
    """Return what this run has built from the same inputs, or build it now: part of a result of ``runner_build``.

    ``paths`` of policies and ``hooks`` are absolute, or relative to the root of the repository ``git``. ``reference``,
    if any, is the absolute path of policies that must approve whatever these approve. ``target`` is the system of the
    VMs (``compiler.policy_file.hook_systems.TARGETS``). ``signing_key``, if any, signs the artifact. Besides
    the paths of what was built, the result has ``objections``, reasons against rolling it out, and ``remarks``. Raises
    InputError.

    Each host has its own process. What the first has built, the others take from the run's private directory. So a
    branch that moves meanwhile, or an edited file, does not split a fleet.
    """
    name = f"build-{digest([list(paths), git, ref, api_version, list(hooks), reference, target, signing_key])[:16]}"
    directory = cache.run / f"forewarn-{name}"
    directory.mkdir(mode=0o700, exist_ok=True)
    with cache.locked(name):
        done = directory / "built.json"
        if not done.exists():
            try:
                content = _build(directory, paths, git, ref, api_version, hooks, cache, reference, target, signing_key)
            except ForewarnError as error:
                content = {"refused": str(error)}
            replace_file(done, json.dumps(content).encode("utf-8"))
        result: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    if "refused" in result:
        raise InputError(result["refused"])
    return result


def _build(
    directory: Path,
    paths: Sequence[str],
    git: str,
    ref: str,
    api_version: str,
    hooks: Sequence[str],
    cache: Cache,
    reference: str,
    target: str,
    signing_key: str,
) -> dict[str, Any]:
    home = directory
    if git:
        home = directory / "checkout"
        commit = sources.check_out(git, ref, home)
        paths = [sources.inside(home, path) for path in paths or ["."]]
        source = sources.fetched(git, ref, commit, paths)
        _refuse_outside(home, _imported(home, paths))
    else:
        source = sources.local(paths)
    pyz, artifact = directory / "forewarn.pyz", directory / "policy.json"
    programs = hook_files(home, hooks, checkout=bool(git))
    # Messages name files by their paths, so these count too; in a checkout they are relative.
    compared = [reference] if reference else []
    contents = _contents(home, [*paths, *compared])
    policies = cache.once(
        "built",
        [api_version, list(paths), compared, contents, target],
        lambda: json.dumps(_policies(home, artifact, paths, api_version, reference, target)).encode(),
        json.loads,
        # Nobody has changed a file meanwhile, and nothing that this machine lacks has changed the result.
        lambda content: json.loads(content)["complete"] and _contents(home, [*paths, *compared]) == contents,
    )
    content = policies["artifact"].encode()
    signature = _signature_beside(home, paths)
    if signing_key:
        content = with_serial(with_source(content, source), signing.serial_of([home / path for path in paths]))
        signature = cache.once(
            "signed",
            [signing.public_key(signing_key), digest(content.decode())],
            lambda: signing.sign(content, signing_key),
            bytes,
        )
    elif not signature:  # of what is signed, not a byte changes
        content = with_source(content, source)
    artifact.write_bytes(content)
    if signature:
        artifact.with_name(artifact.name + SUFFIX).write_bytes(signature)
    runner = bundle.build(_PACKAGE, pyz, kinds_of(json.loads(policies["artifact"])))
    return {
        "version": runner.version,
        "pyz": str(pyz),
        "pyz_sha256": file_digest(pyz),
        "artifact": str(artifact),
        "signature": str(artifact) + SUFFIX if signature else "",
        "serial": json.loads(content).get("serial"),
        "text": _text(home, paths, source),
        "hook_files": programs,
        "hooks_sha256": digest([[program["path"], program["mode"], program["sha256"]] for program in programs]),
        "source": source,
        "commit": source["commit"],
        "objections": policies["objections"],
        "remarks": policies["remarks"],
    }


def _signature_beside(home: Path, paths: Sequence[str]) -> bytes:
    """Return the signature that an artifact of these paths was compiled with, b"" if it has none."""
    found = [home / (path + SUFFIX) for path in paths if path.endswith(".json")]
    try:
        return found[0].read_bytes() if found and found[0].exists() else b""
    except OSError as error:
        raise InputError(f"{found[0]}: {error.strerror}.") from error


def _text(home: Path, paths: Sequence[str], source: sources.Source) -> str:
    """Return the policies as their authors wrote them, for the people who look at a VM or at a difference."""
    origin = ", ".join(f"{name} {source[name]}" for name in ("repository", "ref", "commit") if source[name])
    lines = ["# What the runner's policies were compiled from. The runner does not read this file."]
    if origin:
        lines.append(f"# {origin}{', with changes' if source['modified'] else ''}")
    policies = find_policies([home / path for path in paths])
    texts = [(policy.name, policy.path.read_text(encoding="utf-8")) for policy in policies]
    texts += [(origin.name, origin.read().decode()) for origin in _imported(home, paths)]
    for name, content in texts:
        lines += [f"--- # {name}", content.removeprefix("---\n").rstrip("\n")]
    return "\n".join(lines) + "\n"


def _imported(home: Path, paths: Sequence[str]) -> list[FileOrigin]:
    """Return what the policies at these paths import; nothing for paths at which there are no policies."""
    found: list[FileOrigin] = []
    for path in paths:
        if not path.endswith(".json"):
            with suppress(InputError):  # whoever compiles them says what is wrong
                found += imported_files(find_policies([home / path])).found
    return found


def _refuse_outside(home: Path, imported: Sequence[FileOrigin]) -> None:
    """Raise InputError for an import that leads out of a checkout: its authors may not read this machine's files."""
    for origin in imported:
        if isinstance(origin, LocalOrigin) and not Path(origin.key).is_relative_to(home.resolve()):
            raise InputError(f"{origin.key} is imported, and is not inside the repository.")


def _contents(home: Path, paths: Sequence[str]) -> list[list[str]]:
    """Return name and digest of every file that can hold policies at these paths, what they import, or their tests."""
    files = [file for origin in _imported(home, paths) if (file := origin.file) is not None]
    for path in paths:
        whole = home / path
        if whole.is_dir():
            files += (file for file in whole.rglob("*") if ".git" not in file.relative_to(whole).parts)
        else:  # its tests are beside it, or in a directory beside it
            files += [whole, *whole.parent.glob("*.y*ml"), *whole.parent.glob("tests/*.y*ml")]
    try:
        return [
            [str(file.relative_to(home) if file.is_relative_to(home) else file), file_digest(file)]
            for file in sorted(set(files))
            if file.is_file()
        ]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}.") from error


def _policies(
    home: Path, artifact: Path, paths: Sequence[str], api_version: str, reference: str, target: str
) -> dict[str, Any]:
    """Return ``artifact`` as text, ``objections`` to rolling it out, ``remarks``, and whether all was checked:
    ``complete``.
    """
    if not paths:
        raise InputError("No policies were named.")
    compiled = [path for path in paths if path.endswith(".json")]
    if compiled:
        if len(paths) > 1:
            raise InputError(f"{compiled[0]} is an artifact, which has all its policies in it: name nothing beside it.")
        try:
            content = (home / compiled[0]).read_bytes()
            found = load(content)
        except (OSError, ForewarnError) as error:
            raise InputError(f"{compiled[0]}: {error}") from error
        if found.api_version != api_version:
            raise InputError(
                f"{compiled[0]} was compiled for api-version {found.api_version}, and {api_version} is wanted."
            )
        remark = f"{compiled[0]} was compiled elsewhere: its tests were not run."
        objections = _beyond(home, paths, api_version, reference)
        return {"artifact": content.decode(), "objections": objections, "remarks": [remark], "complete": True}
    arguments = ["--api-version", api_version]
    done = _forewarn(home, "policy", "compile", *arguments, "--target", target, "--output", str(artifact), "--", *paths)
    if done.returncode:
        raise InputError(f"forewarn policy compile fails:\n{said(done)}")
    objections, remarks = [], []
    codes = set()
    for path in paths:
        test = _forewarn(home, "policy", "test", "--", path)
        codes.add(test.returncode)
        if test.returncode == 1:
            objections.append(f"Tests of the policies fail:\n{test.stdout.strip()}")
        elif test.returncode:
            remarks.append(f"The policies were not tested: {said(test)}")
    verify = _forewarn(home, "policy", "verify", *arguments, "--", *paths)
    codes.add(verify.returncode)
    if verify.returncode == 2 and not _has_solver():
        remarks.append(f"The policies were not verified: {said(verify)}")
    elif verify.returncode:
        objections.append(f"forewarn policy verify objects:\n{said(verify)}")
    objections += _beyond(home, paths, api_version, reference)
    text, complete = artifact.read_text(encoding="utf-8"), codes <= {0, 1}
    return {"artifact": text, "objections": objections, "remarks": remarks, "complete": complete}


def _has_solver() -> bool:
    from ..analysis.smt.terms import require  # not at the top: it takes time, and most runs need not know

    try:
        require()
    except InputError:
        return False
    return True


def _beyond(home: Path, paths: Sequence[str], api_version: str, reference: str) -> list[str]:
    """Return an objection if it is not proven that ``reference``, if any, approves whatever the policies approve."""
    if not reference:
        return []
    implies = _forewarn(home, "policy", "implies", "--api-version", api_version, "--", *paths, reference)
    if implies.returncode > 1:
        raise InputError(f"The policies cannot be compared with the reference {reference}:\n{said(implies)}")
    if implies.returncode:
        return [f"It is not proven that the policies approve only what the reference approves:\n{said(implies)}"]
    return []


def _forewarn(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # If any interpreter has the libraries of the compiler, this one has.
    path = os.pathsep.join(filter(None, [str(_PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return run([sys.executable, "-m", "forewarn.cli.main", *arguments], home, environment)
