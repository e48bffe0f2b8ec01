# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and checks the command line and the configuration file of ``forewarn run``, again at each reload."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ...events import LATEST_API_VERSION
from ...imds.endpoint import AUTO, ENVIRONMENT_VARIABLE, check_endpoint, resolve_endpoint
from ...policy.engine import PolicySet
from ...policy.params import from_options
from ...policy.structure import exposes_secret
from ...runner.state import directories, dry_runs
from ...system import trust
from ...system.log_destination import LogDestination
from ...system.paths import memory_directory, state_directory
from ...texts import redacted_url
from ..service_options import refuse_empty_name
from . import config as run_config  # at the top: an upgrade may have replaced this file by the time it is used
from .artifact import LoadedPolicy, SignedFiles, accept, check_api_version, compile_now, load_artifact, load_shadow
from .group import check_limits, read_group

if TYPE_CHECKING:
    from ...runner.groups.settings import GroupSettings
    from ...runner.policy_source.settings import SourceSettings
    from ...runner.state.accepted_policy import SignedPolicy

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
    ``options`` are those of the command line, as ``run_config.command_line`` returns them. ``loaded`` says where the
    policies come from.
    """

    policies: PolicySet
    shadow: PolicySet | None
    interval: float
    args: argparse.Namespace
    directory: str | None
    config: str | None
    options: Mapping[str, Any]
    group: GroupSettings | None
    source: SourceSettings | None
    loaded: LoadedPolicy


def read(given: Mapping[str, Any], environ: Mapping[str, str], offer: SignedPolicy | None = None) -> Setup:
    """Read and check everything that the command line names: what passes here can start, and be reloaded.

    ``offer`` are policies of the source, to be used instead of those of the configuration.
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
    files = _signed_files(args, directory, environ)
    loaded = _loaded(args, files, offer)
    params.update(from_options(args.param, loaded.artifact.params))
    policies = PolicySet(loaded.artifact, params)
    group = read_group(args)
    if not (args.dry_run or args.once):  # these prepare nothing
        check_limits(policies, group)
    shadow = None if args.shadow is None else load_shadow(args.shadow, policies.api_version, params, files)
    return Setup(
        policies,
        shadow,
        interval,
        args,
        directory,
        digest,
        run_config.command_line(given),
        group,
        _source(args),
        loaded,
    )


def remember(setup: Setup) -> Setup:
    """Remember signed policies before they are put in use, so that older ones are refused from now on.

    Raises InputError where that is not possible.
    """
    return setup if setup.directory is None else setup._replace(loaded=accept(setup.loaded, setup.directory))


def _signed_files(args: argparse.Namespace, directory: str | None, environ: Mapping[str, str]) -> SignedFiles | None:
    """Return what checks signatures, or None without signers. Raises InputError."""
    if args.signers is None:
        for name in ("revoked_signers", "policy_source"):
            if getattr(args, name) is not None:
                raise InputError(f"{name} is set, but no signers.", "Name a file of allowed signers, or leave it out.")
        return None
    if args.policy:
        raise InputError("--policy compiles policies that nobody has signed.", "With signers, use an artifact.")
    from ...policy.signature import Signers  # here: most have none

    signers = Signers(args.signers, args.revoked_signers)
    signers.check()
    return SignedFiles(signers, directory, scratch(environ), args.policy_source is not None)


def scratch(environ: Mapping[str, str]) -> str | None:
    """Return a directory for temporary files that does without the disk, or None: then the system's has to do."""
    memory = memory_directory(environ)
    return memory if memory is not None and Path(memory).is_dir() else None


def _source(args: argparse.Namespace) -> SourceSettings | None:
    if args.policy_source is None:
        return None
    from ...runner.policy_source.settings import source_settings  # here: most have none

    settings = source_settings(args.policy_source)
    if settings.ca_file is not None:
        trust.check_file(settings.ca_file, "CA file")
    return settings


def _loaded(args: argparse.Namespace, files: SignedFiles | None, offer: SignedPolicy | None) -> LoadedPolicy:
    if args.policy:
        return LoadedPolicy(compile_now(args.policy, args.api_version or LATEST_API_VERSION))
    if files is not None and offer is not None:
        return check_api_version(files.check_offer(offer), "the policy of the source", args.api_version)
    return load_artifact(args.artifact, args.api_version, files)


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
