# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file systems of the hosts: built once by debootstrap, and never written to afterwards.

There is one for each Debian release, and one with the software that hooks are tested against. All checkouts of a user
share them: the name of each ends with a digest of what goes into it, so that another recipe is another file system.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .debian_packages import PATIENCE, install_software, software_recipe
from .machine import run

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forewarn-lab"
# Python 3.9 with systemd 247, 3.11 with 252, 3.13 with 257.
SUITES = ("bullseye", "bookworm", "trixie")
SOFTWARE = "bookworm-software"
IMAGES = (*SUITES, SOFTWARE)

_PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "openssh-server")
_SSHD = "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\n"
# They would look for updates, or for file systems, that a host of the lab does not have.
_MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")
_UNUSED_SECONDS = 30 * 86_400.0  # after which a file system or a package is removed


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
    """Return where an image is: another recipe of its own, or of the image below it, is another path."""
    recipe = [repr((_PACKAGES, _SSHD, _MASKED)), *(inspect.getsource(step) for step in (_install_release, _settle))]
    if image == SOFTWARE:
        recipe.append(software_recipe())
    return CACHE / f"{image}-{hashlib.sha256(''.join(recipe).encode()).hexdigest()[:8]}"


def _root_file_system(image: str) -> Path:
    root = _path(image)
    with _locked(image):
        if not root.exists():
            _tidy(image)
            draft, packages = CACHE / f"{image}-new", _packages(image)
            if image == SOFTWARE:
                run("cp", "--archive", "--reflink=auto", _root_file_system("bookworm"), draft, timeout=PATIENCE)
                install_software(draft, packages)
            else:
                _install_release(image, draft, packages)
            draft.rename(root)
        _used(root).touch()
    return root


def _tidy(image: str) -> None:
    """Remove a build of an image that was ended, what no checkout has used for a while, and packages of back then."""
    now = time.time()
    for root in CACHE.glob(f"{image}-*"):  # but not the lock of another image
        if root.is_dir() and root.name.rpartition("-")[0] == image:
            used = _used(root)
            if not used.exists() or used.stat().st_mtime < now - _UNUSED_SECONDS:
                _remove(root)
                used.unlink(missing_ok=True)
    for package in _packages(image).iterdir():
        if package.stat().st_mtime < now - _UNUSED_SECONDS:
            package.unlink()


def _used(root: Path) -> Path:
    """Return the file whose time says when a file system was last asked for."""
    return root.with_name(f"{root.name}.used")


def _packages(image: str) -> Path:
    """Return the directory with the packages that were downloaded for an image."""
    directory = CACHE / "packages" / image
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _install_release(suite: str, root: Path, packages: Path) -> None:
    include = f"--include={','.join(_PACKAGES)}"
    run("debootstrap", "--variant=minbase", f"--cache-dir={packages}", include, suite, root, timeout=PATIENCE)
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
