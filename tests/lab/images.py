# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file systems of the hosts: built once by debootstrap, and never written to afterwards.

There is one for each Debian release, and one with the software that hooks are tested against.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from . import software
from .machine import run

CACHE = Path(__file__).resolve().parent.parent.parent / ".cache" / "lab"
# Python 3.9 with systemd 247, 3.11 with 252, 3.13 with 257.
SUITES = ("bullseye", "bookworm", "trixie")
SOFTWARE = "bookworm-software"
IMAGES = (*SUITES, SOFTWARE)

_PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "openssh-server")
_SSHD = "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
# They would look for updates, or for file systems, that a host of the lab does not have.
_MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")
# What a built file system depends on, beside the release: another text here builds it anew.
_RELEASE_RECIPE = (1, _PACKAGES, _SSHD, _MASKED)
_SOFTWARE_RECIPE = (_RELEASE_RECIPE, software.RECIPE)


def root_file_systems(images: Iterable[str]) -> dict[str, Path]:
    """Return the root file system of each of some IMAGES; missing ones are built side by side. Raises LabError."""
    names = sorted(set(images))
    with ThreadPoolExecutor(max(1, len(names))) as pool:
        return dict(zip(names, pool.map(_root_file_system, names), strict=True))


def absent(images: Iterable[str] = SUITES) -> bool:
    """Return whether one of them must be built first, which takes minutes and a network."""
    return any(not _path(image).exists() for image in images)


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


def _path(image: str) -> Path:
    recipe = _SOFTWARE_RECIPE if image == SOFTWARE else _RELEASE_RECIPE
    return CACHE / f"{image}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:8]}"


def _root_file_system(image: str) -> Path:
    root = _path(image)
    with _locked(image):
        if not root.exists():
            for older in CACHE.glob(f"{image}-*"):  # a build that was ended, too; but not the lock of another image
                if older.is_dir() and older.name.rpartition("-")[0] == image:
                    _remove(older)
            draft = CACHE / f"{image}-new"
            if image == SOFTWARE:
                run("cp", "--archive", "--reflink=auto", _root_file_system("bookworm"), draft, timeout=600)
                software.install(draft)
            else:
                _install_release(image, draft)
            draft.rename(root)
    return root


def _install_release(suite: str, root: Path) -> None:
    run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", suite, root, timeout=600)
    _settle(root)


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
