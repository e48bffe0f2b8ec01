# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn fleet cloud-init``: user data by which new VMs install the runner at their first boot."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic_file import replace_file
from ...errors import InputError
from ...fleet.cloud_init import LARGEST, cloud_config, download, refuse_other_settings
from ...policy.artifact import load_file
from ...policy.engine import PolicySet
from ...policy.signature import SUFFIX, Signers
from ...runner.groups.settings import group_settings
from ...runner.hooks.needs import examine
from ...runner.policy_source.settings import source_settings
from ..output.console import Console
from ..run.config import read_config
from ..run.group import OPTIONS, check_credential, check_limits

_CREDENTIAL = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._@-]*)=(/[^\s:%]+)", re.ASCII)
_PYTHON = re.compile(r"/[\w./+-]+", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        required=True,
        metavar="FILE",
        help="the configuration of the VMs, as 'forewarn run --config' reads it; its artifact is taken from here, and "
        "with signers their list and its signature",
    )
    parser.add_argument(
        "--bundle-url", required=True, metavar="URL", help="where the VMs download forewarn.pyz from, by https"
    )
    parser.add_argument(
        "--bundle-sha256", required=True, metavar="DIGEST", help="its SHA-256, which 'forewarn bundle' shows"
    )
    parser.add_argument(
        "--credential-file",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a credential that policies or the configuration name, and its file on the VMs, which something else "
        "places there; may be repeated",
    )
    parser.add_argument(
        "--python",
        default="/usr/bin/python3",
        metavar="PATH",
        help="the Python of the VMs, 3.8 or newer (default: %(default)s)",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write it; '-' for standard output"
    )


def run(args: argparse.Namespace) -> int:
    """Write the user data. It must have no secrets in it."""
    source = download(args.bundle_url, args.bundle_sha256)
    if not _PYTHON.fullmatch(args.python):
        raise InputError(f"--python is {args.python!r}.", "Name the full path of a Python on the VMs.")
    credential_files = _credential_files(args.credential_file)
    options = read_config(args.config).options
    refuse_other_settings(args.config, options)
    artifact = load_file(options["artifact"])
    policies = PolicySet(artifact, options.get("params"))
    _check(args.config, options, policies, credential_files)
    text = cloud_config(
        source,
        json.loads(_read(args.config).decode("utf-8-sig")),
        artifact,
        _read(options["artifact"]),
        list(policies.every_hook()),
        credential_files,
        args.python,
        _signing(options),
    )
    if "?" in source.url:
        Console(sys.stderr).warning(
            "the URL of the bundle has a query, and user data is not secret: whoever reads it can use a signature in it"
        )
    if args.output == "-":
        sys.stdout.write(text)
        return 0
    replace_file(Path(args.output), text.encode())
    Console(sys.stdout).line(f"{args.output}: {len(text):,} of {LARGEST:,} bytes, {artifact.digest}")
    return 0


def _signing(options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what proves who made the policies, {} without signers. Raises InputError where that proves nothing."""
    if "signers" not in options:
        for name in ("revoked_signers", "policy_source"):
            if name in options:
                raise InputError(f"{name} is set, but no signers.", "Name a file of allowed signers, or leave it out.")
        return {}
    signers = Signers(options["signers"], options.get("revoked_signers"))
    signers.check()
    found = {"signature": _read(options["artifact"] + SUFFIX), "signers": _read(signers.allowed)}
    signers.verify(_read(options["artifact"]), found["signature"])
    return found if signers.revoked is None else {**found, "revoked_signers": _read(signers.revoked)}


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.", "Name a file that can be read.") from error


def _credential_files(given: Sequence[str]) -> dict[str, str]:
    files = {}
    for text in given:
        found = _CREDENTIAL.fullmatch(text)
        if found is None:
            raise InputError(
                f"--credential-file is {text!r}.", "Write it like token=/etc/app/token: a name, and a path on the VMs."
            )
        files[found[1]] = found[2]
    return files


def _check(path: str, options: dict[str, object], policies: PolicySet, credential_files: dict[str, str]) -> None:
    """Raise InputError where the runner would refuse the configuration, as far as that can be known here."""
    wanted, compiled_for = options.get("api_version"), policies.artifact.api_version
    if wanted not in (None, compiled_for):
        raise InputError(
            f"{path}: api_version is {wanted}, and the artifact is for {compiled_for}.",
            "Compile the policies for it, or leave api_version out.",
        )
    if "policy_source" in options:
        source = source_settings(options["policy_source"])  # type: ignore[arg-type]  # checked
        if (
            source.sas is not None
            and source.sas.credential is not None
            and source.sas.credential not in credential_files
        ):
            hint = f"Name its file there: --credential-file {source.sas.credential}=/PATH."
            raise InputError(f"{path}: policy_source needs the credential {source.sas.credential}.", hint)
    named = [options.get(name) for name in OPTIONS]
    group = group_settings(*named) if any(value is not None for value in named) else None  # type: ignore[arg-type]  # it checks them
    if options.get("dry_run"):
        return
    check_limits(policies, group)
    check_credential(group, None, credential_files)
    for need in examine(policies.hooks_by_rule(), None, credential_files).credentials:
        if need.problem is not None:
            raise InputError(
                f"the rule {need.rule} of {need.policy} needs the credential {need.name}, which the VMs do not have.",
                f"Name its file there: --credential-file {need.name}=/PATH.",
            )
