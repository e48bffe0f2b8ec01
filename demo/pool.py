# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A load balancer's pool made of files, its users, and the hooks that take a VM out of it and put it back."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from stage import ROOT, StageError

HOOKS = ROOT / "demo" / "hooks"
# The directory of the hooks in demo/policy.yml. Nothing runs from there.
PLACEHOLDER = "/opt/forewarn-demo"


class Pool:
    """``directory`` gets the hooks, and what they work on: ``pool/VM`` and ``users/VM-NUMBER``."""

    def __init__(self, directory: Path, vms: Iterable[str]) -> None:
        self.directory = directory
        for name in ("pool", "users"):
            (directory / name).mkdir(parents=True)
        for hook in HOOKS.iterdir():
            # A copy, since the runner trusts only programs that nobody else can change: a checkout may be shared.
            copy = Path(shutil.copy(hook, directory))
            copy.chmod(0o755)
        for vm in vms:
            self.put_back(vm)

    def policy(self, source: Path, target: Path) -> None:
        """Write a policy file whose hooks are those of this pool."""
        text = source.read_text(encoding="utf-8")
        if PLACEHOLDER not in text:
            raise StageError(f"{source} has no hooks in {PLACEHOLDER}")
        target.write_text(text.replace(PLACEHOLDER, str(self.directory)), encoding="utf-8")

    def members(self) -> list[str]:
        """Return the VMs that get requests."""
        return sorted(path.name for path in (self.directory / "pool").iterdir())

    def put_back(self, vm: str) -> None:
        """Send requests to a VM."""
        (self.directory / "pool" / vm).touch()

    def take_out(self, vm: str) -> None:
        """Send no more requests to a VM."""
        (self.directory / "pool" / vm).unlink()

    def connect(self, vm: str, number: int) -> None:
        """Let some users work on a VM."""
        for user in range(1, number + 1):
            (self.directory / "users" / f"{vm}-{user}").touch()

    def users(self) -> list[Path]:
        """Return the present users; each leaves when its file is removed."""
        return sorted((self.directory / "users").iterdir())
