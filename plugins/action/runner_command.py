# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a command of the runner on a VM, whichever system that has. The module of the same name documents it."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.host_answers import (
    PROGRAM,
    WINDOWS_PROGRAM,
    check_for_cmd,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._windows import is_windows

ARGUMENTS = {
    "arguments": {"type": "list", "elements": "str", "required": True},
    "program": {"type": "list", "elements": "str", "default": []},
    "stdin": {"type": "str", "no_log": True},
}


class ActionModule(ActionBase):
    """Runs the module of the VM's system that runs a command without a shell."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # as these modules do: they skip a command

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returns."""
        super().run(tmp, task_vars)
        options = options_of(self._task.args, ARGUMENTS)
        stdin = {} if options["stdin"] is None else {"stdin": options["stdin"]}
        if not is_windows(self._connection):
            argv = [*(options["program"] or [PROGRAM]), *options["arguments"]]
            # Without a newline, which a secret does not have; and an argument such as a reason is a text, no variable.
            more: dict[str, Any] = {"stdin_add_newline": False, "expand_argument_vars": False}
            return self._run("ansible.legacy.command", {"argv": argv, **stdin, **more}, task_vars)
        program = options["program"] or [WINDOWS_PROGRAM]
        if program[0].lower().endswith(".cmd"):
            try:
                check_for_cmd(options["arguments"])
            except InputError as error:
                raise AnsibleActionFail(str(error)) from error
        return self._run("ansible.windows.win_command", {"argv": [*program, *options["arguments"]], **stdin}, task_vars)

    def _run(self, module: str, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(module_name=module, module_args=options, task_vars=task_vars)
        return result
