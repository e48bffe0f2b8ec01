# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that modules of ``ansible.windows`` document, from PyPI's package ``ansible``."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tools.sites.requirements import lacking

MODULES = (
    "win_acl",
    "win_acl_inheritance",
    "win_command",
    "win_copy",
    "win_file",
    "win_find",
    "win_owner",
    "win_powershell",
    "win_regedit",
    "win_service",
    "win_stat",
    "win_uri",
)
_FRAGMENT = "web_request.py"  # of win_uri
_INSIDE = "ansible_collections/ansible/windows/plugins"
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "path": str,
    "bool": bool,
    "int": int,
    "dict": dict,
    "list": list,
    "raw": object,
}


def documented_options(repository: Path) -> dict[str, dict[str, Any]]:
    """Return the options of each module, by their names: type, choices, aliases and so on."""
    kept = repository / ".cache" / "ansible.windows"
    texts = {name: _kept(kept, name) for name in MODULES}
    fragment = kept / _FRAGMENT
    if None in texts.values() or not fragment.exists():
        _download(kept)
        texts = {name: _kept(kept, name) for name in MODULES}
    options = {name: _options(text or "") for name, text in texts.items()}
    for option, description in _options(fragment.read_text()).items():
        options["win_uri"].setdefault(option, {}).update(description)
    return options


def mistakes(module: str, given: Mapping[str, Any], documented: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the options of a task, by the documentation of its module."""
    known = {alias: name for name, option in documented.items() for alias in [name, *option.get("aliases", [])]}
    found = [f"{module} has no option {name}" for name in given if name not in known]
    values = {known[name]: value for name, value in given.items() if name in known}
    found += [
        f"{module} lacks {name}" for name, option in documented.items() if option.get("required") and name not in values
    ]
    for name, value in values.items():
        option = documented[name]
        if not isinstance(value, _TYPES[option.get("type", "str")]):
            found.append(f"{module}: {name} is {value!r}, which is no {option['type']}")
        elif value not in option.get("choices", [value]):
            found.append(f"{module}: {name} is {value!r}, which is none of {option['choices']}")
        for entry in value if isinstance(value, list) and "suboptions" in option else []:
            found += mistakes(f"{module}.{name}", entry, option["suboptions"])
    return found


def _kept(directory: Path, name: str) -> str | None:
    return next((path.read_text() for path in directory.glob(f"{name}.*")), None)


def _options(text: str) -> dict[str, Any]:
    """Return the options in a module's documentation, or in the file beside a module."""
    if "DOCUMENTATION = r" in text:
        quotes = text.partition("DOCUMENTATION = r")[2][:3]
        options: dict[str, Any] = yaml.safe_load(text.split(quotes)[1])["options"]
    else:
        options = yaml.safe_load(text)["DOCUMENTATION"]["options"]
    return options


def _download(kept: Path) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "ansible>=12,<13"]
    process = subprocess.run([*pip, "--dest", str(kept)], capture_output=True, text=True, check=False)
    if process.returncode:
        lacking("programs", f"PyPI's package ansible, for its ansible.windows, cannot be had: {process.stderr[-300:]}")
    (wheel,) = kept.glob("ansible-*.whl")
    wanted = {f"{_INSIDE}/modules/{name}{suffix}" for name in MODULES for suffix in (".py", ".yml")}
    with zipfile.ZipFile(wheel) as archive:
        for name in {*wanted, f"{_INSIDE}/doc_fragments/{_FRAGMENT}"} & set(archive.namelist()):
            (kept / Path(name).name).write_bytes(archive.read(name))
    wheel.unlink()
