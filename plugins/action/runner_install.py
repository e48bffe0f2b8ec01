# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``runner_install``: brings files to a VM and runs their service. Options and results are documented in the module.

A module of Ansible's is 125 kB on its way to a VM, and each file of a role takes two of them. This sends a script of a
few kB, and of the files those that differ.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.plugin_utils import _on_vm
from ansible_collections.forewarn.azure.plugins.plugin_utils._control_node import options_of

_PATHS = {"type": "list", "elements": "str", "default": []}
_FILE = {
    "path": {"type": "str", "required": True},
    "mode": {"type": "str", "required": True},
    "content": {"type": "str"},
    "source": {"type": "str"},
    "archive": {"type": "bool", "default": False},
    "backup": {"type": "bool", "default": False},
    "unit": {"type": "bool", "default": False},
}
_OPTIONS = {
    "python": {"type": "str", "default": "/usr/bin/python3"},
    "directories": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"path": {"type": "str", "required": True}, "mode": {"type": "str", "required": True}},
    },
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": _FILE,
        "mutually_exclusive": [["content", "source"]],
        "required_one_of": [["content", "source"]],
    },
    "service": {
        "type": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "restart_for": _PATHS,
            "reload_for": _PATHS,
        },
    },
    "absent": _PATHS,
    "restore": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "path": {"type": "str", "required": True},
            "backup": {"type": "str", "required": True},
            "mode": {"type": "int", "required": True},
        },
    },
    "keep": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "pattern": {"type": "str", "required": True},
            "number": {"type": "int", "required": True},
            "but": _PATHS,
        },
    },
}


class ActionModule(ActionBase):
    """Looks first, and changes what differs."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        super().run(tmp, task_vars)
        options = options_of(self._task.args, _OPTIONS)
        request = {**options, "files": [_file(entry) for entry in options["files"]]}
        for entry in request["directories"]:
            entry["mode"] = _mode(entry["mode"])
        directory = self._connection._shell.tmpdir or self._make_tmp_path()
        try:
            if options["restore"]:
                return self._restore(directory, request)
            if options["absent"]:
                return self._remove(directory, request)
            if options["keep"]:
                return self._prune(directory, request)
            return self._install(directory, request)
        finally:
            self._remove_tmp_path(directory)

    def _install(self, directory: str, request: dict[str, Any]) -> dict[str, Any]:
        found = self._on_vm(directory, request, "look")
        if found.get("error"):
            return {"failed": True, "msg": found["error"], "backups": []}
        differing = [entry["path"] for entry in found["files"] if entry["differs"]]
        idle = found["service"] is not None and not (found["service"]["active"] and found["service"]["enabled"])
        result: dict[str, Any] = {
            "changed": bool(differing or found["directories"] or idle),
            "touched": [*found["directories"], *differing],
            "backups": [],
            "service_was": None,
            "diff": _diffs(request["files"], found["files"]),
        }
        if self._task.check_mode or not (result["changed"] or (found["service"] or {}).get("stale")):
            return result
        for number, entry in enumerate(request["files"]):
            if entry["source"] is not None and entry["path"] in differing:
                remote = self._connection._shell.join_path(directory, f"file-{number}")
                self._transfer_file(entry["source"], remote)
                entry["source"] = remote
        done = self._on_vm(directory, request, "apply")
        result.update(backups=done.get("backups", []), service_was=done.get("did"))
        if done["error"]:
            result.update(failed=True, msg=done["error"])
        return result

    def _restore(self, directory: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._task.check_mode:
            return {"changed": True}
        done = self._on_vm(directory, request, "restore")
        result = {"changed": True, "service_was": done.get("did")}
        return {**result, "failed": True, "msg": done["error"]} if done["error"] else result

    def _remove(self, directory: str, request: dict[str, Any]) -> dict[str, Any]:
        if not request["service"]:
            raise AnsibleActionFail("absent: name the service too.")
        done = self._on_vm(directory, {**request, "rehearsal": self._task.check_mode}, "remove")
        if done.get("error"):
            return {"failed": True, "msg": done["error"]}
        diffs = [{"before_header": path, "before": "present\n", "after": "absent\n"} for path in done["removed"]]
        changed = bool(done["removed"] or done["did"])
        return {"changed": changed, "removed": done["removed"], "service_was": done["did"], "diff": diffs}

    def _prune(self, directory: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._task.check_mode:
            return {"changed": False, "removed": []}
        done = self._on_vm(directory, request, "prune")
        if done.get("error"):
            return {"failed": True, "msg": done["error"]}
        return {"changed": bool(done["removed"]), "removed": done["removed"]}

    def _on_vm(self, directory: str, request: dict[str, Any], what: str) -> dict[str, Any]:
        """Send script and request, and return the answer. Raises AnsibleActionFail if there is none."""
        script = Path(_on_vm.__file__).read_text(encoding="utf-8")
        asked = json.dumps({**request, "do": what})
        remote = self._connection._shell.join_path(directory, f"{what}.py")
        self._transfer_data(remote, f"{script}\n\nmain({asked!r})\n")
        command = f"{shlex.quote(request['python'])} -I -S {shlex.quote(remote)}"
        done = self._low_level_execute_command(command)
        for line in done["stdout"].splitlines():
            if line.startswith(_on_vm.MARK):
                answer: dict[str, Any] = json.loads(line[len(_on_vm.MARK) :])
                return answer
        said = (done["stderr"] or done["stdout"]).strip() or f"exit code {done['rc']}"
        raise AnsibleActionFail(f"{request['python']} on the VM did not do its work: {said}")


def _file(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent to the VM about a file."""
    source, content = entry["source"], entry["content"]
    try:
        raw = content.encode() if source is None else Path(source).read_bytes()
    except OSError as error:
        raise AnsibleActionFail(f"{source}, on the control node: {error.strerror}") from error
    digest = _on_vm.digest_of(raw, entry["archive"])
    if digest is None:
        raise AnsibleActionFail(f"{entry['path']}: what is to be brought there is not a ZIP archive, or a damaged one.")
    return {
        **entry,
        "mode": _mode(entry["mode"]),
        "digest": digest,
        "show": source is None,
    }


def _diffs(wanted: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return a difference for each file: the text of those that are made here, the digest of others."""
    diffs = []
    for entry, there in zip(wanted, found):  # both in the order of the request
        if not there["differs"]:
            continue
        after = entry["content"] if entry["show"] else f"sha256 {entry['digest']}\n"
        before = there["text"] if entry["show"] else f"sha256 {there['digest']}\n" if there["digest"] else ""
        place = entry["path"]
        diffs.append({"before_header": place, "after_header": place, "before": before, "after": after})
    return diffs


def _mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError as error:
        raise AnsibleActionFail(f"mode {text!r}: write it in octal, as a text, such as '0644'.") from error
