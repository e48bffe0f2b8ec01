# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image that is being built: a root file system in which nothing runs, and to which Ansible connects by chroot."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from types import TracebackType

from ..images import root_file_systems
from ..machine import environment
from ..places import Place

NAME = "image"  # in the inventory
# Ansible appends the command, quoted for a remote shell. Nothing is mounted there, not even /proc.
_SSH = '#!/bin/sh\nfor command; do :; done\nexec chroot {root} /bin/sh -c "$command"\n'


class Chroot:
    """``with Chroot("trixie") as image: …`` has a root file system of its own at ``image.root``, until it ends."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._place = Place.take()
        self.root = self._place.root

    def inventory(self) -> str:
        """Return an Ansible inventory of this one host. The plugin for SSH runs a program that changes the root."""
        ssh = self.root.parent / "ssh-to-chroot"
        ssh.write_text(_SSH.format(root=shlex.quote(str(self.root))))
        ssh.chmod(0o755)
        host = {"ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped"}
        return json.dumps({"all": {"hosts": {NAME: host}}}) + "\n"

    def run(self, command: str) -> str:
        """Run a shell command there, and return its output. Raises CalledProcessError."""
        words = ["chroot", str(self.root), "/bin/sh", "-c", command]
        return subprocess.run(words, env=environment(), check=True, capture_output=True, text=True).stdout

    def path(self, path: str) -> Path:
        """Return where an absolute path of the image is."""
        return self.root / path.lstrip("/")

    def __enter__(self) -> Chroot:
        self._place.insert_disk(root_file_systems([self._suite])[self._suite])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.leave()
