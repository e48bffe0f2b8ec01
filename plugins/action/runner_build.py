# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``runner_build``: builds on the control node what a VM gets. The module documents options and results.

Results are kept below Ansible's home directory: the next run with the same inputs has them at once.
Only the parameters of each host, and its group, are checked in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.cli.run.group import check_limits
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import paths_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError, InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.events import LATEST_API_VERSION
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.build import build
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.hooks import sandbox_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import load_file
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.runner.groups.settings import (
    GroupSettings,
    group_settings,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import cache, find_file, options_of

_OPTIONS = {
    "policies": {"type": "list", "elements": "str", "default": []},
    "git": {"type": "str", "default": ""},
    "ref": {"type": "str", "default": "HEAD"},
    "api_version": {"type": "str", "default": LATEST_API_VERSION},
    "params": {"type": "dict", "default": {}},
    "hooks": {"type": "list", "elements": "str", "default": []},
    "reference": {"type": "str", "default": ""},
    "gate": {"type": "str", "default": "error", "choices": ["error", "warn"]},
    "signing_key": {"type": "str", "default": ""},
    "signers": {"type": "list", "elements": "str", "default": []},
    "group": {"type": "str", "default": ""},
    "group_members": {"type": "list", "elements": "str", "default": []},
    "group_store": {"type": "dict", "default": {}},
    "dry_run": {"type": "bool", "default": False},
    "target": {"type": "str", "default": "any", "choices": ["any", "linux", "windows"]},
}
_KINDS = ("run", "unit", "http")  # beside those of hook_kinds
_DIGITS = 16  # of a digest, in a file's name
_COMMIT_DIGITS = 12


class ActionModule(ActionBase):
    """Builds once for all hosts of a run with the same options."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        super().run(tmp, task_vars)
        options = options_of(self._task.args, _OPTIONS)
        home = Path((task_vars or {}).get("playbook_dir") or ".")
        try:
            paths_of(options["policies"])  # which are not empty: where they are is another question
            paths, hooks = options["policies"], options["hooks"]
            if not options["git"]:
                paths, hooks = ([str(find_file(path, home)) for path in named] for named in (paths, hooks))
            reference = str(find_file(options["reference"], home)) if options["reference"] else ""
            built = build(
                paths,
                options["git"],
                options["ref"],
                options["api_version"],
                hooks,
                cache(),
                reference,
                options["target"],
                str(find_file(options["signing_key"], home)) if options["signing_key"] else "",
            )
            if options["signers"] and not built["signature"]:
                hint = "Set forewarn_signing_key, or name an artifact with its signature beside it."
                raise InputError("The host takes only signed policies, and these are not signed.", hint)
            artifact = load_file(built["artifact"])
            policies = PolicySet(artifact, options["params"])
            group = _group(options)
            if not options["dry_run"]:
                check_limits(policies, group)
        except ForewarnError as error:
            return {"failed": True, "msg": f"Nothing was rolled out. {error}"}
        objections = built["objections"]
        if objections and options["gate"] == "error":
            return {"failed": True, "msg": "\n\n".join(["Nothing was rolled out.", *objections])}
        hooks_used = list(policies.every_hook())
        kinds = {hook.get("kind") or next(kind for kind in _KINDS if kind in hook) for hook in hooks_used}
        sandbox, writable = sandbox_of(hooks_used)
        name = artifact.digest.partition(":")[2][:_DIGITS]
        commit = f"-{built['commit'][:_COMMIT_DIGITS]}" if built["commit"] else ""
        serial = f"-{built['serial']}" if built["signature"] else ""
        return {
            **built,
            "changed": False,
            "api_version": artifact.api_version,
            "digest": artifact.digest,
            "name": f"policy-{name}{commit}{serial}.json",
            "policy_names": list(policies.names),
            "hooks": sorted(kinds),
            "hooks_need": sandbox,
            "hooks_write": writable,
            "warnings": [*objections, *built["remarks"]],
            "msg": f"{', '.join(policies.names)}: {artifact.digest}{_origin(built['source'])}",
        }


def _group(options: Mapping[str, Any]) -> GroupSettings | None:
    """Return the group that the options name, None if they name none. Raises InputError, as the runner would."""
    name, members, store = (options[option] or None for option in ("group", "group_members", "group_store"))
    if name is None and members is None and store is None:
        return None
    try:
        return group_settings(name, members, store, PureWindowsPath if options["target"] == "windows" else Path)
    except InputError as error:
        raise InputError(f"The group of this host: {error.message}", error.hint) from error


def _origin(source: Mapping[str, Any]) -> str:
    """Return where policies come from, for people."""
    named = [f"{name} {source[name]}" for name in ("repository", "ref", "commit") if source[name]]
    return f", from {', '.join(named)}{', with changes' if source['modified'] else ''}" if named else ""
