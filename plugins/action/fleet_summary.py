# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows what the runners of a fleet report. The module of the same name documents it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import host_states
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.table import table, trouble_text
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet import show

ARGUMENTS = {"reports": {"type": "dict", "required": True}}


class ActionModule(ActionBase):
    """Runs once for all hosts, on the control node."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _supports_check_mode = True  # it changes nothing
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Show the table; fail if a host has trouble, or if there is no host."""
        super().run(tmp, task_vars)
        reports = options_of(self._task.args, ARGUMENTS)["reports"]
        if not reports:
            return {"failed": True, "msg": "No host was asked: check forewarn_hosts and --limit."}
        states = host_states(reports)
        show(table(states))
        trouble = trouble_text(states)
        return {"failed": True, "msg": trouble} if trouble else {"changed": False}
