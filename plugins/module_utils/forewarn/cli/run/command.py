# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run``: the service that polls, decides by policy, and approves. docs/operations.md describes it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...errors import InputError
from ...imds import azure
from ...imds.client import Client
from ...imds.endpoint import parse_endpoint, resolve_endpoint
from ...runner.state import directories, dry_runs, machine_lock
from ...runner.state.accepted_policy import OlderPolicyError, read_accepted
from ...system.service_manager import as_service
from ...system.signals import StopSignals
from ..service_options import refuse_elsewhere
from .options import add_options
from .setup import Setup, read, remember


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT, until the service manager asks for the end, or once."""
    if not args.service:
        return _run(args, None)
    if args.once or args.check_config:
        other = "--once" if args.once else "--check-config"
        raise InputError(f"--service and {other} do not go together.", "Leave one of them out.")
    return as_service(lambda stop: _run(args, stop))


def _run(args: argparse.Namespace, stop: StopSignals | None) -> int:
    given = dict(vars(args))
    if args.check_config:
        from .check import check

        return check(given)
    if args.json or args.credential:
        raise InputError("--json and --credential belong to --check-config.", "Add it, or leave them out.")
    setup = read(given, os.environ)
    args, directory = setup.args, setup.directory
    endpoint = resolve_endpoint(args.endpoint, os.environ)
    if args.once:
        refuse_elsewhere(args.endpoint, endpoint)
    doubt = azure.platform_problem(args.endpoint, endpoint, os.environ)
    lock = None
    machine = machine_lock.MachineLock(parse_endpoint(endpoint), args.vm_name)
    if directory is not None:
        lock = directories.StateDirectory(directory)
        lock.prepare()
        lock.lock()
    try:
        if directory is not None:
            dry_runs.claim(directory, bool(args.dry_run))
            setup = _remembered(setup, given)
        if not (args.once or args.dry_run):  # these run no hooks
            machine.lock()
            for text in machine.others:
                sys.stderr.write(f"Warning: {text}\n")
        client = Client(endpoint, setup.policies.api_version)
        if not args.once:
            client.read_ahead()  # under way while the rest is loaded
        from .service import serve

        with _noting_the_wait(client) if args.once else nullcontext():
            serve(setup, client, directory, lambda offer: read(given, os.environ, offer), doubt, stop)
    finally:
        machine.release()
        if lock is not None:
            lock.release()
    return 0


def _remembered(setup: Setup, given: Mapping[str, Any]) -> Setup:
    """Remember signed policies. On a full disk the runner starts all the same, with those that were in use last.

    Raises InputError if another runner has put newer ones in use meanwhile.
    """
    try:
        return remember(setup)
    except OlderPolicyError:
        raise
    except InputError as error:
        accepted = read_accepted(setup.directory)
        if accepted is None:
            sys.stderr.write(f"Warning: the serial of the policies will be forgotten: {error.message}\n")
            return setup
        kept = read(given, os.environ, accepted.policy)
        return kept._replace(loaded=kept.loaded._replace(problem=error.message))


def _noting_the_wait(client: Client) -> AbstractContextManager[None]:
    from ..output.console import Console  # here: a service writes to its log, and must start fast
    from ..output.progress import waiting

    return waiting(client, Console(sys.stderr))
