# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration file of ``forewarn run``: a JSON object of its options, which the command line overrides."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError

# Option -> the types that its value can have, and their name in messages. The policies check ``params``.
_OPTIONS: dict[str, tuple[tuple[type, ...], str]] = {
    "artifact": ((str,), "a path"),
    "policy": ((list,), "a list of paths"),
    "endpoint": ((str,), "a text"),
    "api_version": ((str,), "a text"),
    "vm_name": ((str,), "a text"),
    "params": ((dict,), "an object of parameters"),
    "interval": ((int, float), "a number of seconds"),
    "dry_run": ((bool,), "true or false"),
    "log_format": ((str,), "a text"),
    "state": ((str,), "a path"),
    "signers": ((str,), "a path"),
    "revoked_signers": ((str,), "a path"),
    "policy_source": ((str, dict), "an address, or an object of settings"),
    "shadow": ((str,), "a path"),
    "metrics_file": ((str,), "a path"),
    "metrics_listen": ((str,), "an address and a port"),
    "probe_listen": ((str,), "an address and a port"),
    "probe_lead": ((int, float), "a number of seconds"),
    "allow_endpoint": ((bool,), "true or false"),
    "hook_proxy": ((str,), "a URL"),
    "hook_ca_file": ((str,), "a path"),
    "sink_url": ((str,), "a URL"),
    "sink_format": ((str,), "a text"),
    "sink_bearer_file": ((str,), "a path"),
    "sink_credential": ((str,), "the name of a credential"),
    "group": ((str,), "the name of a group"),
    "group_members": ((list,), "a list of names of VMs"),
    "group_store": ((dict,), "an object of settings"),
}
_MAX_BYTES = 1024 * 1024


class Config(NamedTuple):
    """The options of a configuration file; ``digest`` is ``sha256:…`` of its bytes."""

    options: dict[str, Any]
    digest: str


def digest_of(path: str) -> str | None:
    """Return the digest of a configuration file's bytes, or None if it cannot be read or is far too large."""
    try:
        return _digest(_content(path))
    except InputError:
        return None


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: no path can look like this
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{path}: {reason}.", "--config needs a JSON file.") from error
    if len(content) > _MAX_BYTES:
        raise InputError(f"{path} is larger than {_MAX_BYTES} bytes.", "--config needs a JSON file of options.")
    return content


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read_config(path: str) -> Config:
    """Return what a file has, paths made relative to the file's directory. Raises InputError."""
    content = _content(path)
    try:
        config = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}:{error.colno}: {error.msg}.", "The file must be JSON.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: not a JSON object.", 'Write it like {"artifact": "policy.json"}.')
    for name, value in config.items():
        if name not in _OPTIONS:
            raise InputError(f"{path}: there is no option {name!r}.", f"There are: {', '.join(_OPTIONS)}.")
        kinds, wanted = _OPTIONS[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InputError(f"{path}: {name} is {json.dumps(value)[:40]}, not {wanted}.")
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if any(re.search("[\0\ud800-\udfff]", text) for text in texts):
            raise InputError(f"{path}: {name} has a NUL character or half a character in it.")
        if value == "":  # as a path it would be the file's own directory
            raise InputError(f"{path}: {name} is empty, not {wanted}.", "Leave the option out, or give it a value.")
    directory = Path(path).absolute().parent
    for name, (_kinds, wanted) in _OPTIONS.items():
        if wanted == "a path" and name in config:
            config[name] = str(directory / config[name])
    if "policy" in config:
        if not config["policy"] or not all(isinstance(item, str) and item for item in config["policy"]):
            raise InputError(f"{path}: policy is not a list of paths.")
        config["policy"] = [str(directory / item) for item in config["policy"]]
    return Config(config, _digest(content))


def merge(args: argparse.Namespace, config: Mapping[str, Any]) -> None:
    """Fill in the options that the command line does not set. The caller merges parameters later, name by name."""
    policies_given = bool(args.policy or args.artifact)
    for name, value in config.items():
        if policies_given and name in ("policy", "artifact"):
            continue
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def command_line(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a command line sets, as JSON values, with absolute paths."""
    options = {name: given[name] for name in (*_OPTIONS, "config", "param") if given.get(name) not in (None, [])}
    for name, value in options.items():
        if name == "policy":
            options[name] = [os.path.abspath(path) for path in value]
        elif name == "config" or (name in _OPTIONS and _OPTIONS[name][1] == "a path"):
            options[name] = os.path.abspath(value)
    return options
