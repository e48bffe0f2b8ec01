# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that ``forewarn doctor`` looks at: its files, and what systemd says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from ....system import firmware
from ....system.programs import SEARCH_PATH

_UNIT_FAULTS = {
    "not-found": "systemd knows no such unit",
    "masked": "the unit is masked",
    "bad-setting": "the unit's file has a setting that systemd refuses",
    "error": "systemd could not load the unit",
}
_COMMAND_SECONDS = 20.0
_MOST_BYTES = 1024 * 1024


class CommandResult(NamedTuple):
    """What a command wrote to standard output, and its exit code."""

    code: int
    text: str


def run_command(argv: Sequence[str]) -> CommandResult | None:
    """Run a command that only reads; return None if there is no such program, or it takes too long."""
    environment = {"PATH": SEARCH_PATH, "LANG": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the programs are systemd's
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_COMMAND_SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return CommandResult(done.returncode, done.stdout.decode("utf-8", "replace"))


class Machine:
    """The machine: its files below ``root``, its commands, and the environment of this process."""

    def __init__(
        self,
        root: str = "/",
        command: Callable[[Sequence[str]], CommandResult | None] = run_command,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.root = Path(root)
        self.command = command
        self.environ = os.environ if environ is None else environ
        self.asset_tag_path = str(self.path(firmware.ASSET_TAG))

    def path(self, path: str) -> Path:
        """Return where an absolute path of the machine is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> bytes:
        """Return the beginning of a file, up to 1 MiB. Raises OSError."""
        with self.path(path).open("rb") as file:
            return file.read(_MOST_BYTES)

    def properties(self, unit: str, *names: str) -> dict[str, str] | None:
        """Return properties of a unit of systemd, by ``systemctl show``; None if systemd does not answer."""
        output = self.command(["systemctl", "show", f"--property={','.join(names)}", "--", unit])
        if output is None or output.code != 0:
            return None
        pairs = (line.partition("=") for line in output.text.splitlines())
        return {name: value for name, equals, value in pairs if equals}

    def unit_problem(self, unit: str, action: str) -> str | None:
        """Return why systemd would not ``start`` or ``stop`` a unit, or None: also where systemd does not say."""
        state = (self.properties(unit, "LoadState") or {}).get("LoadState", "")
        if state == "masked" and action == "stop":  # it may be running all the same
            return None
        return f"unit {unit}: {_UNIT_FAULTS[state]}" if state in _UNIT_FAULTS else None
