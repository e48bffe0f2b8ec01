# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules of ``ansible.windows`` do on a VM that is not there, as far as the role uses them.

A module returns the task's result. Its options are judged by whoever calls it.
"""

from __future__ import annotations

import fnmatch
import hashlib
from pathlib import Path, PureWindowsPath
from typing import Any

from tools.worlds.windows import runner, scripts
from tools.worlds.windows.host import WindowsHost

Result = dict[str, Any]
Options = dict[str, Any]


def perform(host: WindowsHost, module: str, options: Options, check: bool) -> Result:
    """Run one module, in check mode or not."""
    result: Result = globals()[f"_{module}"](host, options, check)
    return result


def _failed(message: str) -> Result:
    return {"failed": True, "msg": message}


def _win_file(host: WindowsHost, options: Options, check: bool) -> Result:
    path, wanted = options["path"], options["state"] == "directory"
    changed = host.exists(path) != wanted
    if changed and not check:
        if wanted:
            host.make_directory(path)
        else:
            host.remove(path)
    return {"changed": changed}


def _win_acl(host: WindowsHost, options: Options, check: bool) -> Result:
    if not host.exists(options["path"]):
        return _failed(f"{options['path']} file or directory does not exist on the host")
    permissions = host.state["permissions"].setdefault(options["path"], [])
    wanted = [options["user"], options["rights"] if options["type"] == "allow" else f"no {options['rights']}"]
    changed = wanted not in permissions
    if changed and not check:
        permissions.append(wanted)
    return {"changed": changed}


def _win_acl_inheritance(host: WindowsHost, options: Options, check: bool) -> Result:
    if not host.exists(options["path"]):
        return _failed(f"{options['path']} does not exist")
    changed = (options["path"] in host.state["protected"]) == (options.get("state") == "present")
    if changed and not check and options.get("state") != "present":
        host.state["protected"].append(options["path"])
    return {"changed": changed}


def _win_owner(host: WindowsHost, options: Options, check: bool) -> Result:
    if not host.exists(options["path"]):
        return _failed(f"{options['path']} file or directory does not exist on the host")
    paths = host.below(options["path"]) if options.get("recurse") else [options["path"]]
    others = [path for path in paths if host.files[path]["owner"] != options["user"]]
    for path in [] if check else others:
        host.files[path]["owner"] = options["user"]
    return {"changed": bool(others)}


def _win_copy(host: WindowsHost, options: Options, check: bool) -> Result:
    content = Path(options["src"]).read_bytes()
    changed = host.read(options["dest"]) != content
    if changed and not check:
        host.write(options["dest"], content)
    return {"changed": changed, "dest": options["dest"]}


def _win_stat(host: WindowsHost, options: Options, _check: bool) -> Result:
    content = host.read(options["path"])
    found = {} if content is None else {"checksum": hashlib.sha1(content).hexdigest()}
    return {"changed": False, "stat": {"exists": host.exists(options["path"]), **found}}


def _win_find(host: WindowsHost, options: Options, _check: bool) -> Result:
    files = [
        {"path": path, "lastwritetime": entry["time"]}
        for path, entry in host.files.items()
        if str(PureWindowsPath(path).parent) in options["paths"]
        and ("content" in entry) == (options.get("file_type", "file") == "file")
        and any(fnmatch.fnmatchcase(PureWindowsPath(path).name, each) for each in options.get("patterns", ["*"]))
    ]
    return {"changed": False, "files": files}


def _win_regedit(host: WindowsHost, options: Options, check: bool) -> Result:
    registry, path = host.state["registry"], options["path"]
    if options.get("state") == "absent":
        changed = path in registry
        if not check:
            registry.pop(path, None)
        return {"changed": changed}
    wanted = [options["data"], options["type"]]
    changed = registry.get(path, {}).get(options["name"]) != wanted
    if changed and not check:
        registry.setdefault(path, {})[options["name"]] = wanted
    return {"changed": changed}


def _win_service(host: WindowsHost, options: Options, check: bool) -> Result:
    wanted = {name: value for name, value in options.items() if name not in ("name", "state")}
    service, state = host.state["service"], options.get("state")
    if service is None and state == "absent":
        return {"changed": False}
    if service is None and "path" not in wanted:
        return _failed(f"Service '{options['name']}' is not installed, need to set 'path' to create a new service")
    changed = service is None or any(service.get(name) != value for name, value in wanted.items())
    changed = changed or state in ("restarted", "absent") or (state == "stopped" and host.state["process"] is not None)
    if check or not changed:
        return {"changed": changed}
    host.state["service"] = {**(service or {}), **wanted}
    if state in ("restarted", "stopped", "absent"):
        host.state["process"] = None
    if state == "absent":
        host.state["service"] = None
    if state == "restarted" and not runner.start(host):
        return _failed(f"Failed to start service: Service '{options['name']}' cannot be started due to an error")
    return {"changed": True}


def _win_powershell(host: WindowsHost, options: Options, check: bool) -> Result:
    return scripts.run(host, options["script"], options.get("parameters", {}), check)


def _win_command(host: WindowsHost, options: Options, check: bool) -> Result:
    if check:
        return {"changed": False, "skipped": True, "msg": "remote module (win_command) does not support check mode"}
    code, stdout, stderr = runner.command(host, options["argv"], options.get("stdin", ""))
    lines = {"stdout_lines": stdout.splitlines(), "stderr_lines": stderr.splitlines()}
    result = {"changed": True, "rc": code, "stdout": stdout, "stderr": stderr, **lines}
    return {**result, "failed": True, "msg": "non-zero return code"} if code else result
