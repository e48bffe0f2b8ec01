# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the PowerShell scripts of the role do on a VM that is not there. A script is known by its text.

That the scripts themselves do this was not tried: there is no PowerShell here.
"""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from tools.worlds.windows.host import ADMINISTRATORS, WindowsHost

SCRIPTS = Path(__file__).parents[4] / "roles" / "forewarn" / "files" / "windows"
Result = dict[str, Any]


def run(host: WindowsHost, script: str, parameters: Mapping[str, Any], check: bool) -> Result:
    """Run a script with its parameters, in check mode or not."""
    name = next(path.stem for path in SCRIPTS.glob("*.ps1") if path.read_text().strip() == script.strip())
    if name in host.state["failing_scripts"]:  # as win_powershell fails: without a msg
        return {"failed": True, "error": [{"exception": {"message": host.state["failing_scripts"][name]}}]}
    result: Result = globals()[f"_{name}"](host, parameters, check)
    return {"changed": False, "result": {}, **result}


def _look(host: WindowsHost, parameters: Mapping[str, Any], _check: bool) -> Result:
    python = host.state["python"].get(parameters["InstalledPython"], "")
    service = host.state["service"] or {}
    credentials = parameters["CredentialsDirectory"]
    brought = parameters["PythonDirectory"]
    return {
        "result": {
            "administrator": host.state["administrator"],
            "architecture": host.state["architecture"],
            "python": python,
            "windowed": bool(python),
            "brought": bool(brought) and host.exists(f"{brought}\\pythonw.exe"),
            "image": service.get("path", ""),
            "config": base64.b64encode(host.read(parameters["ConfigFile"]) or b"").decode(),
            "command": base64.b64encode(host.read(parameters["Command"]) or b"").decode(),
            "previous": base64.b64encode(host.read(parameters["PreviousFile"]) or b"").decode(),
            "credentials": [PureWindowsPath(path).name for path in host.below(credentials) if path != credentials],
            "hooks": PureWindowsPath(host.state["links"].get(parameters["HooksLink"], "")).name,
        }
    }


def _write(host: WindowsHost, parameters: Mapping[str, Any], check: bool) -> Result:
    path, content = parameters["Path"], base64.b64decode(parameters["Base64"], validate=True)
    before, kept = host.read(path), ""
    if before != content and not check:
        if before is not None and parameters.get("Backup"):
            kept = f"{path}.{host.state['time']:09}~"
            host.write(kept, before, ADMINISTRATORS)
        host.write(path, content, ADMINISTRATORS)
    diff = {"before": (before or b"").decode(), "after": content.decode(), "before_header": path, "after_header": path}
    return {"changed": before != content, "result": {"path": path, "backup_file": kept}, "diff": diff}


def _expand(host: WindowsHost, parameters: Mapping[str, Any], check: bool) -> Result:
    directory = parameters["Directory"]
    if host.exists(f"{directory}\\pythonw.exe"):
        return {}
    if not check:
        content = host.read(parameters["Zip"])
        assert content is not None
        host.remove(directory)
        host.make_directory(directory)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                host.write(f"{directory}\\{name}", archive.read(name))
    return {"changed": True}


def _link(host: WindowsHost, parameters: Mapping[str, Any], check: bool) -> Result:
    links, link, target = host.state["links"], parameters["Link"], parameters["Target"]
    changed = links.get(link) != target
    if changed and not check:
        links[link] = target
    return {"changed": changed}


def _service(host: WindowsHost, _parameters: Mapping[str, Any], _check: bool) -> Result:
    service, process = host.state["service"], host.state["process"]
    state = "" if service is None else "Running" if process else "Stopped"
    return {"result": {"state": state, "command_line": process["command_line"] if process else ""}}


def _log(host: WindowsHost, _parameters: Mapping[str, Any], _check: bool) -> Result:
    return {"result": {"lines": host.state["log"][-20:]}}
