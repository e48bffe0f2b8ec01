# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays on VMs with Windows that are not there, by the real ``ansible-playbook``.

A stand-in for ``ansible.windows`` has only the names of its modules. A callback, which Ansible loads first, has
whatever is to run there simulated, after its options were held against the documentation of the module.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.ansible_windows import MODULES, documented_options
from tools.sites.commands import run_program
from tools.worlds.windows.host import WindowsHost, opened

TOOLS = Path(__file__).parents[2]
_CALLBACK = """\
import json, os
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase
from ansible_collections.forewarn.azure.plugins.action import policy_change, runner_build
from tools.sites.ansible_windows import mistakes
from tools.worlds.windows.host import opened
from tools.worlds.windows.modules import perform

DOCUMENTED = json.loads(Path(os.environ["WINDOWS_OPTIONS"]).read_text())
really = ActionBase._execute_module


def execute(self, module_name=None, module_args=None, *args, **kwargs):
    name = module_name or self._task.action
    if not name.startswith("ansible.windows."):
        return really(self, module_name, module_args, *args, **kwargs)
    module, options = name.rpartition(".")[2], json.loads(json.dumps(module_args or self._task.args))
    with opened(Path(os.environ["WINDOWS_VMS"], self._play_context.remote_addr + ".json")) as host:
        host.state["calls"].append({"module": module, "options": options, "check": self._task.check_mode})
        wrong = mistakes(module, options, DOCUMENTED[module])
        if wrong:
            return {"failed": True, "msg": "; ".join(wrong)}
        return perform(host, module, options, self._task.check_mode)


ActionBase._execute_module = execute


class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "windows", True
"""


class PlaybookRun(NamedTuple):
    """How a playbook ended."""

    code: int
    text: str

    def changed(self, host: str) -> int:
        """Return how many tasks have changed something on a host."""
        (recap,) = (line for line in self.text.splitlines() if line.startswith(f"{host} ") and "changed=" in line)
        return int(recap.partition("changed=")[2].split()[0])


class WindowsPlays:
    """Runs playbooks in a directory, with a stand-in for ``ansible.windows`` unless it is to be missing."""

    def __init__(self, directory: Path, collections_path: Path, repository: Path, missing: bool = False) -> None:
        self.directory = directory
        self.vms = directory / "vms"
        self.vms.mkdir()
        modules = directory / "collections" / "ansible_collections" / "ansible" / "windows" / "plugins" / "modules"
        modules.mkdir(parents=True)
        for name in [] if missing else MODULES:
            (modules / f"{name}.ps1").write_text("")
        (directory / "options.json").write_text(json.dumps(documented_options(repository)))
        (directory / "windows.py").write_text(_CALLBACK)
        sites = repository / "tests" / "tools" / "sites"
        # The stand-in comes first, so that an ansible.windows of this machine is not used.
        self.environ = {
            **AdHoc(directory, collections_path).environ,
            "ANSIBLE_COLLECTIONS_PATH": f"{directory / 'collections'}:{collections_path}",
            "ANSIBLE_CONNECTION_PLUGINS": f"{sites / 'connection'}:{sites / 'windows_connection'}",
            "ANSIBLE_CALLBACK_PLUGINS": str(directory),
            "ANSIBLE_CALLBACKS_ENABLED": "windows",
            "PWD": str(directory),
            "PYTHONPATH": str(TOOLS),
            "WINDOWS_OPTIONS": str(directory / "options.json"),
            "WINDOWS_VMS": str(self.vms),
            "SCRIPTED_VMS": str(self.vms),
        }
        self.hosts: dict[str, dict[str, Any]] = {}

    def host(self, name: str, **variables: Any) -> None:
        """Add a VM, or replace its variables."""
        self.hosts[name] = {"ansible_connection": "windows_vm", "ansible_become": False, **variables}

    def copy(self, name: str, other: str) -> None:
        """Add a VM that is as another one is now, with its variables."""
        self.host(other, **self.hosts[name])
        (self.vms / f"{other}.json").write_text((self.vms / f"{name}.json").read_text())

    def vm(self, name: str) -> WindowsHost:
        """Return a VM as it is now."""
        with opened(self.vms / f"{name}.json") as host:
            return host

    def change(self, name: str, **state: Any) -> None:
        """Set parts of the state of a VM."""
        with opened(self.vms / f"{name}.json") as host:
            host.state.update(state)

    def play(self, playbook: str, *options: str, limit: str = "all", **variables: Any) -> PlaybookRun:
        """Run a playbook of the collection, or a text, on some of the hosts."""
        for path in self.vms.glob("*.json"):
            if path.stem in self.hosts and self.hosts[path.stem]["ansible_connection"] == "windows_vm":
                self.change(path.stem, calls=[])
        (self.directory / "hosts.json").write_text(json.dumps({"all": {"hosts": self.hosts}}))
        (self.directory / "given.json").write_text(json.dumps(variables))
        if "\n" in playbook:
            (self.directory / "play.yml").write_text(playbook)
            playbook = "play.yml"
        command = [
            ansible("ansible-playbook"),
            "-i",
            "hosts.json",
            "-e",
            "@given.json",
            "--limit",
            limit,
            *options,
            playbook,
        ]
        process = run_program(*command, cwd=self.directory, env=self.environ, timeout=300)
        return PlaybookRun(process.returncode, process.stdout + process.stderr)


def embeddable(path: Path, minor: int = 13, machine: int = 0x8664) -> Mapping[str, str]:
    """Write a zip file that looks like python.org's embeddable distribution; return what names it."""
    program = b"MZ".ljust(0x3C, b"\0") + (0x40).to_bytes(4, "little") + b"PE\0\0" + machine.to_bytes(2, "little")
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("python.exe", "pythonw.exe", f"python3{minor}.dll", f"python3{minor}._pth"):
            archive.writestr(zipfile.ZipInfo(name), program)
    return {"zip": str(path), "sha256": sha256(path.read_bytes()).hexdigest()}
