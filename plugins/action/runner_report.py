# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the runner on a VM for its status, and on request for its history. The module of the same name documents it."""

from __future__ import annotations

from shlex import quote
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.host_answers import (
    PROGRAM,
    WINDOWS_PROGRAM,
    check_for_cmd,
    json_in,
    no_connection,
    no_report,
    one_line,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._windows import command_of, is_windows, quoted

ARGUMENTS = {"since": {"type": "str"}}


class ActionModule(ActionBase):
    """Runs one or two commands, without a module: the host needs no Python for that, and one exchange each."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # it changes nothing

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the reports. A host that has none fails with one sentence, also if it cannot be reached."""
        super().run(tmp, task_vars)
        since = options_of(self._task.args, ARGUMENTS)["since"]
        try:
            code, stdout, stderr = self._execute("status", "--json")
            report = json_in(stdout)[0]
            if report is None:
                program = WINDOWS_PROGRAM if is_windows(self._connection) else PROGRAM
                return {"failed": True, "msg": no_report(code, stdout, stderr, program)}
            history = None
            if since is not None:
                history = json_in(self._execute("history", "--json", "--since", since)[1])[0]
        except AnsibleConnectionFailure as error:
            return {"failed": True, "msg": no_connection(str(error))}
        except InputError as error:
            return {"failed": True, "msg": str(error)}
        except AnsibleError as error:  # of the privilege escalation, for example
            return {"failed": True, "msg": f"no status: {one_line(error)}"}
        return {"changed": False, "stdout": report, "history": history or ""}

    def _execute(self, *arguments: str) -> tuple[int, str, str]:
        if is_windows(self._connection):
            check_for_cmd(arguments)
            program, words = quoted(WINDOWS_PROGRAM), " ".join(map(quoted, arguments))
            command = (
                f"if (-not (Test-Path -LiteralPath {program})) {{ exit 127 }}; & {program} {words}; exit $LASTEXITCODE"
            )
            command = command_of(self._connection, command)
            result = self._low_level_execute_command(command, sudoable=False)  # whoever logs in is an administrator
        else:
            result = self._low_level_execute_command(f"{PROGRAM} {' '.join(map(quote, arguments))}")
        return int(result.get("rc") or 0), str(result.get("stdout") or ""), str(result.get("stderr") or "")
