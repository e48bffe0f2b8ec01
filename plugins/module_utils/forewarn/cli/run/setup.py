# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and checks the command line and the configuration file of ``forewarn run``, again at each reload."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ...events import LATEST_API_VERSION
from ...imds.endpoint import AUTO, ENVIRONMENT_VARIABLE, check_endpoint, resolve_endpoint
from ...policy.artifact import Artifact, load_file
from ...policy.engine import PolicySet
from ...policy.params import from_options
from ...policy.structure import exposes_secret
from ...runner.state import directories, dry_runs
from ...system import trust
from ...system.account import is_administrator
from ...system.log_destination import LogDestination
from ...system.paths import state_directory
from ...texts import redacted_url
from ..service_options import refuse_empty_name
from . import config as run_config  # at the top: an upgrade may have replaced this file by the time it is used
from .group import check_limits, read_group

if TYPE_CHECKING:
    from ...runner.groups.settings import GroupSettings

# The service allows one request per second on average, including other agents'; a Preempt gives 30 s of notice.
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1.0, 60.0
PROBE_LEAD_SECONDS, LONGEST_PROBE_LEAD = 60.0, 3600.0
_PROXY = r"(?i)http://[^\s/?#@]+/?"
SINK_FORMATS = ("json-lines", "otlp")
_SINK_URL = r"(?i)https?://[^\s/?#@]+(/[^\s#]*)?"
_CREDENTIAL = r"[A-Za-z0-9_][A-Za-z0-9._@-]*"
LOG_FORMATS = ("auto", LogDestination.FORM, "text", "json")


class Setup(NamedTuple):
    """The settings of a run. ``shadow`` decides too, without effect; ``interval`` is in seconds.

    ``directory`` is the state directory, None to keep nothing. ``config`` is the digest of the configuration file, and
    ``options`` are those of the command line, as ``run_config.command_line`` returns them.
    """

    policies: PolicySet
    shadow: PolicySet | None
    interval: float
    args: argparse.Namespace
    directory: str | None
    config: str | None
    options: Mapping[str, Any]
    group: GroupSettings | None = None


def read(given: Mapping[str, Any], environ: Mapping[str, str]) -> Setup:
    """Read and check everything that the command line names: what passes here can start, and be reloaded.

    Touches nothing, and asks nobody. Programs of hooks are not looked at: see ``hooks.needs``. Raises InputError.
    """
    args = argparse.Namespace(**given)
    params: dict[str, Any] = {}
    digest = None
    if args.config is not None:
        trust.check_file(args.config, "configuration")
        config, digest = run_config.read_config(args.config)
        params = config.pop("params", {})
        run_config.merge(args, config)
    interval = checked_interval(1.0 if args.interval is None else args.interval)
    args.probe_lead = _checked_lead(PROBE_LEAD_SECONDS if args.probe_lead is None else args.probe_lead)
    if args.log_format not in (None, *LOG_FORMATS):
        raise InputError(f"log_format is {args.log_format!r}.", f"Use one of {', '.join(LOG_FORMATS)}.")
    if bool(args.policy) == bool(args.artifact):
        raise InputError("Either --policy or --artifact is needed.", "Name policy files, or one compiled policy.")
    refuse_empty_name(args.vm_name)
    if args.hook_ca_file is not None:
        trust.check_file(args.hook_ca_file, "CA file")
    _check_places(args, environ)
    _check_sink(args)
    directory = _state(args, environ)
    if directory is not None:
        directories.StateDirectory(directory).check()
        dry_runs.check(directory, bool(args.dry_run))
    artifact = _artifact(args)
    params.update(from_options(args.param, artifact.params))
    policies = PolicySet(artifact, params)
    group = read_group(args)
    if not (args.dry_run or args.once):  # these prepare nothing
        check_limits(policies, group)
    shadow = None if args.shadow is None else _shadow(args.shadow, artifact.api_version, params)
    return Setup(policies, shadow, interval, args, directory, digest, run_config.command_line(given), group)


