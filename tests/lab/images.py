# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file systems of the hosts: built once a Debian release by debootstrap, and never written to afterwards."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .machine import run

CACHE = Path(__file__).resolve().parent.parent.parent / ".cache" / "lab"
# Python 3.9 with systemd 247, 3.11 with 252, 3.13 with 257.
SUITES = ("bullseye", "bookworm", "trixie")

_PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "openssh-server")
_SSHD = "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
# They would look for updates, or for file systems, that a host of the lab does not have.
_MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")
# What a built file system depends on, beside the release: another text here builds it anew.
_RECIPE = hashlib.sha256(repr((1, _PACKAGES, _SSHD, _MASKED)).encode()).hexdigest()[:8]


def root_file_systems(suites: Iterable[str]) -> dict[str, Path]:
    """Return the root file system of each release; missing ones are built side by side. Raises LabError."""
    names = sorted(set(suites))
    with ThreadPoolExecutor(max(1, len(names))) as pool:
        return dict(zip(names, pool.map(_root_file_system, names), strict=True))


def absent(suites: Iterable[str] = SUITES) -> bool:
    """Return whether one of them must be built first, which takes minutes and a network."""
    return any(not (CACHE / f"{suite}-{_RECIPE}").exists() for suite in suites)


def key() -> Path:
    """Return the private key that every host lets in; its public half lies beside it."""
    path = CACHE / "key"
    with _locked("key"):
        if not path.exists():
            draft = CACHE / "key.new"
            for leftover in (draft, draft.with_name("key.new.pub")):
                leftover.unlink(missing_ok=True)
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", draft)
            draft.with_name("key.new.pub").replace(CACHE / "key.pub")
            draft.replace(path)
    return path


def _root_file_system(suite: str) -> Path:
    root = CACHE / f"{suite}-{_RECIPE}"
    with _locked(suite):
        if not root.exists():
            for older in CACHE.glob(f"{suite}-*"):  # a build that was ended, too
                _remove(older)
            draft = CACHE / f"{suite}-new"
            run(
                *("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", suite, draft),
                timeout=600,
            )
            _settle(draft)
            draft.rename(root)
    return root


def _remove(directory: Path) -> None:
    """Remove a build; what debootstrap has mounted there, if it was killed, first."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in sorted(mounted, reverse=True):
        if directory in Path(path).parents:
            run("umount", path)
    shutil.rmtree(directory)


def _settle(root: Path) -> None:
    """Turn what debootstrap has installed into a host."""
    (root / "etc/ssh/sshd_config.d/lab.conf").write_text(_SSHD)
    for unit in _MASKED:
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    for name in ("etc/resolv.conf", "etc/hostname"):  # this machine's
        (root / name).unlink(missing_ok=True)
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one process at a time use an entry of the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
