# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of commits in git repositories: each commit is fetched once, and kept in this user's cache.

A commit names its content, so what is kept never expires, and needs no network. Nothing of a repository is executed or
checked out: files are read from its objects.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...system.program_run import run_program
from ...system.trust import is_private_directory
from ..yaml.tree import MOST_BYTES
from .errors import ImportedFileError

# As the schema of policies has them.
URL = re.compile(
    r"(?:(?:https|ssh)://[^\s/-][^\s]*|file:///[^\s]+|[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s]+)"
)
COMMIT = re.compile(r"[0-9a-f]{40}")

_PROTOCOLS = "https:ssh:file"  # also after a redirect or where git's configuration rewrites URLs
_SECRET = re.compile(r"(?<=://)[^/@\s]+@")  # user and password of a URL
_FETCH_SECONDS = 300
_READ_SECONDS = 60
_PART = ".part-"  # how directories begin into which a commit is being fetched
_LEFTOVER_SECONDS = 24 * 3600
# Of the environment: git tells the programs that it starts, such as hooks, which repository they work in.
_REPOSITORY_VARIABLES = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
     "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE")
)  # fmt: skip


def without_secrets(url: str) -> str:
    """Return a URL without the user and the password in it."""
    return _SECRET.sub("", url)


def cache_directory() -> Path:
    """Return the directory of the commits that are kept: ``forewarn/imports`` in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH117 - Path.home() raises where there is none
    return base / "forewarn" / "imports"


def read_file(url: str, commit: str, path: str) -> bytes:
    """Return a file of a commit, fetched if it is not kept. ``path`` is relative to the root of the repository.

    Raises ImportedFileError: there is no git, repository, commit or file, or no answer in time.
    """
    if not URL.fullmatch(url) or not COMMIT.fullmatch(commit):
        raise ImportedFileError(f"{without_secrets(url)} at {commit} is not a repository and a commit")
    whole = f"{without_secrets(url)} has no {path} in the commit {commit}"
    with _repository(url, commit) as directory:
        listed = _git(directory, "ls-tree", "-z", "-l", "--full-tree", commit, "--", path)
        entry = next((one for one in listed.decode(errors="replace").split("\0") if one.endswith(f"\t{path}")), "")
        mode, kind, name, size = (*entry.partition("\t")[0].split(), "", "", "", "")[:4]
        if kind != "blob":
            files = f"'git ls-tree -r --name-only {commit}' in a checkout lists what it has"
            raise ImportedFileError(whole, "there is a directory of this name" if kind == "tree" else files)
        if mode == "120000":
            raise ImportedFileError(f"{path} is a symbolic link in the repository", "name the file that it leads to")
        if int(size) > MOST_BYTES:
            raise ImportedFileError(f"{path} is larger than {MOST_BYTES // 1024} KiB", "split it")
        return _git(directory, "cat-file", "blob", name)


class _GitTimeoutError(ImportedFileError):
    """Git took too long. Another try would take as long."""


@contextmanager
def _repository(url: str, commit: str) -> Iterator[Path]:
    """Yield a bare repository with a commit, from the cache; it is fetched into the cache if it is not there.

    Where others can write to the cache, it is fetched into a temporary directory.
    """
    cache = cache_directory()
    if not is_private_directory(cache):
        with tempfile.TemporaryDirectory(prefix="forewarn-") as directory:
            _fetch(url, commit, Path(directory))
            yield Path(directory)
        return
    kept = cache / commit
    if not _has_commit(kept, commit):
        # Other processes may fetch the same one: the first to finish names it, and none sees a part of it.
        damaged = kept.exists()
        _remove_leftovers(cache)
        part = Path(tempfile.mkdtemp(prefix=_PART, dir=cache))
        try:
            _fetch(url, commit, part)
            if damaged and not _has_commit(kept, commit):
                shutil.rmtree(kept, ignore_errors=True)
            part.rename(kept)  # fails where another process was faster
        except OSError as error:
            if not _has_commit(kept, commit):
                raise ImportedFileError(f"{kept} cannot be written: {error.strerror}") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    yield kept


def _remove_leftovers(cache: Path) -> None:
    """Remove what processes left that were killed while they fetched."""
    for part in cache.glob(f"{_PART}*"):
        with suppress(OSError):  # another process has removed it
            if time.time() - part.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(part, ignore_errors=True)


def _has_commit(directory: Path, commit: str) -> bool:
    """Return whether a directory is a repository with a commit, and not one of another kind with that name."""
    if not directory.is_dir():
        return False
    try:
        return _git(directory, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").decode().strip() == commit
    except ImportedFileError:
        return False


def _fetch(url: str, commit: str, directory: Path) -> None:
    """Fetch a commit into an empty directory, alone if the server offers it by its name."""
    shown = without_secrets(url)
    _git(directory, "init", "--bare", "--quiet", "--template=")
    options = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")
    try:
        _git(directory, *options, "--depth", "1", "--", url, commit, about=shown, seconds=_FETCH_SECONDS)
    except _GitTimeoutError:
        raise
    except ImportedFileError:
        branches = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        _git(directory, *options, "--", url, *branches, about=shown, seconds=_FETCH_SECONDS)
    if not _has_commit(directory, commit):
        raise ImportedFileError(f"{shown} has no commit {commit}", "is it pushed, and on a branch or a tag?")


def _git(directory: Path, *arguments: str, about: str = "", seconds: int = _READ_SECONDS) -> bytes:
    """Run git in a repository, and return its output. Raises ImportedFileError."""
    environment = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    environment.update(
        GIT_DIR=str(directory),
        GIT_ALLOW_PROTOCOL=_PROTOCOLS,
        GIT_LITERAL_PATHSPECS="1",
        GIT_NO_REPLACE_OBJECTS="1",
        # Never ask for a password: that would wait for ever. Without a terminal ssh cannot ask either.
        GIT_TERMINAL_PROMPT="0",
        GIT_ASKPASS="",
        SSH_ASKPASS_REQUIRE="never",
        GCM_INTERACTIVE="never",
        LC_ALL="C.UTF-8",
    )
    settings = ("core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false")
    command = ["git", *(part for one in settings for part in ("-c", one)), *arguments]
    doing = " ".join(filter(None, ("git", arguments[0], about)))
    try:
        done = run_program(command, directory, environment, seconds)
    except subprocess.TimeoutExpired as error:
        raise _GitTimeoutError(f"{doing}: no answer within {seconds} s") from error
    except OSError as error:
        hint = "install git, or import a file of this machine"
        raise ImportedFileError(f"git cannot be run: {error.strerror}", hint) from error
    if done.returncode != 0:
        said = " ".join(without_secrets(done.stderr.decode(errors="replace")).split())
        raise ImportedFileError(f"{doing}: {said or f'exit code {done.returncode}'}")
    return done.stdout
