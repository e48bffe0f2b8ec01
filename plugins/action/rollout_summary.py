# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums up a rollout. The module of the same name documents it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.rollout import (
    host_rollout,
    rollout_lines,
    trouble_text,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import natural
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet import show

ARGUMENTS = {"hosts": {"type": "list", "elements": "str", "required": True}}


class ActionModule(ActionBase):
    """Reads what the playbook has noted of each host, on the control node."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # it changes nothing
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Show the summary; fail if the rollout is not done on a host, or if there is no host."""
        super().run(tmp, task_vars)
        hosts = options_of(self._task.args, ARGUMENTS)["hosts"]
        variables = (task_vars or {})["hostvars"]
        if not hosts:
            return {"failed": True, "msg": "There is no host to roll out to: check forewarn_hosts and --limit."}
        rehearsed = bool(self._task.check_mode)
        rollouts = [host_rollout(host, variables[host], rehearsed) for host in sorted(hosts, key=natural)]
        show(rollout_lines(rollouts, rehearsed))
        trouble = trouble_text(rollouts)
        return {"failed": True, "msg": trouble} if trouble else {"changed": False}