def _check_places(args: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Check the addresses that requests go to and come from."""
    named = environ.get(ENVIRONMENT_VARIABLE) if args.endpoint is None else args.endpoint
    if named != AUTO:  # the address in the DHCP lease of this machine is trusted
        endpoint = resolve_endpoint(args.endpoint, environ)
        check_endpoint(endpoint, bool(args.allow_endpoint))
    if args.hook_proxy is not None and not re.fullmatch(_PROXY, args.hook_proxy):
        raise InputError(f"hook_proxy is {args.hook_proxy!r}.", "Write it like http://proxy.example.com:3128.")
    if args.metrics_listen is not None:
        from ...runner.telemetry.metrics_server import metrics_place  # here: most have none, and a start must be fast

        _check_place("metrics_listen", metrics_place, args.metrics_listen)
    if args.probe_listen is not None:
        from ...runner.telemetry.probe_server import probe_place

        _check_place("probe_listen", probe_place, args.probe_listen)


def _check_sink(args: argparse.Namespace) -> None:
    others = [
        name for name in ("sink_format", "sink_bearer_file", "sink_credential") if getattr(args, name) is not None
    ]
    if args.sink_url is None:
        if others:
            raise InputError(f"{others[0]} is set, but no sink_url.", "Add the URL of the sink, or leave it out.")
        return
    if not re.fullmatch(_SINK_URL, args.sink_url):
        hint = "Write it like https://collector.example.com/logs, and put a secret into sink_credential."
        raise InputError(f"sink_url is {redacted_url(args.sink_url)!r}.", hint)
    secret = args.sink_bearer_file or args.sink_credential
    if secret and exposes_secret(args.sink_url):
        raise InputError("sink_url would send a secret without encryption.", "Use https, or leave the secret out.")
    if args.sink_format not in (None, *SINK_FORMATS):
        raise InputError(f"sink_format is {args.sink_format!r}.", f"Use one of {', '.join(SINK_FORMATS)}.")
    if args.sink_bearer_file is not None and args.sink_credential is not None:
        raise InputError("Both sink_bearer_file and sink_credential are set.", "Use one of them.")
    if args.sink_credential is not None and not re.fullmatch(_CREDENTIAL, args.sink_credential):
        raise InputError(f"sink_credential is {args.sink_credential!r}.", "Name a credential of the service.")


def _check_place(option: str, parse: Callable[[str], object], address: str) -> None:
    try:
        parse(address)
    except InputError as error:
        raise InputError(f"{option}: {error.message}", error.hint) from error


def _state(args: argparse.Namespace, environ: Mapping[str, str]) -> str | None:
    if args.state is not None:
        named: str = args.state
        return os.path.abspath(named)
    if args.once:  # nothing to recover remains
        return None
    live = state_directory(environ)
    return dry_runs.directory_beside(live) if args.dry_run else live


def checked_interval(seconds: float) -> float:
    """Return the interval. Raises InputError if it is too short or too long."""
    if not SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL:
        raise InputError(
            f"the interval is not between {SHORTEST_INTERVAL:g}s, which the service recommends and allows, and "
            f"{LONGEST_INTERVAL:g}s"
        )
    return float(seconds)


def _checked_lead(seconds: float) -> float:
    if not 0 <= seconds <= LONGEST_PROBE_LEAD:
        raise InputError(f"the lead time of the probe is not between 0 s and {LONGEST_PROBE_LEAD:g} s")
    return float(seconds)


def _shadow(path: str, api_version: str, params: Mapping[str, Any]) -> PolicySet:
    trust.check_file(path, "artifact")
    artifact = load_file(path)
    if artifact.api_version != api_version:
        raise InputError(
            f"{path} is compiled for api-version {artifact.api_version}, the live policies for {api_version}.",
            "Compile both for the same.",
        )
    declared = {entry["name"] for entry in artifact.params}
    return PolicySet(artifact, {name: value for name, value in params.items() if name in declared})


def _artifact(args: argparse.Namespace) -> Artifact:
    """Return the artifact, loaded or compiled now. Raises InputError."""
    if args.policy:
        return _compile(args.policy, args.api_version or LATEST_API_VERSION)
    trust.check_file(args.artifact, "artifact")
    artifact = load_file(args.artifact)
    if args.api_version not in (None, artifact.api_version):
        raise InputError(
            f"{args.artifact} is compiled for api-version {artifact.api_version}, not {args.api_version}.",
            f"Compile it again with --api-version {args.api_version}, or leave the option out.",
        )
    return artifact


def _compile(paths: Sequence[str], api_version: str) -> Artifact:
    hint = "Use --artifact with the output of 'forewarn policy compile' on another machine."
    if sys.version_info < (3, 11):
        raise InputError("--policy compiles policies, which needs Python 3.11 or newer.", hint)
    # Imported here: a VM that runs an artifact has neither the compiler nor its libraries.
    try:
        from ...compiler.imports.libraries import imported_files
        from ...compiler.paths import find_policies, paths_of
        from ...compiler.policies import load_policies
        from ...compiler.requirements import MissingLibraryError
    except ModuleNotFoundError as error:
        raise InputError(f"--policy compiles policies, which needs the missing module {error.name}.", hint) from error
    try:
        found = paths_of(paths)
        if is_administrator():  # other users run policies of their own; an artifact is always checked
            policies = find_policies(found)
            for policy in policies:
                trust.check_file(str(policy.path), "policy")
            for origin in imported_files(policies).found:
                if (library := origin.file) is not None:
                    trust.check_file(str(library), "library of policies")
        return load_policies(found, api_version)
    except MissingLibraryError as error:
        raise InputError(f"--policy: {error.message}.", hint) from error
