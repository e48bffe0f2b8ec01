# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner on a VM that is not there: what it answers to commands, and what its service has loaded."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.worlds.windows.host import ADMINISTRATORS, DATA, INSTALL, WindowsHost

CONFIG = f"{DATA}\\config.json"
COMMAND = f"{INSTALL}\\forewarn.cmd"
_SERVICE = re.compile(
    r'"(?P<python>[^"]+)" -I -S -X forewarn=[0-9a-f]{16} "(?P<pyz>[^"]+)" run --service --config "(.+)"'
)
_COMMAND = re.compile(r'@"(?P<python>[^"]+)" -I -S -X utf8 "(?P<pyz>[^"]+)" %\*')
Answer = tuple[int, str, str]


def start(host: WindowsHost) -> bool:
    """Start the service; return whether it runs."""
    path = host.state["service"]["path"]
    match = _SERVICE.fullmatch(path)
    if match is None or match[3] != CONFIG or not _has_programs(host, match) or host.state["refusal"]:
        host.state["log"].append(f"the service does not start: {path}")
        return False
    config = host.read(CONFIG) or b""
    version = _version(host.read(match["pyz"]) or b"")
    host.state["process"] = {"command_line": path, "config": config.decode(), "version": version}
    host.state["log"].append("started")
    return True


def command(host: WindowsHost, argv: Sequence[str], stdin: str) -> Answer:
    """Run a program, which is the runner or the program that controls services."""
    if argv[0] == r"C:\Windows\System32\sc.exe":
        assert list(argv[1:]) == ["control", "forewarn", "paramchange"], argv
        host.state["process"]["config"] = (host.read(CONFIG) or b"").decode()
        host.state["log"].append("reloaded")
        return 0, "", ""
    if argv[0] == COMMAND:
        match = _COMMAND.fullmatch((host.read(COMMAND) or b"").decode())
        arguments = list(argv[1:])
    else:
        match = _COMMAND.fullmatch(f'@"{argv[0]}" {" ".join(argv[1:5])} "{argv[5]}" %*')
        arguments = list(argv[6:])
    if match is None or not _has_programs(host, match):
        return 1, "", f"The system cannot find the file specified: {argv[0]}"
    return _forewarn(host, arguments, stdin)


def _has_programs(host: WindowsHost, match: re.Match[str]) -> bool:
    return match["python"] in host.state["python"] or all(host.exists(match[name]) for name in ("python", "pyz"))


def _forewarn(host: WindowsHost, arguments: list[str], stdin: str) -> Answer:
    if arguments[:2] == ["run", "--check-config"]:
        return _check_config(host, arguments)
    if arguments[0] == "status":
        return 0, json.dumps(_status(host)), ""
    if arguments[0] == "credential":
        path, content = f"{DATA}\\credentials\\{arguments[1]}", hashlib.sha256(stdin.encode()).hexdigest().encode()
        said = "unchanged" if host.read(path) == content else "written"
        if said == "written":
            host.write(path, content, ADMINISTRATORS)
        return 0, said, ""
    if arguments[0] in ("pause", "resume", "history", "drill"):
        return 0, json.dumps({"asked": arguments}), ""
    return 2, "", f"forewarn: there is no command {arguments[0]}"


def _check_config(host: WindowsHost, arguments: list[str]) -> Answer:
    path = arguments[arguments.index("--config") + 1]
    content = host.read(path) or b"{}"
    artifact = json.loads(content).get("artifact", "")
    error = host.state["refusal"]
    for each in (path, artifact, f"{DATA}\\state", f"{DATA}\\credentials"):
        if not host.exists(each):
            error = f"there is no {each}"
        elif host.files[each]["owner"] != ADMINISTRATORS:
            error = f"{each} belongs to {host.files[each]['owner']}"
    report = {"usable": not error, "error": error, "config": _digest(content), "missing": []}
    return 2 if error else 0, json.dumps(report) if "--json" in arguments else "", error


def _status(host: WindowsHost) -> dict[str, Any]:
    process = host.state["process"]
    if process is None:
        return {"runner": {"condition": "stopped", "text": "stopped"}, "service": {"state": "unknown"}, "events": []}
    config = json.loads(process["config"])
    deaf = config["interval"] == host.state["deaf_interval"]
    return {
        "runner": {
            "condition": "running",
            "text": "running since 2026-01-01T00:00:00Z",
            "config": _digest(process["config"].encode()),
            "missing": [],
            "version": process["version"],
            "policies": ["web"],
            "policy": "sha256:0",
        },
        "service": {"state": "silent", "text": "does not answer"} if deaf else {"state": "ok", "text": "ok"},
        "events": [],
        "problems": [],
    }


def _digest(config: bytes) -> str:
    return hashlib.sha256(config).hexdigest()


def _version(pyz: bytes) -> str:
    """Return what the program says of its version. It is the one that a VM with Linux gets."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "forewarn.pyz")
        path.write_bytes(pyz)
        asked = subprocess.run(
            [sys.executable, "-I", str(path), "--version"], capture_output=True, text=True, check=True
        )
    return asked.stdout.split()[-1]
