# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab needs of this machine, and how it runs programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.sites.waiting import PATIENCE_SECONDS

# Program -> the Debian package that brings it.
_PROGRAMS = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "mount": "mount",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
}
_SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))
_INOTIFY_INSTANCES = 1024
_TAIL = 2_000  # characters of a program's output that an error shows


class LabError(Exception):
    """The lab cannot do what it was asked to."""


def missing(more: Mapping[str, str] | None = None) -> str | None:
    """Return why this machine cannot have a lab, and what to do about it; None if it can.

    ``more`` are programs that it needs too, each with the Debian package that brings it.
    """
    if sys.platform != "linux" or not Path("/proc/self/ns/time").exists() or _linux() < (5, 14):
        return "the lab needs Linux 5.14 or newer, with time namespaces"
    if os.geteuid() != 0:
        return "the lab boots hosts, which only root may: run it as root, in a virtual machine"
    if not control_groups().is_dir():
        return "the lab needs cgroup2 to be mounted"
    programs = {**_PROGRAMS, **(more or {})}
    packages = sorted({package for name, package in programs.items() if not shutil.which(name, path=_SYSTEM_PATH)})
    if packages:
        return f"the lab needs more programs: apt-get install {' '.join(packages)}"
    return None


def raise_limits() -> None:
    """Let this machine run the systemds of many hosts: each needs some instances of inotify, and 128 are usual."""
    limit = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(limit.read_text()) < _INOTIFY_INSTANCES:
        limit.write_text(str(_INOTIFY_INSTANCES))


def control_groups() -> Path:
    """Return where cgroup2 is mounted: usually alone, beside cgroup 1 on older systems. Missing if it is not."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _device, directory, kind = line.split()[:3]
        if kind == "cgroup2":
            return Path(directory)
    return Path("/sys/fs/cgroup/missing")


def environment() -> dict[str, str]:
    """Return the environment of the lab's programs: messages in English, and the system's programs on the path."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "PATH": _SYSTEM_PATH}


def run(*command: str | Path, timeout: float = PATIENCE_SECONDS, check: bool = True) -> str:
    """Run a program and return what it wrote. Raises LabError, with its output, if it fails or does not end."""
    words: Sequence[str] = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(words)} has not ended within {timeout:g} s") from error
    if check and done.returncode:
        raise LabError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-_TAIL:]}")
    return done.stdout


def _linux() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
