# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds what a VM gets: the runner and its policies, compiled, tested and proven on the control node for all hosts.

The command ``forewarn``, in another process, handles the policies: an operator sees the same messages as there.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import bundle
from ..errors import ForewarnError, InputError
from ..policy.artifact import load
from .cache import Cache, digest

_PACKAGE = Path(__file__).parents[1]
_PATIENCE_SECONDS = 600


def build(paths: Sequence[str], git: str, ref: str, api_version: str, cache: Cache) -> dict[str, Any]:
    """Return what this run has built from the same inputs, or build it now: part of a result of ``runner_build``.

    ``paths`` are absolute, or relative to the root of the repository ``git``. Besides the paths of what was built, the
    result has ``objections``, reasons against rolling it out, and ``remarks``. Raises InputError.

    Each host has its own process. What the first has built, the others take from the run's private directory. So a
    branch that moves meanwhile, or an edited file, does not split a fleet.
    """
    name = f"build-{digest([list(paths), git, ref, api_version])[:16]}"
    directory = cache.run / f"forewarn-{name}"
    directory.mkdir(mode=0o700, exist_ok=True)
    with cache.locked(name):
        done = directory / "built.json"
        if not done.exists():
            try:
                content = _build(directory, paths, git, ref, api_version, cache)
            except ForewarnError as error:
                content = {"refused": str(error)}
            (directory / "part").write_text(json.dumps(content), encoding="utf-8")
            (directory / "part").replace(done)
        result: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    if "refused" in result:
        raise InputError(result["refused"])
    return result


def _build(directory: Path, paths: Sequence[str], git: str, ref: str, api_version: str, cache: Cache) -> dict[str, Any]:
    commit, home = None, directory
    if git:
        home = directory / "checkout"
        commit = _check_out(git, ref, home)
        paths = [_inside(home, path) for path in paths or ["."]]
    pyz, artifact = directory / "forewarn.pyz", directory / "policy.json"
    bundle.build(_PACKAGE, pyz)
    # Messages name files by their paths, so these count too; in a checkout they are relative.
    contents = _contents(home, paths)
    policies = cache.once(
        "built",
        [api_version, list(paths), contents],
        lambda: json.dumps(_policies(home, artifact, paths, api_version)).encode(),
        json.loads,
        lambda _: _contents(home, paths) == contents,  # nobody has changed a file meanwhile
    )
    artifact.write_text(policies["artifact"], encoding="utf-8")
    return {
        "pyz": str(pyz),
        "pyz_sha256": hashlib.sha256(pyz.read_bytes()).hexdigest(),
        "artifact": str(artifact),
        "commit": commit,
        "objections": policies["objections"],
        "remarks": policies["remarks"],
    }


def _contents(home: Path, paths: Sequence[str]) -> list[list[str]]:
    """Return name and digest of every file that can hold policies at these paths, or their tests."""
    files: list[Path] = []
    for path in paths:
        whole = home / path
        if whole.is_dir():
            files += (file for file in whole.rglob("*") if ".git" not in file.relative_to(whole).parts)
        else:  # its tests are beside it, or in a directory beside it
            files += [whole, *whole.parent.glob("*.y*ml"), *whole.parent.glob("tests/*.y*ml")]
    try:
        return [
            [
                str(file.relative_to(home) if file.is_relative_to(home) else file),
                hashlib.sha256(file.read_bytes()).hexdigest(),
            ]
            for file in sorted(set(files))
            if file.is_file()
        ]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}.") from error


def _policies(home: Path, artifact: Path, paths: Sequence[str], api_version: str) -> dict[str, Any]:
    """Return ``artifact`` as text, ``objections`` to rolling it out, and ``remarks``."""
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
        return {"artifact": content.decode(), "objections": [], "remarks": [remark]}
    arguments = ["--api-version", api_version]
    done = _forewarn(home, "policy", "compile", *arguments, "--output", str(artifact), "--", *paths)
    if done.returncode:
        raise InputError(f"forewarn policy compile fails:\n{_said(done)}")
    objections, remarks = [], []
    for path in paths:
        test = _forewarn(home, "policy", "test", "--", path)
        if test.returncode == 1:
            objections.append(f"Tests of the policies fail:\n{test.stdout.strip()}")
        elif test.returncode:
            remarks.append(f"The policies were not tested: {_said(test)}")
    verify = _forewarn(home, "policy", "verify", *arguments, "--", *paths)
    if verify.returncode:
        objections.append(f"forewarn policy verify objects:\n{_said(verify)}")
    return {"artifact": artifact.read_text(encoding="utf-8"), "objections": objections, "remarks": remarks}


def _forewarn(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # If any interpreter has the libraries of the compiler, this one has.
    path = os.pathsep.join(filter(None, [str(_PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return _run([sys.executable, "-m", "forewarn.cli.main", *arguments], home, environment)


def _run(command: Sequence[str], home: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        # pylint: disable-next=ansible-bad-function # the control node, not a module that has run_command
        return subprocess.run(  # noqa: S603 - no shell, and the programs are ours and git
            command,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{command[0]} on the control node: {error}.") from error


def _said(process: subprocess.CompletedProcess[str]) -> str:
    return (process.stderr.strip() + "\n" + process.stdout.strip()).strip() or f"exit code {process.returncode}"


def _check_out(url: str, ref: str, directory: Path) -> str:
    """Fetch one commit of a repository and return its name."""
    if url.startswith("-") or ref.startswith("-") or not ref:
        raise InputError(f"git {url!r}, ref {ref!r}: neither may be empty or begin with a '-'.")
    directory.mkdir(exist_ok=True)
    # A prompt, for example for a password, would wait forever; GIT_DIR would select another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
    environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C.UTF-8")

    def git(*arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        process = _run(["git", *arguments], directory, environment)
        if process.returncode and not may_fail:
            raise InputError(f"git {arguments[0]} {url} {ref}: {_said(process)}.")
        return process

    git("init", "--quiet")
    # Not every server offers a commit by its name alone: then fetch everything.
    if git("fetch", "--quiet", "--depth", "1", "--", url, ref, may_fail=True).returncode:
        git("fetch", "--quiet", "--tags", "--", url, "+refs/heads/*:refs/remotes/origin/*")
        git("checkout", "--quiet", "--detach", ref)
    else:
        git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    return git("rev-parse", "HEAD").stdout.strip()


def _inside(home: Path, path: str) -> str:
    """Return a path in a checkout. Raises InputError if it leads out of the checkout, or does not exist."""
    whole = (home / path).resolve()
    if not whole.is_relative_to(home.resolve()):
        raise InputError(f"{path} is not inside the repository: name paths relative to its root.")
    if not whole.exists():
        raise InputError(f"There is no {path} in the repository.")
    return path
