# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service of ``forewarn run``: assembles it, starts it, and runs it until a signal ends it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import InputError
from ...imds import azure
from ...imds.client import Client
from ...runner.assembly import assemble
from ...runner.clocks import Clocks, Stamp
from ...runner.groups import obligations
from ...runner.hooks import commands
from ...runner.hooks.needs import Needs, examine
from ...runner.hooks.needs_watch import NeedsCheck, NeedsWatch
from ...runner.impact import downtime
from ...runner.loop import Runner
from ...runner.operator_pause import reported_pause
from ...runner.options import Configuration, GroupOptions, Mode, PreviousRunner, RunnerOptions
from ...runner.poller import VmIdentity, identity_client
from ...runner.requester import ThreadRequester
from ...runner.shadow import Shadow
from ...runner.telemetry.heartbeat import Beat
from ...runner.telemetry.heartbeat import read as read_heartbeat
from ...runner.telemetry.heartbeat import vm_name as earlier_vm_name
from ...runner.telemetry.log import Log
from ...runner.telemetry.metrics import Metrics
from ...runner.telemetry.readiness import Readiness
from ...runner.telemetry.system_log import open_log
from ...system.paths import credentials_directory, memory_directory
from ...system.service_manager import ServiceNotifier
from ...system.signals import StopSignals
from .setup import SINK_FORMATS, Setup, remember, scratch

if TYPE_CHECKING:
    from ...runner.policy_source.source import SourceOptions
    from ...runner.sink.sink import SinkSettings
    from ...runner.state.accepted_policy import SignedPolicy
    from ...runner.telemetry.http_listener import HttpListener

# How long to wait at the end until the log is written; a reader that stalls gets no more of it.
LOG_PATIENCE_SECONDS = 0.25
# With --once somebody waits for the whole log, which is finite.
_ONCE_LOG_BYTES = 64 * 1024 * 1024


def serve(
    setup: Setup,
    client: Client,
    directory: str | None,
    read_again: Callable[[SignedPolicy | None], Setup],
    doubt: str | None = None,
    stop: StopSignals | None = None,
) -> None:
    """Run until a signal or ``stop`` ends it, or once. ``directory`` is the state directory, or None to keep nothing.

    ``doubt``: why the machine may not be in Azure (for the log). Raises InputError, and ServiceError with --once.
    """
    args = setup.args
    mode = Mode(bool(args.dry_run), args.once)
    needs = _trusted_needs(setup, mode)
    log = open_log(args.log_format, os.environ, sys.stdout)
    log.detach(_ONCE_LOG_BYTES if mode.once else None)
    stop = stop or StopSignals()
    try:
        with stop:
            _serve(setup, client, directory, read_again, log, stop, needs, doubt)
    finally:
        # Outside ``stop``: a reader of --once may be slow, and a signal then ends the command as it ends any other.
        log.close(None if mode.once and stop.received is None else LOG_PATIENCE_SECONDS)
    if mode.once and log.reader_gone:  # a service has raised it already
        raise BrokenPipeError


