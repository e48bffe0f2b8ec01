# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible connection to a VM with Windows that is not there, for the commands that plugins send without a module.

WINDOWS_VMS names a directory with the state of each host, ``NAME.json`` (``tools.worlds.windows.host``).
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

from tools.sites.connection import scripted_vm
from tools.worlds.windows import runner
from tools.worlds.windows.host import WindowsHost, opened

DOCUMENTATION = """
name: windows_vm
short_description: A VM with Windows that is not there
description: Answers from its state.
author: Forewarn maintainers (@forewarn)
options: {}
"""
# Over SSH, cmd.exe reads what is sent.
_ENCODED = re.compile(
    r"powershell(?:\.exe)? (?:-\w+ (?:Unrestricted )?)*-EncodedCommand ([A-Za-z0-9+/=]+)", re.IGNORECASE
)
_NO_POWERSHELL = (255, "", "-LiteralPath was unexpected at this time.")
_TEXT = "'((?:[^']|'')*)'"
_REPORT = re.compile(
    rf"if \(-not \(Test-Path -LiteralPath {_TEXT}\)\) \{{ exit 127 \}}; & '.+?' (.+); exit \$LASTEXITCODE"
)
_IN_USE = re.compile(
    rf"if \(Test-Path -LiteralPath {_TEXT}\) \{{ \[IO.File\]::ReadAllText\({_TEXT}\); .+ exit 0", re.DOTALL
)
_READ = re.compile(rf"\[IO.File\]::ReadAllText\({_TEXT}\)")
_BASE64 = re.compile(rf"\[Convert\]::ToBase64String\(\[IO.File\]::ReadAllBytes\({_TEXT}\)\)")


class Connection(scripted_vm.Connection):
    """What Ansible asks of a connection."""

    transport = "windows_vm"
    allow_executable = False
    module_implementation_preferences = (".ps1", "")
    _shell_type = "powershell"

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Answer one command."""
        path = Path(os.environ["WINDOWS_VMS"], f"{self._play_context.remote_addr}.json")
        with opened(path) as host:
            match = _ENCODED.fullmatch(cmd)
            script = base64.b64decode(match[1]).decode("utf-16-le") if match else ""
            host.state["calls"].append({"command": script or cmd})
            answers = match and not host.state["shell_fails"]
            code, stdout, stderr = _answer(host, script) if answers else _NO_POWERSHELL
        return code, stdout.encode(), stderr.encode()


def _answer(host: WindowsHost, cmd: str) -> tuple[int, str, str]:
    match = _REPORT.fullmatch(cmd)
    if match:
        if not host.exists(match[1]):
            return 127, "", ""
        return runner.command(host, [match[1], *re.findall(_TEXT, match[2])], "")
    match = _IN_USE.fullmatch(cmd)
    if match:
        return 0, _in_use(host, match[1]), ""
    for pattern in (_READ, _BASE64):
        match = pattern.fullmatch(cmd)
        content = host.read(match[1]) if match else None
        if content is not None:
            return 0, content.decode() if pattern is _READ else base64.b64encode(content).decode(), ""
    return 1, "", f"The term '{cmd}' is not recognized"


def _in_use(host: WindowsHost, file: str) -> str:
    content = host.read(file)
    if content is None:
        return json.dumps({}) + "\r\n"
    policies = host.below(file.rpartition("\\")[0] + "\\policies")
    digests = "".join(f"{host.digest(path)}  {path}\r\n" for path in policies if path.endswith(".json"))
    return f"{content.decode()}\r\n{digests}"
