# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control node's part of ``scheduled_events``: the VM reads and approves, the policies decide here.

The module of the same name documents options and results.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.adhoc.decisions import decide_and_approve
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.adhoc.task import (
    ARGUMENTS,
    POLICY_ARGUMENTS,
    perform,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import paths_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.policies import (
    PoliciesRefusedError,
    find_artifact,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.proofs import warnings
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.imds.endpoint import Endpoint
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet
from ansible_collections.forewarn.azure.plugins.plugin_utils import _windows
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import cache, options_of

MODULE = "forewarn.azure.scheduled_events"


class ActionModule(ActionBase):
    """Passes to the module the options that are not about policies."""

    TRANSFERS_FILES = False
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        super().run(tmp, task_vars)
        args = dict(self._task.args)
        options = options_of({name: args.pop(name) for name in POLICY_ARGUMENTS if name in args}, POLICY_ARGUMENTS)
        if not options["policies"]:
            for name in ("apply", "params"):
                if options[name]:
                    raise AnsibleActionFail(f"{name} can be used only with policies: name the policy files too.")
            return self._on_vm(args, task_vars, wrap_async=bool(self._task.async_val))
        for name in ("approve", "document_incarnation", "events_digest"):
            if args.get(name):
                raise AnsibleActionFail(
                    f"{name} and policies exclude each other: either you decide, or the policies do (with apply: true)."
                )
        if self._task.async_val:
            raise AnsibleActionFail(
                "async and policies exclude each other: policies are decided here when the VM has answered. Leave "
                "async (-B) out, and raise forks to ask more VMs at once; or leave policies out, and use the filter "
                "forewarn.azure.decide on the result of the finished job."
            )
        try:
            paths_of(options["policies"])  # refuses an empty one; the next line finds them
            paths = [Path(self._find_needle("policies", path)).resolve() for path in options["policies"]]
            artifact = find_artifact(paths, args.get("api_version"), cache())
            policy_set = PolicySet(artifact, options["params"])
        except PoliciesRefusedError as error:
            return {"failed": True, "msg": str(error), "findings": error.findings}
        except ForewarnError as error:
            return {"failed": True, "msg": str(error)}
        args["api_version"] = artifact.api_version

        def ask(more: Mapping[str, Any]) -> dict[str, Any]:
            return self._on_vm({**args, **more}, task_vars)

        result = decide_and_approve(policy_set, ask, options["apply"], self._task.check_mode)
        # An artifact was verified where it was compiled, and the libraries for that may be missing here.
        compiled_here = not any(path.suffix == ".json" for path in paths)
        found = [
            *result.get("warnings", []),
            *(warnings(artifact, options["params"], cache()) if compiled_here else []),
        ]
        return {**result, **({"warnings": found} if found else {}), "policy_paths": [str(path) for path in paths]}

    def _on_vm(
        self, args: Mapping[str, Any], task_vars: dict[str, Any] | None, wrap_async: bool = False
    ) -> dict[str, Any]:
        if _windows.is_windows(self._connection):
            return self._on_windows(args, task_vars)
        result: dict[str, Any] = self._execute_module(
            module_name=MODULE, module_args=dict(args), task_vars=task_vars, wrap_async=wrap_async
        )
        return result

    def _on_windows(self, args: Mapping[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Do on the control node what the module does on a VM; each request is a separate task."""
        if self._task.async_val:
            raise AnsibleActionFail("async is not supported on Windows: leave async (-B) out.")
        if self._shared_loader_obj.module_loader.find_plugin(_windows.MODULE, mod_type=".ps1") is None:
            raise AnsibleActionFail(
                f"On Windows the requests are sent by {_windows.MODULE}, which is not installed here. Install it: "
                + _windows.INSTALL
            )
        transports: list[_windows.WindowsTransport] = []

        def execute(options: dict[str, Any]) -> dict[str, Any]:
            answer: dict[str, Any] = self._execute_module(
                module_name=_windows.MODULE, module_args=options, task_vars=task_vars
            )
            return answer

        def transport(endpoint: Endpoint) -> _windows.WindowsTransport:
            transports.append(_windows.WindowsTransport(execute, endpoint))
            return transports[-1]

        def clock() -> datetime:
            return transports[-1].now()

        warnings: list[str] = []
        result = perform(
            options_of(args, ARGUMENTS),
            self._task.check_mode,
            warnings.append,
            environ={},  # the control node's says nothing about the VM
            transport=transport,
            clock=clock,
        )
        return {**result, **({"warnings": warnings} if warnings else {})}
