# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The software that hooks are tested against, as Debian packages in a root file system. A boot starts none of it."""

from __future__ import annotations

import inspect
import os
import shutil
from pathlib import Path

from .machine import run

_PACKAGES = (
    *("haproxy", "nginx-light"),
    *("patroni", "postgresql-15", "etcd-server", "python3-psycopg2"),
    *("slurmctld", "slurmd", "slurm-client", "munge"),
    *("rabbitmq-server", "python3-pika"),
    *("mariadb-server", "mariadb-client", "galera-4", "rsync"),
    *("pacemaker", "pacemaker-cli-utils", "corosync"),
    *("curl", "iproute2", "procps"),
)
_SETTINGS = (
    # Each test makes the PostgreSQL cluster that it needs, most of them through Patroni.
    ("etc/postgresql-common/createcluster.d/lab.conf", "create_main_cluster = false\n"),
)
# Its port 80 is the emulated service's, on the metadata address.
_REMOVED = ("etc/nginx/sites-enabled/default",)
# Maintainer scripts ask this program whether a service may be started: 101 is no.
_POLICY = ("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
PATIENCE = 1_800.0  # seconds for the download and the installation, which take a minute where the mirror is fast
_ENVIRONMENT = ("DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "SYSTEMD_COLORS=0")


def software_recipe() -> str:
    """Return the text that a file system with the software depends on: another one builds it anew."""
    return repr((_PACKAGES, _SETTINGS, _REMOVED, _POLICY, _ENVIRONMENT)) + inspect.getsource(install_software)


def install_software(root: Path, packages: Path) -> None:
    """Install the software on a root file system that has a Debian release. Raises LabError.

    ``packages`` is a directory on the same file system, in which packages are kept for the next time.
    """
    for name, text in _SETTINGS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    policy, resolver = root / _POLICY[0], root / "etc/resolv.conf"
    policy.write_text(_POLICY[1])
    policy.chmod(0o755)
    shutil.copyfile("/etc/resolv.conf", resolver)  # this machine's, for the download
    before = _enabled(root)
    archives = root / "var/cache/apt/archives"
    for package in packages.glob("*.deb"):
        os.link(package, archives / package.name)
    _run_in(root, "apt-get", "-qq", "update")
    _run_in(
        *(root, "apt-get", "-qq", "--yes", "--no-install-recommends", "-o", "Dpkg::Options::=--force-unsafe-io"),
        *("install", *_PACKAGES),
    )
    if added := sorted(_enabled(root) - before):
        _run_in(root, "systemctl", "disable", *added)
    for package in archives.glob("*.deb"):
        if not (packages / package.name).exists():
            os.link(package, packages / package.name)
    _run_in(root, "apt-get", "clean")
    shutil.rmtree(root / "var/lib/apt/lists")
    for path in (policy, resolver, *(root / name for name in _REMOVED)):
        path.unlink()


def _enabled(root: Path) -> set[str]:
    """Return the units that a boot would start."""
    listed = _run_in(root, "systemctl", "list-unit-files", "--state=enabled", "--no-legend", "--no-pager", "--plain")
    return {line.split()[0] for line in listed.splitlines()}


def _run_in(root: Path, *command: str) -> str:
    """Run a program in a root file system. Its mounts and its processes end with it, also if this process is killed."""
    return run(
        *("setpriv", "--pdeathsig=KILL"),
        *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", f"--root={root}", "--mount-proc"),
        *("env", *_ENVIRONMENT, *command),
        timeout=PATIENCE,
    )
