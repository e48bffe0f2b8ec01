# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ad-hoc command: the real ``ansible``, with this checkout as the collection and without the user's settings."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stage import ROOT, Stage, StageError

POLICY = "demo/policy.yml"
_ARGUMENTS = f"policies={POLICY} apply=true endpoint={{{{ endpoint }}}}"
_LINE = re.compile(r"^(\S+) \| (?:SUCCESS|CHANGED) => (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True)
class AdHoc:
    """``ansible all`` on VMs that are all this machine, each with its own endpoint in the emulator."""

    stage: Stage
    vms: tuple[str, ...]

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        return f"ansible all -m forewarn.azure.scheduled_events -a '{_ARGUMENTS}'"

    def run(self) -> Mapping[str, Any]:
        """Run it; return each VM's result. Raises StageError if a result is missing."""
        directory = self.stage.directory
        collections = directory / "collections"
        self._checked(
            [sys.executable, str(ROOT / "tests" / "tools" / "sites" / "link_collection.py"), str(collections)], {}
        )
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts = {vm: {**local, "endpoint": self.stage.emulator.vm_endpoint(vm)} for vm in self.vms}
        inventory = directory / "inventory.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        (directory / "ansible.cfg").write_text("[defaults]\n")
        environ = {
            "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(directory / "ansible"),
            "ANSIBLE_REMOTE_TEMP": str(directory / "ansible" / "remote"),
            "ANSIBLE_NOCOLOR": "1",
        }
        ansible = str(Path(sys.executable).parent / "ansible")
        options = ["-i", str(inventory), "-m", "forewarn.azure.scheduled_events", "-a", _ARGUMENTS, "--one-line"]
        output = self._checked([ansible, "all", *options], environ)
        results = {vm: json.loads(result) for vm, result in _LINE.findall(output)}
        if set(results) != set(self.vms):
            raise StageError(f"ansible did not answer for all of {', '.join(self.vms)}:\n{output}")
        return dict(sorted(results.items()))

    def _checked(self, argv: list[str], environ: dict[str, str]) -> str:
        try:
            code, output, errors = self.stage.command(argv, environ)
        except FileNotFoundError as error:
            raise StageError(f"{argv[0]} is missing: pip install --editable '.[ansible]'") from error
        if code:
            raise StageError(f"{Path(argv[0]).name} ended with {code}:\n{output}{errors}")
        return output
