# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible connection to a VM that is not there: it writes down what it is asked, and does nothing.

It answers as a VM does where the role ``forewarn`` goes well. Each host has a file in the directory that the
environment variable PRETENDED_VMS names, with a JSON object a line: a request of ``runner_install``, or a command.
PRETENDED_VERSION is the version of the runner that works there; without one the metadata service never answers it.
"""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: pretend_vm
short_description: A VM that is not there
description: Writes down what it is asked.
author: Forewarn maintainers (@forewarn)
options: {}
"""
_DIRECTORY = "/pretended/tmp"  # the directory that Ansible believes it made on the VM
_ANSWERS: dict[str, dict[str, Any]] = {
    "apply": {"error": "", "backups": [], "did": "started"},
    "remove": {"removed": [], "did": None},
    "prune": {"removed": []},
    "restore": {"error": "", "did": None},
}


class Connection(ConnectionBase):  # type: ignore[misc]  # ansible-core has no types
    """What Ansible asks of a connection."""

    transport = "pretend_vm"
    has_pipelining = False

    def _connect(self) -> Connection:
        self._connected = True
        self._sent: dict[str, str] = getattr(self, "_sent", {})
        return self

    def put_file(self, in_path: str, out_path: str) -> None:
        """Keep a script that is to be run, and write down of an artifact which one it is."""
        super().put_file(in_path, out_path)
        content = Path(in_path).read_bytes()
        if out_path.endswith(".py"):
            self._sent[out_path] = content.decode()
        elif content.startswith(b"{"):
            self._write({"artifact": json.loads(content)["digest"]})

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Refuse: the role fetches nothing."""
        raise NotImplementedError(f"{in_path} -> {out_path}")

    def close(self) -> None:
        """Do nothing."""
        self._connected = False

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Answer one command."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return 0, f"{self._answer(cmd)}\n".encode(), b""

    def _answer(self, command: str) -> str:
        for path, script in self._sent.items():
            if path in command and "rm -f" not in command:
                return self._install(script)
        if "mkdir" in command or "rm -f" in command:
            return _DIRECTORY
        self._write({"command": command})
        if "user=$(id -u)" in command:
            return "user=0\npython=3.11\nsystemd=252"
        if " status " in command and "PRETENDED_VERSION" in os.environ:
            return json.dumps(self._status())
        return ""

    def _install(self, script: str) -> str:
        """Answer ``runner_install``, whose script ends with a call: ``main('{...}')``."""
        (argument,) = re.findall(r"^main\((.+)\)$", script, re.MULTILINE)
        (mark,) = re.findall(r'^MARK = "(.+?)"', script, re.MULTILINE)
        request = json.loads(ast.literal_eval(argument))
        self._write({"request": request})
        if request["do"] == "look":
            files = [{"path": entry["path"], "differs": True, "digest": None, "text": ""} for entry in request["files"]]
            service = {"active": False, "enabled": False, "stale": False}
            answer: dict[str, Any] = {"files": files, "directories": [], "service": service}
        else:
            answer = _ANSWERS[request["do"]]
        return f"{mark}{json.dumps(answer)}"

    def _status(self) -> dict[str, Any]:
        """Return what the runner that was installed would say."""
        lines = [json.loads(line) for line in self._record().read_text().splitlines()]
        (digest,) = (line["artifact"] for line in lines if "artifact" in line)
        (applied,) = (line["request"] for line in lines if line.get("request", {}).get("do") == "apply")
        (config,) = (json.loads(file["content"]) for file in applied["files"] if file["path"].endswith("/config.json"))
        runner = {
            "condition": "running",
            "dry_run": config.get("dry_run", False),
            "policy": digest,
            "version": os.environ["PRETENDED_VERSION"],
        }
        return {"runner": runner, "service": {"state": "ok"}}

    def _write(self, entry: dict[str, Any]) -> None:
        with self._record().open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _record(self) -> Path:
        return Path(os.environ["PRETENDED_VMS"], f"{self._play_context.remote_addr}.jsonl")
