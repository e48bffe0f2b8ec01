# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM with Windows that is not there: its files with their owners, its registry, and the service ``forewarn``.

What happens on it is in a file, which processes of Ansible read and write one after the other.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

INSTALL, DATA = r"C:\Program Files\Forewarn", r"C:\ProgramData\Forewarn"
ADMINISTRATORS = "S-1-5-32-544"
USER = "S-1-5-21-1-2-3-1001"  # who logs in: what Ansible copies belongs to him
_NEW = {
    "architecture": "AMD64",
    "administrator": True,
    "python": {},  # path of an installed one -> what it says of itself
    "files": {},  # path -> {content, owner, time}; a directory has no content
    "links": {},
    "permissions": {},  # directory -> [user, rights]
    "protected": [],  # directories that inherit no permissions
    "registry": {},
    "service": None,
    "process": None,
    "log": [],
    "deaf_interval": None,  # a runner with this interval is never answered
    "refusal": "",  # why the runner refuses any configuration
    "time": 0,
    "failing_scripts": {},  # name of a script of the role -> what Windows says
    "shell_fails": False,  # commands that come without a module
    "calls": [],
}


class WindowsHost:
    """The state of one VM."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """What is at each path. Windows compares paths without case, and this VM does not."""
        files: dict[str, dict[str, Any]] = self.state["files"]
        return files

    def resolve(self, path: str) -> str:
        """Return a path without the junction that it may lead through."""
        for link, target in self.state["links"].items():
            if path == link or path.startswith(f"{link}\\"):
                return f"{target}{path[len(link) :]}"
        return path

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a directory or a junction."""
        return path in self.state["links"] or self.resolve(path) in self.files

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if there is none."""
        entry = self.files.get(self.resolve(path), {})
        return base64.b64decode(entry["content"]) if "content" in entry else None

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file."""
        return hashlib.sha256(self.read(path) or b"").hexdigest()

    def write(self, path: str, content: bytes, owner: str = USER) -> None:
        """Write a file, whose directory has to be there."""
        parent = str(PureWindowsPath(path).parent)
        if "content" in self.files.get(parent, {"content": ""}):
            raise ValueError(f"Destination directory '{parent}' does not exist")
        self.state["time"] += 1
        kept = self.files.get(path, {}).get("owner", owner)
        self.files[path] = {
            "content": base64.b64encode(content).decode(),
            "owner": kept,
            "time": float(self.state["time"]),
        }

    def make_directory(self, path: str, owner: str = USER) -> None:
        """Create a directory, and those above it."""
        for each in [PureWindowsPath(path), *PureWindowsPath(path).parents]:
            self.state["time"] += 1
            self.files.setdefault(str(each), {"owner": owner, "time": float(self.state["time"])})

    def below(self, path: str) -> list[str]:
        """Return a path and what is below it."""
        return [each for each in self.files if each == path or each.startswith(f"{path}\\")]

    def asked(self, module: str) -> list[dict[str, Any]]:
        """Return the options of each task of a module, of the last play."""
        return [call["options"] for call in self.state["calls"] if call.get("module") == module]

    def remove(self, path: str) -> bool:
        """Remove a file or a whole directory; return whether there was one."""
        links = [each for each in self.state["links"] if each == path or each.startswith(f"{path}\\")]
        gone = self.below(path)
        for each in gone:
            del self.files[each]
        for each in links:
            del self.state["links"][each]
        return bool(gone or links)


@contextmanager
def opened(path: Path) -> Iterator[WindowsHost]:
    """Yield the VM whose state is in a file, and write it back."""
    state = {**json.loads(json.dumps(_NEW)), **(json.loads(path.read_text()) if path.exists() else {})}
    try:
        yield WindowsHost(state)
    finally:
        path.write_text(json.dumps(state))