def _serve(
    setup: Setup,
    client: Client,
    directory: str | None,
    read_again: Callable[[SignedPolicy | None], Setup],
    log: Log,
    stop: StopSignals,
    needs: Needs,
    doubt: str | None,
) -> None:
    args = setup.args
    clocks = Clocks()
    mode = Mode(bool(args.dry_run), args.once)
    beat = None if directory is None else read_heartbeat(directory)
    requester = ThreadRequester(stop.wake, clocks.monotonic)
    client.log = lambda text: log.warning("waiting", reason=text)
    asking = identity_client(client)
    settings = commands.HookSettings(
        args.hook_proxy,
        args.hook_ca_file,
        credentials_directory(os.environ),
        None if directory is None else f"{directory}/hooks",
        args.probe_listen,
    )
    elsewhere = memory_directory(os.environ)
    notifier = ServiceNotifier(os.environ, clocks.monotonic)
    readiness = _readiness(args, beat, clocks)
    options = RunnerOptions(
        clocks,
        log,
        mode,
        directory,
        settings,
        Metrics(),
        args.metrics_file,
        notifier,
        readiness=readiness,
        requester=requester,
        fallback_directory=elsewhere,
        shadow=None if setup.shadow is None else Shadow(setup.shadow),
        reload=lambda offer: _reloaded(read_again(offer), setup, mode),
        previous=_previous(beat, clocks),
        needs_watch=None if mode.dry_run or mode.once else NeedsWatch(clocks.monotonic),
        sink=None if mode.once else _sink(args, settings),
        group=None if mode.once or mode.dry_run else _group(setup, client, stop, clocks),
        policy_source=None if mode.once else _policy_source(setup, client),
    )
    if setup.group is None and directory is not None and Path(directory, obligations.FILE_NAME).exists():
        reason = "this VM may still hold a slot of the group that it belonged to, and has no group_store any more"
        log.warning("group-trouble", reason=reason, hint="See forewarn group status, and forewarn group release.")
    identity = VmIdentity(asking, args.vm_name, log, clocks.monotonic, earlier_vm_name(beat, clocks))
    runner = assemble(client, identity, setup.policies, stop, stop.wake, options)
    try:
        with _listening(runner, readiness, args):
            _introduce(runner, setup, client.endpoint.url, directory, clocks)
            if doubt is not None:
                log.warning("not-azure", reason=doubt, hint=azure.HINT)
            runner.health.watch_needs(_needs_check(setup, mode, needs), needs.missing())
            if mode.once:
                runner.run_once()
            else:
                runner.run(setup.interval)
    finally:
        if not requester.busy:  # otherwise another thread is still reading, and the connection ends with the process
            client.close()
            asking.close()


def _sink(args: argparse.Namespace, hooks: commands.HookSettings) -> SinkSettings | None:
    if args.sink_url is None:
        return None
    from ...runner.sink.sink import SinkSettings  # here: most have none

    wanted = args.sink_format or SINK_FORMATS[0]
    return SinkSettings(args.sink_url, wanted, args.sink_bearer_file, args.sink_credential, hooks)


def _policy_source(setup: Setup, client: Client) -> SourceOptions | None:
    if setup.source is None:
        return None
    from ...runner.policy_source.source import SourceOptions  # here: most have none

    args = setup.args
    endpoint, directory = client.endpoint.url, credentials_directory(os.environ)
    return SourceOptions(setup.source, args.signers, args.revoked_signers, endpoint, directory, scratch(os.environ))


def _source_of(setup: Setup) -> tuple[object, ...]:
    """Return what the process that asks the policy source is given for as long as the runner runs."""
    return () if setup.source is None else (setup.source, setup.args.signers, setup.args.revoked_signers)


def _group(setup: Setup, client: Client, stop: StopSignals, clocks: Clocks) -> GroupOptions | None:
    if setup.group is None:
        return None
    from ...runner.groups.settings import open_store  # here: most have none

    # Where the Scheduled Events are is where the tokens of the VM's identity are.
    store = open_store(setup.group.store, credentials_directory(os.environ), client.endpoint.url)
    return GroupOptions(setup.group, store, ThreadRequester(stop.wake, clocks.monotonic))


def _readiness(args: argparse.Namespace, beat: Beat | None, clocks: Clocks) -> Readiness | None:
    """Return what the probe answers from, or None without a probe. The previous runner may have known the VM's name."""
    if args.probe_listen is None or args.once:
        return None
    known = None if beat is None else beat.fields.get("vm")
    name = args.vm_name or (known if isinstance(known, str) else None)
    return Readiness(clocks, args.probe_lead, name, drills=not args.dry_run)


@contextmanager
def _listening(runner: Runner, readiness: Readiness | None, args: argparse.Namespace) -> Iterator[None]:
    """Serve metrics and probes, if configured. Raises InputError at once if that is not possible."""
    with ExitStack() as stack:
        servers: list[HttpListener] = []
        if args.metrics_listen is not None and not args.once:
            from ...runner.telemetry.metrics_server import MetricsServer  # here: many have none

            servers.append(MetricsServer(args.metrics_listen, runner.recorder.metrics.render, runner.health.health))
        if readiness is not None:
            from ...runner.telemetry.probe_server import ProbeServer  # here: many have none

            servers.append(ProbeServer(args.probe_listen, readiness.alive, readiness.ready))
        for server in servers:
            server.start()
            stack.callback(server.close)
        yield


