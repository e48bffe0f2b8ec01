# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with Windows for ``forewarn doctor``: its registry, its services, its tasks and its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from forewarn.cli.doctor.windows.machine import SERVICES, WindowsMachine
from forewarn.system.common.service_status import RUNNING, ServiceStatus

PYTHON, PYZ = r"C:\Program Files\Forewarn\python\pythonw.exe", r"C:\Program Files\Forewarn\forewarn.pyz"
EVENT_SOURCE = rf"{SERVICES}\EventLog\Application\forewarn"
PARAMETERS = rf"{SERVICES}\W32Time\Parameters"
HOST_CLOCK = rf"{SERVICES}\W32Time\TimeProviders\VMICTimeProvider"


def failure_actions(*kinds: int) -> bytes:
    """Return SERVICE_FAILURE_ACTIONS as the registry has it, with an action of each kind after a second."""
    header = (86_400, 0, 0, len(kinds), 20)
    return b"".join(
        number.to_bytes(4, "little") for number in (*header, *(each for kind in kinds for each in (kind, 1000)))
    )


class FakeWindowsMachine(WindowsMachine):
    """Builds the machine: a runner that is installed well, and nothing else that answers events."""

    def __init__(self, root: Path) -> None:
        super().__init__({"SystemRoot": r"C:\Windows"})
        self.root = root
        self.registry: dict[str, dict[str, object]] = {
            rf"{SERVICES}\forewarn": {
                "Type": 0x10,
                "Start": 2,
                "ImagePath": rf'"{PYTHON}" -I -S "{PYZ}" run --service --config "C:\ProgramData\Forewarn\config.json"',
                "FailureActions": failure_actions(1, 1, 1),
                "FailureActionsOnNonCrashFailures": 1,
            },
            rf"{SERVICES}\W32Time": {"Type": 0x20, "Start": 3, "ImagePath": r"%SystemRoot%\system32\svchost.exe"},
            EVENT_SOURCE: {"EventMessageFile": r"%SystemRoot%\System32\EventCreate.exe"},
            PARAMETERS: {"Type": "NTP"},
            HOST_CLOCK: {"Enabled": 1},
        }
        self.states: dict[str, ServiceStatus] = {
            name: ServiceStatus(name, RUNNING, 0, pid) for name, pid in (("forewarn", 900), ("W32Time", 800))
        }
        self.scheduled: dict[str, str] | None = {}  # None: they may not be read
        for path in (PYTHON, PYZ):
            self.write(path, "")

    @property
    def own(self) -> dict[str, object]:
        """The settings of the runner's service."""
        return self.registry[rf"{SERVICES}\forewarn"]

    def path(self, path: str) -> Path:
        return self.root.joinpath(*path.split("\\")[1:])

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine."""
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)

    def add_service(self, name: str, image: str, *, start: int = 2, kind: int = 0x10) -> None:
        """Add another service."""
        self.registry[rf"{SERVICES}\{name}"] = {"Type": kind, "Start": start, "ImagePath": image}

    def values(self, key: str) -> dict[str, object]:
        return self.registry.get(key, {})

    def subkeys(self, key: str) -> list[str]:
        return sorted(
            {name[len(key) + 1 :].partition("\\")[0] for name in self.registry if name.startswith(f"{key}\\")}
        )

    def service(self, name: str) -> ServiceStatus | None:
        return self.states.get(name)

    def tasks(self) -> Iterator[tuple[str, str]]:
        if self.scheduled is None:
            raise PermissionError(13, "Permission denied")
        yield from self.scheduled.items()
