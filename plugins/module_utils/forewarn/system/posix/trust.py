# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether others can change a file: its owner and its mode, and those of the way to it."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from ..common.untrusted import UntrustedError, subject

_MOST_LINKS = 40  # as many as Linux follows
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check_file(path: str, what: str) -> None:
    """Raise InputError unless ``path`` is a file that only root and the runner's user can change or replace.

    It is an UntrustedError if others can. This applies to the file, to every directory above it, and to each symbolic
    link on the way and what is above that. Others may write to a sticky directory such as /tmp: there they can add, but
    not replace. Linux's access control lists show in the group's bits, so they count. ``what`` names what the file is
    for, such as "artifact".
    """
    status = _trusted(path, what)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{subject(what, path)} is not a regular file.")


def check_program(path: str) -> None:
    """Raise InputError unless ``path`` is absolute, passes ``check_file``, and is a program that we may execute."""
    what = "hook program"
    if not Path(path).is_absolute():
        raise InputError(
            f"{subject(what, path)} is not an absolute path.",
            "Write the whole path, such as /usr/local/bin/drain: PATH is not searched.",
        )
    check_file(path, what)
    if not os.access(path, os.X_OK, effective_ids=True):
        raise InputError(f"{subject(what, path)} may not be executed.", f"Run: chmod +x {_quoted(path)}")


def check_directory(path: str, what: str, *, shared: bool = False) -> None:
    """Raise InputError unless ``path`` is a directory in which only root and the runner's user can change anything.

    With ``shared`` it may be sticky and writable by others: that is enough to make a directory of our own in it.
    """
    status = _trusted(path, what, shared=shared)
    if not stat.S_ISDIR(status.st_mode):
        raise InputError(f"{subject(what, path)} is not a directory.")


def check_secret(path: str) -> None:
    """Raise InputError unless ``path`` passes ``check_file``, and not everybody can read it."""
    check_file(path, "the secret")
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as everywhere in this module
    except OSError as error:
        raise InputError(f"the secret {path}: {error.strerror}.") from error
    if mode & stat.S_IROTH:
        raise InputError(f"the secret {path} is readable by everybody.", f"Run: chmod o-r {_quoted(path)}")


def is_private_directory(directory: Path) -> bool:
    """Create a directory if needed. Return whether only this user can write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    ours = status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS
    return ours and os.access(directory, os.W_OK | os.X_OK)


def _trusted(path: str, what: str, *, shared: bool = False) -> os.stat_result:
    """Return the status of what ``path`` leads to. Raises InputError if others can change it."""
    try:
        for end, status in _checked(path, what):  # noqa: B007 - the last one counts
            pass
    except OSError as error:
        raise InputError(f"{subject(what, path)}: {error.strerror}.") from error
    except ValueError as error:  # a NUL in it, or half a character
        raise InputError(f"{subject(what, path)!r}: no path can look like this ({error}).") from error
    if not shared:
        # A directory such as /tmp is fine on the way, but not at the end.
        _refuse_writable(path, what, end, status)
    return status


def _checked(path: str, what: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield and check each step that ``path`` leads through, from / down to its end.

    Each is checked after what is above it, so nobody can change it in between.
    """
    for step, status in _steps(path):
        if status.st_uid not in (0, os.geteuid()):
            command = "chown -h root" if stat.S_ISLNK(status.st_mode) else "chown root"
            _refuse(path, what, step, f"belongs to {_user(status.st_uid)}", command)
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if not sticky:
            _refuse_writable(path, what, step, status)
        yield step, status


def _steps(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every directory and symbolic link that ``path`` leads through, and last its end, with their status."""
    here, links = "", 0
    status = os.lstat("/")
    yield "/", status
    left = (path if path.startswith("/") else f"{Path.cwd()}/{path}").split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":  # the directory above: there are no links in this path
            here = here.rpartition("/")[0]
            continue
        step = f"{here}/{name}"
        status = os.lstat(step)
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(step)
        if target.startswith("/"):
            here = ""
        left.extend(target.split("/")[::-1])
    yield here or "/", os.lstat(here or "/")


def _refuse_writable(path: str, what: str, step: str, status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISLNK(mode) or not mode & _WRITABLE_BY_OTHERS:
        return
    writers, letters = [], ""
    if mode & stat.S_IWGRP:
        writers.append(f"group {_group(status.st_gid)}")
        letters += "g"
    if mode & stat.S_IWOTH:
        writers.append("everybody")
        letters += "o"
    fault = f"is writable by {' and '.join(writers)} (mode {stat.S_IMODE(mode):04o})"
    _refuse(path, what, step, fault, f"chmod {letters}-w")


def _refuse(path: str, what: str, step: str, fault: str, command: str) -> None:
    culprit = "it" if step == path else step
    raise UntrustedError(
        f"{subject(what, path)} can be changed by others: {culprit} {fault}.", f"Run: {command} {_quoted(step)}"
    )


def _quoted(path: str) -> str:
    from shlex import quote  # here: only an error needs it

    return quote(path)


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