def _trusted_needs(setup: Setup, mode: Mode) -> Needs:
    """Return what hooks need, if they run. Raises InputError for a program that other users can change."""
    needs = _needs(setup, mode)
    needs.refuse_untrusted()
    return needs


def _needs(setup: Setup, mode: Mode) -> Needs:
    if mode.dry_run or mode.once:
        return Needs()
    return examine(setup.policies.hooks_by_rule(), credentials_directory(os.environ))


def _needs_check(setup: Setup, mode: Mode, needs: Needs) -> NeedsCheck | None:
    return (lambda: _needs(setup, mode).missing()) if needs.hooks else None


def _facts(setup: Setup) -> dict[str, Any]:
    """Return what the heartbeat says of a configuration that was loaded."""
    source, loaded = setup.policies.artifact.source, setup.loaded
    return {
        "config": setup.config,
        "policies": list(setup.policies.names),
        "source": None if source is None else dict(source),
        "serial": loaded.artifact.serial,
        "serial_since": loaded.since,
        "policy_problem": loaded.problem,
    }


def _introduce(runner: Runner, setup: Setup, endpoint: str, directory: str | None, clocks: Clocks) -> None:
    args, health = setup.args, runner.health
    journal, log, metrics = runner.recorder
    fields = {
        "version": __version__,
        "endpoint": endpoint,
        "api_version": setup.policies.api_version,
        "dry_run": bool(args.dry_run),
        "state": directory,
    }
    interval = None if args.once else setup.interval
    digest = setup.policies.digest
    serial = {} if setup.loaded.artifact.serial is None else {"serial": setup.loaded.artifact.serial}
    log.info("started", **fields, digest=digest, **serial, once=args.once, interval_seconds=interval)
    journal.note("runner-started", None, **fields, policy=digest)
    health.facts.update(interval_seconds=interval, dry_run=bool(args.dry_run), pid=os.getpid())
    health.facts.update(vm_given=args.vm_name is not None, options=setup.options, program=commands.ROOT)
    health.facts.update(_facts(setup))
    health.record_policies(setup.policies)
    if setup.loaded.problem is not None:
        log.error("policy-refused", reason=setup.loaded.problem, hint="The policies that were in use last are in use.")
        metrics.set("forewarn_last_reload_successful", 0.0)
    python = ".".join(str(part) for part in sys.version_info[:3])
    metrics.set("forewarn_build_info", 1.0, version=__version__, python=python)
    metrics.set("forewarn_start_timestamp_seconds", clocks.wall())
    metrics.set("forewarn_dry_run", 1.0 if args.dry_run else 0.0)


def _previous(beat: Beat | None, clocks: Clocks) -> PreviousRunner:
    if beat is None:
        return PreviousRunner()
    return PreviousRunner(_last_poll(beat), downtime(beat, clocks), reported_pause(beat))


def _last_poll(beat: Beat | None) -> Stamp | None:
    """Return when the previous runner last got an answer."""
    try:
        found: Any = None if beat is None else beat.fields["last_good_poll"]
        return None if found is None else Stamp.of(found)
    except (KeyError, TypeError, ValueError):
        return None


def _reloaded(setup: Setup, before: Setup, mode: Mode) -> Configuration:
    """Return the settings that a reload can change. Raises InputError if they are wrong or need a restart."""
    if setup.policies.api_version != before.policies.api_version:
        raise InputError(
            f"the policies are now for api-version {setup.policies.api_version}, and the service is asked for "
            f"{before.policies.api_version}",
            "Restart the runner.",
        )
    if _source_of(setup) != _source_of(before):
        raise InputError("the policy source, or who may sign its policies, has changed", "Restart the runner.")
    if setup.group != before.group:
        raise InputError("the group of this VM, its members or its store have changed", "Restart the runner.")
    if setup.loaded.problem is not None:
        raise InputError(setup.loaded.problem)
    needs = _trusted_needs(setup, mode)
    shadow = None if setup.shadow is None else Shadow(setup.shadow)
    setup = remember(setup)
    return Configuration(
        setup.policies,
        shadow,
        setup.interval,
        needs.missing(),
        _needs_check(setup, mode, needs),
        MappingProxyType(_facts(setup)),
    )
