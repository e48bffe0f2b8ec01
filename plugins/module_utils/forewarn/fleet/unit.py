# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit of the runner. ``forewarn.service.j2`` is its one source, which the role renders with its own variables."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from .hooks import sandbox_of

TEMPLATE = Path(__file__).with_name("forewarn.service.j2")
PYZ = "/opt/forewarn/forewarn.pyz"
CONFIG_FILE = "/etc/forewarn/config.json"
CREDENTIALS_DIRECTORY = "/etc/forewarn/credentials"
# A systemd that newer ones understand too: from 239 on they ignore what they do not know, with a warning.
SYSTEMD = 252
_MEMORY_MAX, _TASKS_MAX = "512M", "512"  # the role's defaults
# What the runner reads only when it starts -> its value where the configuration does not have it.
_SETTINGS: Mapping[str, Any] = {
    "allow_endpoint": False,
    "dry_run": False,
    "endpoint": "",
    "group": "",
    "group_members": [],
    "group_store": {},
    "hook_ca_file": "",
    "hook_proxy": "",
    "metrics_file": "",
    "metrics_listen": "",
    "policy_source": "",
    "probe_lead": 60.0,
    "probe_listen": "",
    "sink_bearer_file": "",
    "sink_credential": "",
    "sink_format": "",
    "sink_url": "",
    "vm_name": "",
}


def program(python: str) -> str:
    """Return the command line of the runner on a VM with this Python."""
    return f"{python} -I -S {PYZ}"


def unit_of(
    config: Mapping[str, Any],
    hooks: Iterable[Mapping[str, Any]],
    credential_files: Mapping[str, str],
    python: str,
    pyz_name: str,
) -> str:
    """Return the unit for a configuration, as ``forewarn run --config`` reads it, and the hooks of its policies.

    ``credential_files``: name of a credential -> its file on the VM. ``pyz_name`` is the name of the runner's file.
    """
    settings = {name: config.get(name, default) for name, default in _SETTINGS.items()}
    source = settings["policy_source"]
    needs, writable = sandbox_of(hooks)
    variables = {
        **settings,
        "policy_source_url": source.get("url", "") if isinstance(source, dict) else source,
        "settings": settings,
        "found": {"systemd": str(SYSTEMD)},
        "needs": needs,
        "hooks_write": writable,
        "credentials": {},
        "credential_files": credential_files,
        "credential_times": {},
        "credentials_directory": CREDENTIALS_DIRECTORY,
        "encrypts": False,
        "memory_max": _MEMORY_MAX,
        "tasks_max": _TASKS_MAX,
        "unit_settings": [],
        "pyz_name": pyz_name,
        "program": program(python),
        "config_file": CONFIG_FILE,
        "written_by": "forewarn fleet cloud-init",
    }
    bare = render({**variables, "unit_checksum": ""})
    return render({**variables, "unit_checksum": hashlib.sha256(bare.encode()).hexdigest()[:16]})


def render(variables: Mapping[str, Any]) -> str:
    """Return the unit for variables of the role, without their prefix ``__forewarn_``.

    A variable that is missing raises jinja2.UndefinedError.
    """
    return str(_template().render({f"__forewarn_{name}": value for name, value in variables.items()}))


@lru_cache(maxsize=None)
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: Ansible's own parts do not need it

    environment = Environment(  # noqa: S701 - no HTML
        loader=FileSystemLoader(TEMPLATE.parent),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(to_json=json.dumps, dirname=posixpath.dirname, dict2items=_items)
    environment.tests["match"] = lambda text, pattern: re.match(pattern, text) is not None
    return environment.get_template(TEMPLATE.name)


def _items(mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in mapping.items()]
