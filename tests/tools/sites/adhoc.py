# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the real ``ansible`` command with this checkout as the collection, and reads its default output."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program

MODULE = "forewarn.azure.scheduled_events"
_HOST = re.compile(r"^(\S+) \| (CHANGED|SUCCESS|FAILED|UNREACHABLE)!? => (?=\{)", re.MULTILINE)
_QUIET = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
}


@dataclass(frozen=True)
class Outcome:
    """The result of a run of ``ansible``: CHANGED, SUCCESS or FAILED of each host, and what the module returned."""

    code: int
    status: dict[str, str]
    results: dict[str, dict[str, Any]]
    stdout: str
    stderr: str

    def only(self) -> dict[str, Any]:
        """Return the result of the only host."""
        (result,) = self.results.values()
        return result


class AdHoc:
    """``ansible`` in a directory of its own, without the user's configuration."""

    def __init__(self, directory: Path, collections_path: Path) -> None:
        self.directory = directory
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            **_QUIET,
            "ANSIBLE_HOME": str(directory / "home"),
            "ANSIBLE_REMOTE_TEMP": str(directory / "remote"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections_path),
        }
        (directory / "ansible.cfg").write_text("[defaults]\n")

    def run(
        self,
        hosts: Mapping[str, Mapping[str, Any]],
        args: Mapping[str, Any],
        *options: str,
        module: str = MODULE,
        environ: Mapping[str, str | None] | None = None,
        python: str = sys.executable,
    ) -> Outcome:
        """Run the module on hosts, all of them this machine, with their variables. None unsets a variable."""
        common = {"ansible_connection": "local", "ansible_python_interpreter": python}
        inventory = {"all": {"hosts": {name: {**common, **variables} for name, variables in hosts.items()}}}
        (self.directory / "inventory.json").write_text(json.dumps(inventory))
        merged: dict[str, str | None] = {**self.environ, **(environ or {})}
        process = run_program(
            *(ansible("ansible"), "all", "-i", "inventory.json", "-m", module, "-a", json.dumps(args), *options),
            cwd=self.directory,
            env={name: value for name, value in merged.items() if value is not None},
        )
        status, results = {}, {}
        for match in _HOST.finditer(process.stdout):
            status[match[1]] = match[2]
            results[match[1]], _end = json.JSONDecoder().raw_decode(process.stdout, match.end())
        return Outcome(process.returncode, status, results, process.stdout, process.stderr)

    def vm(self, endpoint: str, args: Mapping[str, Any], *options: str, **others: Any) -> Outcome:
        """Run the module on one VM, which finds its service at ``endpoint``, in one attempt."""
        return self.run({"vm": {}}, {"endpoint": endpoint, "patience": 0, **args}, *options, **others)
