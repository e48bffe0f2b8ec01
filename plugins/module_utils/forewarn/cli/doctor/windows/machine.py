# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that ``forewarn doctor`` looks at: its registry, its services and its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ....errors import InputError
from ....system import services
from ....system.common.service_status import ServiceStatus

SERVICES = r"SYSTEM\CurrentControlSet\Services"


class WindowsMachine:
    """The machine, and the environment of this process."""

    asset_tag_path = None  # not in a file

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ
        self.system_root = Path(self.environ.get("SYSTEMROOT", r"C:\Windows"))

    def values(self, key: str) -> dict[str, object]:
        """Return the values of a key of HKEY_LOCAL_MACHINE; none if it is not there, or may not be read."""
        import winreg

        found: dict[str, object] = {}
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
                for number in range(winreg.QueryInfoKey(opened)[1]):
                    name, value, _type = winreg.EnumValue(opened, number)
                    found[name] = value
        except OSError:
            return {}
        return found

    def subkeys(self, key: str) -> list[str]:
        """Return the names of the keys below one of HKEY_LOCAL_MACHINE."""
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
                return [winreg.EnumKey(opened, number) for number in range(winreg.QueryInfoKey(opened)[0])]
        except OSError:
            return []

    def service(self, name: str) -> ServiceStatus | None:
        """Return the status of a service, or None if there is none of that name, or it cannot be asked."""
        try:
            return services.query(name)
        except InputError:
            return None

    def service_settings(self, name: str) -> dict[str, object]:
        """Return the settings of a service; none if there is no such service."""
        return self.values(rf"{SERVICES}\{name}")

    def tasks(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the XML of each scheduled task. Raises PermissionError: administrators alone see all."""
        root = self.system_root / "System32" / "Tasks"
        for path in _files(root):
            yield str(path.relative_to(root)), _text(path.read_bytes())

    def path(self, path: str) -> Path:
        """Return where an absolute path of the machine is."""
        return Path(path)

    def unit_problem(self, _unit: str, _action: str) -> str | None:
        """Return None: the runner says of each unit of systemd that there is none."""
        return None


def _files(directory: Path) -> Iterator[Path]:
    for entry in sorted(directory.iterdir()):
        if entry.is_dir():
            yield from _files(entry)
        else:
            yield entry


def _text(content: bytes) -> str:
    return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
