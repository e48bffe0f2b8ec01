# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where policies and hooks come from: a commit of a repository that is fetched, or files of the control node."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Dict

from ..errors import InputError
from .commands import run, said

Source = Dict[str, Any]  # as policy.artifact.with_source takes it
_SECRET = re.compile(r"(?<=://)[^/@]+@")  # user and password of a URL


def check_out(url: str, ref: str, directory: Path) -> str:
    """Fetch one commit of a repository into a directory, and return its name. Raises InputError."""
    if url.startswith("-") or ref.startswith("-") or not ref:
        raise InputError(f"git {url!r}, ref {ref!r}: neither may be empty or begin with a '-'.")
    directory.mkdir(exist_ok=True)

    def git(*arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        process = _git(directory, *arguments)
        if process.returncode and not may_fail:
            raise InputError(f"git {arguments[0]} {_SECRET.sub('', url)}: {said(process)}")
        return process

    git("init", "--quiet")
    # Not every server offers a commit by its name alone: then fetch everything.
    if not git("fetch", "--quiet", "--depth", "1", "--", url, ref, may_fail=True).returncode:
        commit = "FETCH_HEAD"
    else:
        git("fetch", "--quiet", "--tags", "--", url, "+refs/heads/*:refs/remotes/origin/*")
        commit = f"{ref}^{{commit}}"
        if git("rev-parse", "--verify", "--quiet", commit, may_fail=True).returncode:
            raise InputError(f"{_SECRET.sub('', url)} has no branch, tag or commit {ref}.")
    git("checkout", "--quiet", "--detach", git("rev-parse", commit).stdout.strip())
    return git("rev-parse", "HEAD").stdout.strip()


def fetched(url: str, ref: str, commit: str, paths: Sequence[str]) -> Source:
    """Return the source of files of a commit that was fetched."""
    return {
        "repository": _SECRET.sub("", url),
        "ref": ref,
        "commit": commit,
        "paths": list(paths),
        "modified": False,
    }


def local(paths: Sequence[str]) -> Source:
    """Return the source of files of the control node: with the commit, if they are all in one checkout."""
    found: Source = {"repository": None, "ref": None, "commit": None, "paths": list(paths), "modified": False}
    if not paths:
        return found
    first = Path(paths[0])
    home = _git_output(first if first.is_dir() else first.parent, "rev-parse", "--show-toplevel")
    if home is None or not all(Path(path).is_relative_to(home) for path in paths):
        return found
    directory = Path(home)
    within = [str(Path(path).relative_to(directory)) for path in paths]
    commit = _git_output(directory, "rev-parse", "--verify", "--quiet", "HEAD")
    if commit is None:  # a repository without a commit
        return found
    repository = _git_output(directory, "config", "--get", "remote.origin.url")
    ref = _git_output(directory, "describe", "--all", "--exact-match", "HEAD")
    changes = _git_output(directory, "status", "--porcelain", "--untracked-files=all", "--", *within)
    return {
        "repository": None if repository is None else _SECRET.sub("", repository),
        "ref": None if ref is None else re.sub("^(heads|tags)/", "", ref),
        "commit": commit,
        "paths": within,
        "modified": changes is not None,
    }


def commit_time(path: Path, commit: str) -> int | None:
    """Return when a commit was made in the checkout that a path is in, in seconds since 1970, or None."""
    said = _git_output(path if path.is_dir() else path.parent, "show", "--no-patch", "--format=%ct", commit)
    return None if said is None else int(said)


def inside(home: Path, path: str) -> str:
    """Return a path in a checkout. Raises InputError if it leads out of the checkout, or does not exist."""
    whole = (home / path).resolve()
    if not whole.is_relative_to(home.resolve()):
        raise InputError(f"{path} is not inside the repository: name paths relative to its root.")
    if not whole.exists():
        raise InputError(f"There is no {path} in the repository.")
    return path


def _git_output(directory: Path, *arguments: str) -> str | None:
    """Return what git says of a checkout, or None if it says nothing or there is no git."""
    try:
        process = _git(directory, *arguments)
    except InputError:
        return None
    return (process.stdout.strip() or None) if process.returncode == 0 else None


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A prompt, for example for a password, would wait forever; GIT_DIR would select another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
    environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C.UTF-8")
    return run(["git", *arguments], directory, environment)
