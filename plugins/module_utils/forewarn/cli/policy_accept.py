# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy accept``: lets signed policies follow that are older than those in use. See docs/signing.md.

Beside ``policy`` and not in it: a VM has this command, and none of those that need the compiler.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..errors import InputError
from ..policy.artifact import load_file
from ..runner.clocks import Clocks
from ..runner.hooks.recovery_requests import requesting_user
from ..runner.state import accepted_policy
from ..runner.state.accepted_policy import Permit
from ..runner.telemetry import heartbeat
from ..system import paths
from .output.console import write_result
from .run.config import read_config
from .runner_state import add_state_argument, number_of, object_of, state_directory, text_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older",
        action="store_true",
        required=True,
        help="needed: policies that are older than those in use may follow",
    )
    parser.add_argument(
        "--artifact",
        metavar="FILE",
        help="the policies that may follow (default: those that were refused as older)",
    )
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = "Nothing changes before the next reload. The policies still need a valid signature."


def run(args: argparse.Namespace) -> int:
    """Write the permit, and say what to do next."""
    directory = state_directory(args.state, args.dry_run)
    accepted = accepted_policy.read_accepted(directory)
    if accepted is None:
        return _say(args, directory, None, "no signed policies are in use here: any may follow.")
    serial = _serial_in(args.artifact) if args.artifact else _refused_serial(directory, accepted.serial)
    if serial >= accepted.serial:
        text = f"serial {serial} is not older than {accepted.serial}, the one in use: it may follow anyway."
        return _say(args, directory, None, text)
    permit = Permit(serial, accepted.serial, accepted.since, requesting_user(os.environ), round(Clocks().wall(), 3))
    accepted_policy.write_permit(directory, permit)
    return _say(args, directory, permit, f"serial {serial} or newer may follow {accepted.serial} on this VM.")


def _say(args: argparse.Namespace, directory: str, permit: Permit | None, text: str) -> int:
    content = {"state": directory, "permitted": permit is not None, **({} if permit is None else permit._asdict())}
    console = write_result(args.json, "policy-accept", content)
    if permit is None:
        console.line(text)
    else:
        console.result("accepted", text, "green")
        console.line("Reload the runner, by systemctl reload forewarn on Linux.")
    return 0


def _serial_in(path: str) -> int:
    serial = load_file(path).serial
    if serial is None:
        raise InputError(f"{path} has no serial.", "Compile it again with --sign.")
    return serial


def _refused_serial(directory: str, in_use: int) -> int:
    """Return the serial of older policies of the source or the configuration. Raises InputError without any."""
    beat = heartbeat.read(directory, paths.memory_directory(os.environ))
    fields: Mapping[str, Any] = {} if beat is None else beat.fields
    source = object_of(fields, "policy_source")
    # With a source, the file is what the VM began with, and older as a rule.
    found = number_of(source, "refused_serial") if source else _configured_serial(fields)
    if found is None or found >= in_use:
        raise InputError(f"nothing older than serial {in_use} was refused here.", "Name it: --artifact FILE.")
    return int(found)


def _configured_serial(fields: Mapping[str, Any]) -> int | None:
    options = object_of(fields, "options")
    path: object = options.get("artifact")
    with suppress(InputError):
        if path is None and text_of(options, "config"):
            path = read_config(text_of(options, "config")).options.get("artifact")
        return None if not isinstance(path, str) else load_file(path).serial
    return None
