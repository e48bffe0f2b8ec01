# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of commands that ask the service, and the client made from them."""

from __future__ import annotations

import argparse
import math
import os

from ..errors import InputError
from ..events import API_VERSIONS, LATEST_API_VERSION
from ..imds import azure
from ..imds.client import Client
from ..imds.endpoint import DEFAULT_ENDPOINT, ENVIRONMENT_VARIABLE, resolve_endpoint
from .output.console import Console

# Somebody is waiting at a terminal. (The first answer can still take 2 minutes, SE-05.)
PATIENCE_SECONDS = 20.0


def add_endpoint_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--endpoint``."""
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help=f"base address of the service, or 'auto' to take it from the DHCP leases, option 245 (default: "
        f"{ENVIRONMENT_VARIABLE} of the environment, else, in Azure, {DEFAULT_ENDPOINT})",
    )


def add_service_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--endpoint``, ``--api-version`` and ``--patience``."""
    add_endpoint_argument(parser)
    parser.add_argument(
        "--api-version",
        metavar="VERSION",
        default=LATEST_API_VERSION,
        help=f"api-version to ask for, from {API_VERSIONS[0]} on (default: {LATEST_API_VERSION})",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=seconds,
        default=PATIENCE_SECONDS,
        help=f"how long to retry after a fault that may pass (default: {PATIENCE_SECONDS:g})",
    )


def seconds(text: str) -> float:
    """Read a number of seconds for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def client_of(args: argparse.Namespace, console: Console) -> Client:
    """Return a client for parsed arguments; while it retries, it notes the reason on ``console``.

    Raises InputError, also if no endpoint is given and the machine is not known to be in Azure.
    """
    endpoint = resolve_endpoint(args.endpoint, os.environ)
    refuse_elsewhere(args.endpoint, endpoint)
    return Client(endpoint, args.api_version, log=console.note)


def refuse_empty_name(vm_name: str | None) -> None:
    """Raise InputError for an empty VM name: no event would affect it."""
    if vm_name is not None and not vm_name.strip():
        raise InputError("--vm-name is empty.", "Leave it out to ask the instance metadata.")


def refuse_elsewhere(option: str | None, endpoint: str) -> None:
    """Raise InputError if ``endpoint`` is the default address and the machine is not known to be in Azure."""
    why = azure.platform_problem(option, endpoint, os.environ)
    if why is not None:
        raise InputError(f"{why}. {DEFAULT_ENDPOINT} was not asked.", azure.HINT)
