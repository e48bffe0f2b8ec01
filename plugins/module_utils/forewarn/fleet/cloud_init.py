# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User data by which cloud-init brings the runner to a VM at its first boot."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..policy.artifact import Artifact
from ..policy.signature import SUFFIX
from . import first_boot
from .unit import CONFIG_FILE, program, unit_of

LARGEST = 65_535  # bytes that Azure takes as custom data, before they are encoded
_LISTS = {"signers": "/etc/forewarn/allowed_signers", "revoked_signers": "/etc/forewarn/revoked_signers"}
_ARTIFACT = "/etc/forewarn/policy-{}.json"
_DIGITS = 16  # of a digest, in a file's name
_SCRIPT = f"{first_boot.DIRECTORY}/first_boot.py"
_UNITS = "/etc/systemd/system"
_LARGE = 4_096  # bytes from which a file is compressed
_URL = re.compile(r"https://[^\s/?#@\"'\\]+/[^\s#\"'\\]*", re.ASCII)
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII | re.IGNORECASE)
_PLAIN = re.compile(r"[\n\x20-\x7e]*", re.ASCII)  # what a block of YAML keeps as it is
# In the configuration of one VM, and not of all that are made with the same user data; and what to do.
_NOT_HERE = {
    "policy": "Compile the policies, and name the artifact: forewarn policy compile.",
    "shadow": "Leave it out: the VMs do not get that file.",
    "state": "Leave it out: the unit has its own.",
    "vm_name": "Leave it out: each VM reads its name from the instance metadata.",
}


class Download(NamedTuple):
    """Where VMs download forewarn.pyz from, and its SHA-256 in hexadecimal."""

    url: str
    sha256: str


def download(url: str, sha256: str) -> Download:
    """Return where the bundle is; ``sha256`` may begin with ``sha256:``. Raises InputError."""
    if not _URL.fullmatch(url):
        raise InputError(
            f"the URL of the bundle is {url!r}.",
            "Write it like https://ACCOUNT.blob.core.windows.net/forewarn/forewarn.pyz, without a user or a password.",
        )
    found = _SHA256.fullmatch(sha256)
    if found is None:
        raise InputError(
            f"the SHA-256 of the bundle is {sha256!r}.", "It has 64 hexadecimal digits: forewarn bundle shows it."
        )
    return Download(url, found[1].lower())


def refuse_other_settings(path: str, config: Mapping[str, Any]) -> None:
    """Raise InputError for a setting that cannot be the same on VMs that are made with the same user data."""
    for name, instead in _NOT_HERE.items():
        if name in config:
            raise InputError(f"{path}: {name} does not belong into user data.", instead)
    if "artifact" not in config:
        raise InputError(f"{path}: artifact is missing.", "Name a compiled policy: forewarn policy compile.")


def cloud_config(
    bundle: Download,
    config: Mapping[str, Any],
    artifact: Artifact,
    content: bytes,
    hooks: list[Mapping[str, Any]],
    credential_files: Mapping[str, str],
    python: str,
    signing: Mapping[str, bytes],
) -> str:
    """Return a ``#cloud-config``: the files that it writes, and what runs then.

    ``config`` is a checked configuration, ``content`` the bytes of its artifact, ``hooks`` those of its policies, and
    ``python`` the path of a Python on the VMs. With signers, ``signing`` has the ``signature`` of
    the artifact, and the content of the files that ``signers`` and ``revoked_signers`` name. Raises InputError if it is
    larger than Azure takes.
    """
    place = _ARTIFACT.format(artifact.digest.partition(":")[2][:_DIGITS])
    lists = {name: path for name, path in _LISTS.items() if name in signing}
    settings = json.dumps({**config, **lists, "artifact": place}, indent=4, sort_keys=True) + "\n"
    pyz_name = f"forewarn-{bundle.sha256[:_DIGITS]}.pyz"
    files = {
        f"{_UNITS}/{first_boot.SERVICE}": (unit_of(config, hooks, credential_files, python, pyz_name).encode(), "0644"),
        f"{_UNITS}/{first_boot.INSTALLER}": (_installer(bundle, python).encode(), "0644"),
        CONFIG_FILE: (settings.encode(), "0640"),
        place: (content, "0640"),
        "/usr/local/bin/forewarn": (f'#!/bin/sh\nexec {program(python)} "$@"\n'.encode(), "0755"),
        _SCRIPT: (Path(first_boot.__file__).read_bytes(), "0755"),
    }
    files.update({path: (signing[name], "0640") for name, path in lists.items()})
    if "signature" in signing:
        files[place + SUFFIX] = (signing["signature"], "0640")
    lines = [
        "#cloud-config",
        f"# Written by forewarn fleet cloud-init: {artifact.digest}.",
        "# User data is not secret: on the VM, and in Azure, others can read it. Keep secrets out of it.",
        "write_files:",
        *(line for path, (data, mode) in files.items() for line in _file(path, data, mode)),
        "runcmd:",
        "  - [systemctl, daemon-reload]",
        f"  - [systemctl, enable, {first_boot.INSTALLER}]",
        "  # The last one: if it fails, cloud-init reports it.",
        f"  - [systemctl, start, {first_boot.INSTALLER}]",
    ]
    text = "\n".join(lines) + "\n"
    if len(text) > LARGEST:
        raise InputError(
            f"the user data has {len(text):,} bytes, and Azure takes {LARGEST:,}; the policies have {len(content):,}, "
            "before they are compressed.",
            "Leave out policies that these VMs do not need, or bring the runner and its policies with an image: "
            "forewarn_image of the role.",
        )
    return text


def _installer(bundle: Download, python: str) -> str:
    url = bundle.url.replace("%", "%%").replace("$", "$$")
    return f"""\
[Unit]
Description=Forewarn, installation at the first boot
Documentation=https://github.com/forewarn/forewarn.azure/tree/main/docs/guides/scale-sets.md
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart={python} -I -S {_SCRIPT} {url} {bundle.sha256}
TimeoutStartSec=20min
SyslogIdentifier=forewarn-install

# It disables itself once the runner runs.
[Install]
WantedBy=multi-user.target
"""


def _file(path: str, content: bytes, mode: str) -> Iterator[str]:
    yield f"  - path: {path}"
    yield f"    permissions: '{mode}'"
    text = content.decode("utf-8", "replace")
    if len(content) < _LARGE and _PLAIN.fullmatch(text) and text.endswith("\n") and text[0] not in " \n":
        yield "    content: |"
        yield from (f"      {line}".rstrip() for line in text.splitlines())
    else:
        yield "    encoding: gz+b64"
        packed = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
        yield f"    content: {packed}"
