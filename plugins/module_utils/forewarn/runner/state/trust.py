# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner trusts: files that only root and its own user can change, and a service on this very machine.

A policy decides when a machine goes down, and a hook runs with the runner's rights: see docs/SECURITY.md.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from ...imds.endpoint import parse_endpoint

_MOST_LINKS = 40  # as many as Linux follows
_MAX_SECRET_BYTES = 64 * 1024
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UntrustedError(InputError):
    """A file or directory that others can change."""


def check_file(path: str, what: str) -> None:
    """Raise InputError unless ``path`` is a file that only root and the runner's user can change or replace.

    It is an UntrustedError if others can. This applies to the file, to every directory above it, and to each symbolic
    link on the way and what is above that. Others may write to a sticky directory such as /tmp: there they can add, but
    not replace. Linux's access control lists show in the group's bits, so they count. ``what`` names what the file is
    for, such as "artifact".
    """
    status = _trusted(path, what)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{_subject(what, path)} is not a regular file.")


def check_program(path: str) -> None:
    """Raise InputError unless ``path`` is absolute, passes ``check_file``, and is a program that we may execute."""
    what = "hook program"
    if not Path(path).is_absolute():
        raise InputError(
            f"{_subject(what, path)} is not an absolute path.",
            "Write the whole path, such as /usr/local/bin/drain: PATH is not searched.",
        )
    check_file(path, what)
    if not os.access(path, os.X_OK, effective_ids=True):
        raise InputError(f"{_subject(what, path)} may not be executed.", f"Run: chmod +x {_quoted(path)}")


def check_directory(path: str, what: str, *, shared: bool = False) -> None:
    """Raise InputError unless ``path`` is a directory in which only root and the runner's user can change anything.

    With ``shared`` it may be sticky and writable by others: that is enough to make a directory of our own in it.
    """
    status = _trusted(path, what, shared=shared)
    if not stat.S_ISDIR(status.st_mode):
        raise InputError(f"{_subject(what, path)} is not a directory.")


def check_endpoint(url: str, allow: bool) -> None:
    """Raise InputError unless the service at ``url`` is on this machine or link-local (SE-01), or ``allow`` is true.

    Only numeric addresses and the name localhost pass: somebody else decides what another name means.
    """
    host = parse_endpoint(url).host
    if allow or host.lower() == "localhost" or _is_near(host):
        return
    raise InputError(
        f"endpoint {url}: {host} is neither link-local nor loopback, and a service there could drain this VM.",
        "Leave --endpoint out to ask http://169.254.169.254, or add --allow-endpoint if you trust that host.",
    )


def check_secret(path: str) -> None:
    """Raise InputError unless ``path`` passes ``check_file``, and not everybody can read it."""
    check_file(path, "the secret")
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as everywhere in this module
    except OSError as error:
        raise InputError(f"the secret {path}: {error.strerror}.") from error
    if mode & stat.S_IROTH:
        raise InputError(f"the secret {path} is readable by everybody.", f"Run: chmod o-r {_quoted(path)}")


def read_secret(path: str) -> bytes:
    """Return a file's content without white space around it: one line, or nothing.

    Raises InputError, whose text has none of the content, also for more than one line or more than 64 KiB.
    """
    check_secret(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not block
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(_MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise InputError(f"the secret {path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_SECRET_BYTES:
        raise InputError(f"the secret {path} is longer than {_MAX_SECRET_BYTES} bytes")
    secret = content.strip()
    if not secret or len(secret.splitlines()) > 1:
        raise InputError(f"the secret {path} is empty, or not one line")
    return secret


def _is_near(host: str) -> bool:
    # inet_pton takes one spelling of an address; others also take 0177.1, and do not agree on what it means.
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return False
    if len(packed) == 4:
        return packed[0] == 127 or packed[:2] == bytes((169, 254))
    return packed == bytes(15) + b"\x01" or (packed[0] == 0xFE and packed[1] & 0xC0 == 0x80)


def _trusted(path: str, what: str, *, shared: bool = False) -> os.stat_result:
    """Return the status of what ``path`` leads to. Raises InputError if others can change it."""
    try:
        for end, status in _checked(path, what):  # noqa: B007 - the last one counts
            pass
    except OSError as error:
        raise InputError(f"{_subject(what, path)}: {error.strerror}.") from error
    except ValueError as error:  # a NUL in it, or half a character
        raise InputError(f"{_subject(what, path)!r}: no path can look like this ({error}).") from error
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
        f"{_subject(what, path)} can be changed by others: {culprit} {fault}.", f"Run: {command} {_quoted(step)}"
    )


def _subject(what: str, path: str) -> str:
    return f"{what} {path}".strip()


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
