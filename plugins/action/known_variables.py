# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses variables that the collection does not know. The module of the same name documents it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import names
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._variables import unknown

ARGUMENTS = {"hosts": {"type": "list", "elements": "str", "default": []}}
_MOST_NAMES = 5


class ActionModule(ActionBase):
    """Looks only at the names of variables, on the control node."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # it changes nothing
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail if there is a variable that the collection does not know."""
        super().run(tmp, task_vars)
        hosts = options_of(self._task.args, ARGUMENTS)["hosts"]
        variables = task_vars or {}
        of_hosts = {host: unknown(variables["hostvars"][host]) for host in hosts}
        found = unknown(variables)
        for each in of_hosts.values():
            found.update(each)
        if not found:
            return {"changed": False}
        lines = [
            _line(name, meant, [host for host in hosts if name in of_hosts[host]], len(hosts))
            for name, meant in sorted(found.items())
        ]
        return {"failed": True, "msg": "\n".join([*lines, "Nothing was changed."])}


def _line(name: str, meant: str | None, on: list[str], of: int) -> str:
    where = f" (on {names(on, _MOST_NAMES)})" if 0 < len(on) < of else ""
    hint = (
        f"Did you mean {meant}?"
        if meant
        else "docs/rollout.md and 'ansible-doc -t role forewarn.azure.forewarn' list those that it has. Give a "
        "variable of your own a name that does not begin with forewarn_."
    )
    return f"{name} is no variable of forewarn.azure{where}. {hint}"
