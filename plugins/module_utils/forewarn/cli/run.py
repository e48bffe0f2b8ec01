# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run``: the service that polls, decides by policy, and approves. docs/operations.md describes it."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..errors import InputError
from ..events import LATEST_API_VERSION
from ..imds.client import Client
from ..imds.endpoint import resolve
from ..policy.artifact import Artifact, load
from ..policy.engine import PolicySet
from ..policy.params import parse_text
from ..runner.log import FORMATS, Log
from ..runner.loop import Runner
from ..runner.poller import Identity, identity_client
from ..runner.signals import StopSignals
from .service import add_endpoint_argument

# The service allows one request a second on average, other agents' included; a Preempt gives 30 s of notice.
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1.0, 60.0
_INTERVAL = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)s?", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--policy",
        nargs="+",
        metavar="PATH",
        help="policy files, or directories of them: compiled on the spot",
    )
    source.add_argument("--artifact", metavar="FILE", help="what 'forewarn policy compile' wrote: needs Python alone")
    add_endpoint_argument(parser)
    parser.add_argument(
        "--api-version",
        metavar="VERSION",
        help=f"api-version that policies are compiled for, and asked for (default: the artifact's, else "
        f"{LATEST_API_VERSION})",
    )
    parser.add_argument(
        "--vm-name", metavar="NAME", help="resource name of this VM (default: asked of the instance metadata)"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="value of a policy's parameter; repeatable"
    )
    parser.add_argument(
        "--interval",
        type=_interval,
        metavar="SECONDS",
        help="time between polls, from 1s (default) to 60s",
    )
    parser.add_argument(
        "--dry-run", action="store_true", default=None, help="approve nothing, log what would be approved"
    )
    parser.add_argument("--once", action="store_true", help="poll once, decide, approve, and end")
    parser.add_argument("--log-format", choices=FORMATS, help="form of the log (default: text)")
    parser.add_argument(
        "--config", metavar="FILE", help="JSON object of these options; what the command line says outweighs it"
    )


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT, or once."""
    params: dict[str, Any] = {}
    if args.config:
        from .run_config import merge, read_config  # here: only where it is used

        config = read_config(args.config)
        params = config.pop("params", {})
        merge(args, config)
    interval = _checked_interval(1.0 if args.interval is None else args.interval)
    log_format = args.log_format or FORMATS[0]
    if log_format not in FORMATS:
        raise InputError(f"log_format is {log_format!r}.", f"It is one of {', '.join(FORMATS)}.")
    if bool(args.policy) == bool(args.artifact):
        raise InputError("Either --policy or --artifact is needed.", "Name policy files, or one compiled policy.")
    if args.vm_name is not None and not args.vm_name.strip():
        raise InputError("--vm-name is empty.", "Leave it out to ask the instance metadata.")
    artifact = _artifact(args)
    policies = PolicySet(artifact, {**params, **_params(args.param, artifact)})
    if policies.hooks:
        raise InputError(
            "The policy has hooks (prepare, recover or notify), which this version of 'run' cannot run.",
            "Remove them: an approval that ought to wait for a hook would not.",
        )
    endpoint = resolve(args.endpoint, os.environ)
    log = Log(sys.stdout, log_format)
    with StopSignals() as stop:
        client = Client(
            endpoint, policies.api_version, sleep=stop.sleep, log=lambda text: log.warning("waiting", reason=text)
        )
        asking = identity_client(client, stop.sleep)
        with client, asking:
            identity = Identity(asking, args.vm_name, log, time.monotonic)
            runner = Runner(client, identity, policies, log, stop, dry_run=bool(args.dry_run))
            log.info(
                "started",
                version=__version__,
                endpoint=client.endpoint.url,
                api_version=policies.api_version,
                policy=policies.digest,
                dry_run=bool(args.dry_run),
                once=args.once,
                interval_seconds=None if args.once else interval,
            )
            if args.once:
                runner.run_once()
            else:
                runner.run(interval)
    return 0


def _artifact(args: argparse.Namespace) -> Artifact:
    """Return the artifact: as it was compiled, or compiled now. Raises InputError."""
    if args.policy:
        return _compile(args.policy, args.api_version or LATEST_API_VERSION)
    try:
        with open(args.artifact, "rb") as file:  # noqa: PTH123 - importing pathlib takes a tenth of the start
            content = file.read()
    except OSError as error:
        raise InputError(f"{args.artifact}: {error.strerror}.", "--artifact wants a compiled policy.") from error
    try:
        artifact = load(content)
    except InputError as error:
        raise InputError(f"{args.artifact}: {error.message}", error.hint) from error
    if args.api_version not in (None, artifact.api_version):
        raise InputError(
            f"{args.artifact} is compiled for api-version {artifact.api_version}, not {args.api_version}.",
            f"Compile it again with --api-version {args.api_version}, or leave the option out.",
        )
    return artifact


def _compile(paths: Sequence[str], api_version: str) -> Artifact:
    hint = "Use --artifact with what 'forewarn policy compile' wrote on another machine."
    if sys.version_info < (3, 11):
        raise InputError("--policy compiles, and for that Python 3.11 or newer is needed.", hint)
    # Only here: on a VM, where an artifact is run, the compiler and its libraries do not exist.
    try:
        from pathlib import Path

        from ..compiler.libraries import MissingLibraryError
        from ..compiler.policyfile import load_policies
    except ModuleNotFoundError as error:
        raise InputError(f"--policy compiles, and for that the module {error.name} is missing.", hint) from error
    try:
        return load_policies([Path(path) for path in paths], api_version)
    except MissingLibraryError as error:
        raise InputError(f"--policy: {error.message}.", hint) from error


def _params(given: Sequence[str], artifact: Artifact) -> dict[str, Any]:
    """Read each NAME=VALUE as the type that the policies declare. Raises InputError."""
    declared = {param["name"]: param["type"] for policy in artifact.data["policies"] for param in policy["params"]}
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--param {text}: there is no '='.", "Write --param NAME=VALUE.")
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            raise InputError(f"--param {text}: no policy has a parameter {name!r}.", f"Declared: {known}.")
        try:
            values[name] = parse_text(value, declared[name])
        except ValueError as error:
            raise InputError(f"--param {text}: {error}.") from error
    return values


def _interval(text: str) -> float:
    match = _INTERVAL.fullmatch(text)
    try:
        return _checked_interval(float(match.group(1)) if match else 0.0)
    except InputError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error.message}") from error


def _checked_interval(seconds: float) -> float:
    if not SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL:
        raise InputError(
            f"the interval is not between {SHORTEST_INTERVAL:g}s, which the service recommends and allows, and "
            f"{LONGEST_INTERVAL:g}s"
        )
    return float(seconds)
