# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the runner on a VM for its status, and on request for its history. The module of the same name documents it."""

from __future__ import annotations

from shlex import quote
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.host_answers import (
    PROGRAM,
    json_in,
    no_connection,
    no_report,
    one_line,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of

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
            code, stdout, stderr = self._execute(f"{PROGRAM} status --json")
            report = json_in(stdout)[0]
            if report is None:
                return {"failed": True, "msg": no_report(code, stdout, stderr)}
            history = None
            if since is not None:
                history = json_in(self._execute(f"{PROGRAM} history --json --since {quote(since)}")[1])[0]
        except AnsibleConnectionFailure as error:
            return {"failed": True, "msg": no_connection(str(error))}
        except AnsibleError as error:  # of the privilege escalation, for example
            return {"failed": True, "msg": f"no status: {one_line(error)}"}
        return {"changed": False, "stdout": report, "history": history or ""}

    def _execute(self, command: str) -> tuple[int, str, str]:
        result = self._low_level_execute_command(command)
        return int(result.get("rc") or 0), str(result.get("stdout") or ""), str(result.get("stderr") or "")
