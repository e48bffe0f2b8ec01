# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible connection to a VM that is not there: it answers the runner's commands from a file.

SCRIPTED_VMS names a directory with a JSON file for each host: ``unreachable`` (Ansible's message), or ``status``,
``history``, ``in_use`` (configuration), ``file`` (compiled policies), ``preflight`` and ``other`` (commands), each a
list of an exit code, the standard output and the standard error. ``asked`` beside it counts the commands.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: scripted_vm
short_description: A VM that is not there
description: Answers from a file.
author: Forewarn maintainers (@forewarn)
options: {}
"""


class Connection(ConnectionBase):  # type: ignore[misc]  # ansible-core has no types
    """What Ansible asks of a connection."""

    transport = "scripted_vm"
    has_pipelining = False

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def close(self) -> None:
        """Do nothing."""
        self._connected = False

    def put_file(self, in_path: str, out_path: str) -> None:
        """Refuse: nothing is sent to ask for a report."""
        raise NotImplementedError(f"{in_path} -> {out_path}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Refuse: nothing is fetched to ask for a report."""
        raise NotImplementedError(f"{in_path} -> {out_path}")

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Answer one command."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        script: dict[str, Any] = json.loads(
            Path(os.environ["SCRIPTED_VMS"], f"{self._play_context.remote_addr}.json").read_text()
        )
        if "unreachable" in script:
            raise AnsibleConnectionFailure(script["unreachable"])
        known = {"status": "forewarn status --json", "history": "forewarn history --json"}
        known |= {"in_use": "sha256sum", "file": "base64 ", "preflight": "user=$(id -u)"}
        which = next((name for name, part in known.items() if part in cmd), "other")
        with Path(os.environ["SCRIPTED_VMS"], "asked").open("a") as asked:
            asked.write(f"{self._play_context.remote_addr} {which}\n")
        code, stdout, stderr = script.get(which) or script["other"]
        return code, stdout.encode(), stderr.encode()
