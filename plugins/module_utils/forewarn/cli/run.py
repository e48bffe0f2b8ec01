# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run``: the service that polls, decides by policy, and approves. docs/operations.md describes it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from ..errors import InputError
from ..events import LATEST_API_VERSION
from ..imds.client import Client
from ..imds.endpoint import resolve
from ..policy.artifact import Artifact, load
from ..policy.engine import PolicySet
from ..policy.params import parse_text
from ..runner import hooks, statedir, trust
from ..runner.assembly import Equipment, assemble
from ..runner.clocks import Clocks, Stamp
from ..runner.docket import Mode
from ..runner.heartbeat import read as read_heartbeat
from ..runner.impact import downtime
from ..runner.journald import FORMATS, open_log
from ..runner.log import Logger
from ..runner.loop import Parts, Reloaded, Runner
from ..runner.metrics import Metrics
from ..runner.poller import Identity, identity_client
from ..runner.signals import StopSignals
from ..runner.systemd import Notifier
from .service import add_endpoint_argument

if TYPE_CHECKING:
    from ..runner.shadow import Shadow

# The service allows one request a second on average, other agents' included; a Preempt gives 30 s of notice.
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1.0, 60.0
_INTERVAL = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)s?", re.ASCII)


class Setup(NamedTuple):
    """What the command line and the configuration file say, checked."""

    policies: PolicySet
    shadow: Shadow | None
    interval: float
    args: argparse.Namespace
    absent: Sequence[str]  # sentences on programs of hooks that are not there


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
    parser.add_argument("--log-format", choices=FORMATS, help="form of the log (default: auto, journald under systemd)")
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="what must survive a restart (default: $STATE_DIRECTORY, /var/lib/forewarn for root; none with --once and "
        "--dry-run)",
    )
    parser.add_argument("--shadow", metavar="FILE", help="second artifact: it decides beside, and differences are told")
    parser.add_argument("--metrics-file", metavar="FILE", help="write Prometheus metrics there, for node_exporter")
    parser.add_argument(
        "--metrics-listen", metavar="ADDRESS:PORT", help="serve /metrics and /healthz, on loopback only"
    )
    parser.add_argument(
        "--allow-endpoint",
        action="store_true",
        default=None,
        help="believe an endpoint that is neither link-local nor loopback",
    )
    parser.add_argument("--hook-proxy", metavar="URL", help="proxy of http hooks (default: none)")
    parser.add_argument(
        "--hook-ca-file", metavar="FILE", help="certificates that http hooks trust (default: the system's)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="JSON object of these options; what the command line says outweighs it"
    )


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT, or once."""
    clocks = Clocks()
    given = dict(vars(args))
    setup = _setup(given)
    args = setup.args
    endpoint = resolve(args.endpoint, os.environ)
    if args.endpoint != "auto":  # what the lease of this very machine names is believed
        trust.check_endpoint(endpoint, bool(args.allow_endpoint))
    mode = Mode(bool(args.dry_run), args.once)
    directory = _state(args, mode)
    lock = None
    if directory is not None:
        lock = statedir.StateDirectory(directory)
        lock.prepare()
        lock.lock()
    try:
        log = open_log(args.log_format, os.environ, sys.stdout)
        _run(given, setup, endpoint, mode, directory, log, clocks)
    finally:
        if lock is not None:
            lock.release()
    return 0


def _run(
    given: Mapping[str, Any],
    setup: Setup,
    endpoint: str,
    mode: Mode,
    directory: str | None,
    log: Logger,
    clocks: Clocks,
) -> None:
    args, policies = setup.args, setup.policies
    beat = None if directory is None else read_heartbeat(directory)
    with StopSignals() as stop:
        client = Client(
            endpoint, policies.api_version, sleep=stop.sleep, log=lambda text: log.warning("waiting", reason=text)
        )
        asking = identity_client(client, stop.sleep)
        with client, asking:
            metrics = Metrics()
            equipment = Equipment(
                clocks,
                log,
                mode,
                directory,
                hooks.HookSettings(args.hook_proxy, args.hook_ca_file, os.environ.get("CREDENTIALS_DIRECTORY")),
                metrics,
                args.metrics_file,
                Notifier(os.environ, clocks),
            )
            identity = Identity(asking, args.vm_name, log, clocks.monotonic)
            parts = assemble(client, identity, policies, stop, stop.wake, equipment)
            parts.docket.shadow = setup.shadow
            _introduce(parts, setup, client.endpoint.url, directory)
            runner = Runner(
                parts,
                stop,
                reload=lambda: _reloaded(given, policies.api_version),
                last_poll=_last_poll(beat),
                down_seconds=None if beat is None else downtime(beat, clocks),
            )
            if mode.once:
                runner.run_once()
            else:
                _serve(runner, parts, setup)


def _serve(runner: Runner, parts: Parts, setup: Setup) -> None:
    if setup.args.metrics_listen is None:
        runner.run(setup.interval)
        return
    from ..runner.metrics_http import MetricsServer  # here: few want it, and it costs memory

    server = MetricsServer(setup.args.metrics_listen, parts.metrics.render, parts.housekeeping.health)
    server.start()
    try:
        runner.run(setup.interval)
    finally:
        server.close()


def _introduce(parts: Parts, setup: Setup, endpoint: str, directory: str | None) -> None:
    args = setup.args
    fields = {
        "version": __version__,
        "endpoint": endpoint,
        "api_version": setup.policies.api_version,
        "policy": setup.policies.digest,
        "dry_run": bool(args.dry_run),
        "state": directory,
    }
    interval = None if args.once else setup.interval
    parts.log.info("started", **fields, once=args.once, interval_seconds=interval)
    for text in setup.absent:
        parts.log.error("hook-missing", reason=text, hint="Events that need it will be held.")
    parts.journal.note("runner-started", None, **fields)
    facts = {"policy": setup.policies.digest, "interval_seconds": interval, "dry_run": bool(args.dry_run)}
    parts.housekeeping.facts.update(facts, pid=os.getpid())
    python = ".".join(str(part) for part in sys.version_info[:3])
    parts.metrics.set("forewarn_build_info", 1.0, version=__version__, python=python)
    parts.metrics.set("forewarn_start_timestamp_seconds", parts.clocks.wall())
    parts.housekeeping.decided_by(setup.policies)


def _last_poll(beat: Any) -> Stamp | None:
    try:
        return Stamp.of(beat.fields["last_good_poll"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _setup(given: Mapping[str, Any]) -> Setup:
    """Read and check everything that the command line names. Raises InputError."""
    args = argparse.Namespace(**given)
    params: dict[str, Any] = {}
    if args.config:
        from .run_config import merge, read_config  # here: only where it is used

        trust.check_file(args.config, "the configuration")
        config = read_config(args.config)
        params = config.pop("params", {})
        merge(args, config)
    interval = _checked_interval(1.0 if args.interval is None else args.interval)
    if args.log_format not in (None, *FORMATS):
        raise InputError(f"log_format is {args.log_format!r}.", f"It is one of {', '.join(FORMATS)}.")
    if bool(args.policy) == bool(args.artifact):
        raise InputError("Either --policy or --artifact is needed.", "Name policy files, or one compiled policy.")
    if args.vm_name is not None and not args.vm_name.strip():
        raise InputError("--vm-name is empty.", "Leave it out to ask the instance metadata.")
    artifact = _artifact(args)
    policies = PolicySet(artifact, {**params, **_params(args.param, artifact)})
    absent = [] if args.once or args.dry_run else hooks.missing(policies.every_hook())
    shadow = None if args.shadow is None else _shadow(args.shadow, artifact.api_version, params)
    return Setup(policies, shadow, interval, args, absent)


def _shadow(path: str, api_version: str, params: Mapping[str, Any]) -> Shadow:
    from ..runner.shadow import Shadow  # here: few have one

    artifact = _load(path, "--shadow")
    if artifact.api_version != api_version:
        raise InputError(
            f"{path} is compiled for api-version {artifact.api_version}, the live policies for {api_version}.",
            "Compile both for the same.",
        )
    declared = {entry["name"] for policy in artifact.data["policies"] for entry in policy["params"]}
    return Shadow(PolicySet(artifact, {name: value for name, value in params.items() if name in declared}))


def _reloaded(given: Mapping[str, Any], api_version: str) -> Reloaded:
    """Read everything again. What only a restart can change stays as it is. Raises InputError."""
    setup = _setup(given)
    if setup.policies.api_version != api_version:
        raise InputError(
            f"the policies are now for api-version {setup.policies.api_version}, and the service is asked for "
            f"{api_version}",
            "Restart the runner.",
        )
    return Reloaded(setup.policies, setup.shadow, setup.interval)


def _state(args: argparse.Namespace, mode: Mode) -> str | None:
    if args.state is not None:
        named: str = args.state
        return os.path.abspath(named)  # noqa: PTH100 - importing pathlib takes a tenth of the start
    if mode.once or mode.dry_run:  # they do nothing that would have to be undone
        return None
    return statedir.default(os.environ, os.getuid() if hasattr(os, "getuid") else None)


def _artifact(args: argparse.Namespace) -> Artifact:
    """Return the artifact: as it was compiled, or compiled now. Raises InputError."""
    if args.policy:
        return _compile(args.policy, args.api_version or LATEST_API_VERSION)
    artifact = _load(args.artifact, "--artifact")
    if args.api_version not in (None, artifact.api_version):
        raise InputError(
            f"{args.artifact} is compiled for api-version {artifact.api_version}, not {args.api_version}.",
            f"Compile it again with --api-version {args.api_version}, or leave the option out.",
        )
    return artifact


def _load(path: str, option: str) -> Artifact:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes a tenth of the start
            content = file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.", f"{option} wants a compiled policy.") from error
    trust.check_file(path, "the artifact")
    try:
        return load(content)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


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
