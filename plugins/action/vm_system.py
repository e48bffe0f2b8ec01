# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out which system a VM has, and what Windows needs here. The module of the same name documents it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.windows_python import windows_python
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import find_file, options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._windows import INSTALL, is_windows

_OPTIONS = {"windows_python": {"type": "raw"}}
_MODULE = "ansible.windows.win_powershell"


class ActionModule(ActionBase):
    """Asks nobody: the shell that Ansible talks to there says which system it is."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # it changes nothing
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the system, or fail with what is to be done for Windows first."""
        super().run(tmp, task_vars)
        options = options_of(self._task.args, _OPTIONS)
        if not is_windows(self._connection):
            return {"changed": False, "system": "linux", "python": {}}
        home = Path((task_vars or {}).get("playbook_dir") or ".")
        try:
            self._check_control_node()
            wanted = "windows_python" in self._task.args
            python = windows_python(options["windows_python"], lambda name: find_file(name, home)) if wanted else {}
        except InputError as error:
            return {"failed": True, "msg": f"{error} Nothing was changed."}
        return {"changed": False, "system": "windows", "python": python}

    def _check_control_node(self) -> None:
        """Raise InputError if Ansible cannot manage a VM with Windows from here, or not as it was told to."""
        if self._shared_loader_obj.module_loader.find_plugin(_MODULE, mod_type=".ps1") is None:
            raise InputError(
                "This VM has Windows, and the collection ansible.windows is not installed on the control node.",
                f"Install it: {INSTALL}",
            )
        become = self._connection.become
        if become is not None and become.name.rpartition(".")[2] != "runas":
            raise InputError(
                f"This VM has Windows, where become has no method {become.name}.",
                "Log in there as an administrator, and set ansible_become: false for it; or set ansible_become_method: "
                "runas and ansible_become_user: SYSTEM.",
            )
