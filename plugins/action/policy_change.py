# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what a host has with what a rollout would bring. The module of the same name documents it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.host_answers import (
    json_in,
    no_connection,
    one_line,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.proofs import Changes, changes
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.rollout import settings_dropped
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import mapping, policy_in_use
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import Artifact, load, load_file
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import cache, options_of
from ansible_collections.forewarn.azure.plugins.plugin_utils._host_files import FileCommands, file_commands
from ansible_collections.forewarn.azure.plugins.plugin_utils._windows import command_of, is_windows

_OPTIONS = {
    "artifact": {"type": "str", "default": ""},
    "config": {"type": "dict", "default": {}},
    "config_file": {"type": "str", "default": "/etc/forewarn/config.json"},
    "own_policies": {"type": "bool", "default": False},
    "live_unsaid": {"type": "bool", "default": False},
    "accept_less": {"type": "bool", "default": False},
}
_NOTHING: Mapping[str, Any] = {
    "before": None,
    "after": None,
    "changes": [],
    "params": [],
    "dropped": [],
    "doubt": "",
    "refusal": "",
}


class _InUse(NamedTuple):
    """What a host has: its configuration, its policies, and why these cannot be read, if so."""

    config: Mapping[str, Any]
    policies: Artifact | None
    doubt: str = ""
    digests: Mapping[str, str] = {}  # SHA-256 of the files beside the configuration, by path


class ActionModule(ActionBase):
    """Runs one command on the host, and a second one on the first host that has these policies in use."""

    TRANSFERS_FILES = False
    _supports_check_mode = True  # it changes nothing

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what is in use and what would change, with a refusal if this has to be said by name first."""
        super().run(tmp, task_vars)
        options = options_of(self._task.args, _OPTIONS)
        try:
            answer = self._answer(options)
        except AnsibleConnectionFailure as error:
            answer = {"asked": False, "doubt": no_connection(str(error))}
        except AnsibleError as error:  # of the privilege escalation, for example
            answer = {"asked": False, "doubt": one_line(error)}
        except (ForewarnError, ValueError) as error:
            answer = {"doubt": one_line(error)}
        doubt = "" if answer.get("refusal") else answer.get("doubt")
        host = str((task_vars or {}).get("inventory_hostname"))
        warnings = [f"Not compared with what is in use: {doubt}"] if doubt else []
        return {"changed": False, "asked": True, **_NOTHING, **answer, "host": host, "warnings": warnings}

    def _answer(self, options: Mapping[str, Any]) -> dict[str, Any]:
        used = self._in_use(options["config_file"])
        config, goes_back = options["config"], not options["artifact"]
        if not goes_back:
            new = load_file(options["artifact"])
        elif used is not None:
            previous = self._ran(self._commands.previous(options["config_file"]))[1]
            config = {**used.config, **json.loads(json_in(previous)[0] or "{}")}
            new = self._policies(str(config.get("artifact")), used.digests)
        if used is None:
            return {} if goes_back else {"after": _policy(new)}
        change = Changes(doubt=used.doubt) if used.policies is None else changes(used.policies, new, cache())
        answer = {
            "before": None if used.policies is None else _policy(used.policies),
            "after": _policy(new),
            "changes": list(change.all),
            "params": _other_params(used.config, config),
            "dropped": settings_dropped(used.config, config),
            "doubt": change.doubt,
        }
        return answer if goes_back else {**answer, "refusal": "\n".join(_refusals(options, used, answer, change.less))}

    def _in_use(self, file: str) -> _InUse | None:
        """Return what is in use, None if there is nothing."""
        code, stdout = self._ran(self._commands.in_use(file))
        text, rest = json_in(stdout)
        if code:
            return _InUse({}, None, f"{file} cannot be read: the command for it ended with exit code {code}")
        if text == "{}":
            return None
        if text is None:
            return _InUse({}, None, f"{file} is damaged")
        config = json.loads(text)
        path = str(config.get("artifact") or "")
        digests = {words[1]: words[0] for line in rest.splitlines() if len(words := line.split()) == 2}
        try:
            return _InUse(config, self._policies(path, digests), "", digests)
        except (ForewarnError, ValueError) as error:
            return _InUse(config, None, f"{path} cannot be read: {error}", digests)

    def _policies(self, path: str, digests: Mapping[str, str]) -> Artifact:
        """Return policies of the host: kept ones of that digest, or read now. Raises InputError, ValueError."""

        def read() -> bytes:
            return b64decode("".join(self._ran(self._commands.base64(path))[1].split()))

        def belongs(content: bytes) -> bool:
            return sha256(content).hexdigest() == digests[path]

        return load(cache().once("in-use", digests[path], read, bytes, belongs) if path in digests else read())

    @property
    def _commands(self) -> FileCommands:
        return file_commands(is_windows(self._connection))

    def _ran(self, command: str) -> tuple[int, str]:
        if is_windows(self._connection):  # whoever logs in there is an administrator
            result = self._low_level_execute_command(command_of(self._connection, command), sudoable=False)
        else:
            result = self._low_level_execute_command(command)
        return int(result.get("rc") or 0), str(result.get("stdout") or "")


def _policy(artifact: Artifact) -> dict[str, Any]:
    """Return an artifact's policies as a runner reports them."""
    names = [policy["name"] for policy in artifact.data["policies"]]
    return {"policies": names, "policy": artifact.digest, "source": dict(artifact.source or {})}


def _other_params(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    before, after = (mapping(config.get("params")) for config in (old, new))
    return sorted(name for name in {**before, **after} if before.get(name) != after.get(name))


def _refusals(
    options: Mapping[str, Any], used: _InUse, answer: Mapping[str, Any], less: Sequence[str]
) -> Iterator[str]:
    before, rehearsed = answer["before"], used.config.get("dry_run") or options["config"].get("dry_run")
    if options["own_policies"] and (before is None or before["policies"] != answer["after"]["policies"]):
        yield _no_policies(before)
    elif not rehearsed and not options["accept_less"]:
        yield from _less(answer, less)
    if options["live_unsaid"] and used.config.get("dry_run"):
        yield _LIVE


def _no_policies(before: Mapping[str, Any] | None) -> str:
    named = "policies that cannot be read" if before is None else str(policy_in_use(before))
    return (
        f"In use is {named}. No policies are named, and the role's own, which approves nothing, would replace it. Set "
        "forewarn_policies or forewarn_policies_git, or say by name that you mean it: forewarn_policies: []"
    )


_LIVE = (
    "In use is a dry run, and forewarn_dry_run is not set: the runner would approve events from now on. Say which one "
    "you mean: forewarn_dry_run: true or false."
)


def _less(answer: Mapping[str, Any], less: Sequence[str]) -> list[str]:
    found = []
    if less:
        lines = "\n".join(f"  {line}" for line in less)
        after, before = policy_in_use(answer["after"]), policy_in_use(answer["before"])
        found.append(f"{after} does less than {before}, which is in use:\n{lines}")
    if answer["dropped"]:
        found.append(f"In use, and no longer set: {', '.join(answer['dropped'])}.")
    return [*found, "If you mean it, say so for this rollout: -e forewarn_accept_less=true"] if found else []
