# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for ``forewarn doctor``: a tree of files, its processes, and what systemd answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from forewarn.cli.doctor.linux.machine import CommandResult, Machine

UNIT = "forewarn.service"
HEALTHY = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "UnitFileState": "enabled",
    "NRestarts": "0",
    "Result": "success",
    "NeedDaemonReload": "no",
    "MainPID": "900",
    "ActiveEnterTimestampMonotonic": "1000000000",
}


class FakeMachine(Machine):
    """Builds the machine: ``units`` are properties by name, ``files`` the text of ``systemctl cat``.

    Without systemd no command answers. ``clock`` is what timedatectl says of the synchronisation.
    """

    def __init__(self, root: Path, *, systemd: bool = True, clock: str | None = "yes") -> None:
        super().__init__(str(root), self._answer, {})
        self.units: dict[str, dict[str, str]] = {UNIT: dict(HEALTHY)}
        self.unit_files: dict[str, str] = {UNIT: "[Service]\n"}
        self.ran: list[Sequence[str]] = []
        self._systemd, self._clock = systemd, clock
        self.write("/proc/net/tcp", _table())
        self.process(1, "/sbin/init", parent=0)

    def write(self, path: str, text: str) -> Path:
        """Write a file of the machine."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def process(self, pid: int, *argv: str, parent: int = 1, sockets: Sequence[int] = ()) -> None:
        """Add a process; ``sockets`` are the inodes that it has open."""
        self.write(f"/proc/{pid}/cmdline", "".join(f"{word}\0" for word in argv))
        self.write(f"/proc/{pid}/stat", f"{pid} (a ) (name) S {parent} {pid} 0 0")
        directory = self.path(f"/proc/{pid}/fd")
        directory.mkdir()
        (directory / "0").symlink_to("/dev/null")
        for number, inode in enumerate(sockets, 3):
            (directory / str(number)).symlink_to(f"socket:[{inode}]")

    def connect(self, address: str, *inodes: int) -> None:
        """Replace the table of connections: one to an IPv4 address for each inode."""
        self.write("/proc/net/tcp", _table(*((address, inode) for inode in inodes)))

    def unit(self, name: str, text: str, **properties: str) -> None:
        """Add a unit file of the administrator."""
        self.write(f"/etc/systemd/system/{name}", text)
        self.units[name] = {"LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "disabled", **properties}

    def _answer(self, argv: Sequence[str]) -> CommandResult | None:
        self.ran.append(argv)
        if argv[0] == "timedatectl":
            return None if self._clock is None else CommandResult(0, f"NTPSynchronized={self._clock}\n")
        if not self._systemd:
            return None
        if argv[1] == "--version":
            return CommandResult(0, "systemd 252 (252.38-1~deb12u1)\n+PAM +AUDIT\n")
        name = argv[-1]
        if argv[1] == "cat":
            text = self.unit_files.get(name)
            return CommandResult(1, "") if text is None else CommandResult(0, text)
        wanted = argv[2].partition("=")[2].split(",")
        found: Mapping[str, str] = self.units.get(name, {"LoadState": "not-found", "ActiveState": "inactive"})
        return CommandResult(0, "".join(f"{key}={found.get(key, '')}\n" for key in wanted))


def _table(*connections: tuple[str, int]) -> str:
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
    for number, (address, inode) in enumerate(connections):
        remote = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
        lines.append(
            f"   {number}: 0400000A:C350 {remote}:0050 01 00000000:00000000 00:00000000 00000000  0  0 {inode} 1 0"
        )
    return "\n".join(lines) + "\n"
