# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of ``forewarn run``."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ...errors import InputError
from ...events import LATEST_API_VERSION
from ...system.log_destination import LogDestination
from ...system.paths import STATE_DEFAULT
from ..service_options import add_endpoint_argument, seconds
from .setup import LOG_FORMATS, PROBE_LEAD_SECONDS, SINK_FORMATS, checked_interval

_INTERVAL = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)s?", re.ASCII)


def defaults() -> dict[str, Any]:
    """Return the options of a command line without any, by name: what ``setup.read`` takes."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return vars(parser.parse_args([]))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--policy", nargs="+", metavar="PATH", help="policy files, or directories of them: compiled on the spot"
    )
    source.add_argument("--artifact", metavar="FILE", help="output of 'forewarn policy compile'; needs only Python")
    add_endpoint_argument(parser)
    parser.add_argument(
        "--api-version",
        metavar="VERSION",
        help=f"api-version to compile policies for, and to ask for (default: the artifact's, else "
        f"{LATEST_API_VERSION})",
    )
    parser.add_argument(
        "--vm-name", metavar="NAME", help="resource name of this VM (default: from the instance metadata)"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="value of a policy's parameter; repeatable"
    )
    parser.add_argument(
        "--interval", type=_interval, metavar="SECONDS", help="time between polls, from 1s (default) to 60s"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        default=None,
        help="approve nothing and run no hook; log and keep what would be done, in a separate state directory",
    )
    parser.add_argument("--once", action="store_true", help="poll once, decide, approve, and end")
    parser.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        help=f"format of the log (default: auto, {LogDestination.FORM} for a service)",
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help=f"directory for what must survive a restart (default: {STATE_DEFAULT}; with --dry-run its subdirectory "
        "dry-run; none with --once)",
    )
    parser.add_argument(
        "--signers",
        metavar="FILE",
        help="use only policies that somebody in this list of allowed signers has signed (see ssh-keygen(1))",
    )
    parser.add_argument("--revoked-signers", metavar="FILE", help="list of keys whose signatures are refused")
    parser.add_argument(
        "--policy-source", metavar="URL", help="ask there for newer policies every minute; needs --signers"
    )
    parser.add_argument("--shadow", metavar="FILE", help="second artifact, which decides too; differences are logged")
    parser.add_argument("--metrics-file", metavar="FILE", help="write Prometheus metrics there, for node_exporter")
    parser.add_argument(
        "--metrics-listen", metavar="ADDRESS:PORT", help="serve /metrics and /healthz, on loopback only"
    )
    parser.add_argument(
        "--probe-listen",
        metavar="ADDRESS:PORT",
        help="serve /healthz and /readyz to load balancers, on any address: a status and a word, nothing else",
    )
    parser.add_argument(
        "--probe-lead",
        type=seconds,
        metavar="SECONDS",
        help=f"how long before NotBefore /readyz answers no, whatever is decided (default: {PROBE_LEAD_SECONDS:g})",
    )
    parser.add_argument(
        "--allow-endpoint",
        action="store_true",
        default=None,
        help="trust an endpoint that is neither link-local nor loopback",
    )
    parser.add_argument("--hook-proxy", metavar="URL", help="proxy of http hooks and of the sink (default: none)")
    parser.add_argument(
        "--hook-ca-file", metavar="FILE", help="certificates that http hooks and the sink trust (default: the system's)"
    )
    parser.add_argument(
        "--sink-url", metavar="URL", help="send what the journal records there, in batches (default: nowhere)"
    )
    parser.add_argument("--sink-format", choices=SINK_FORMATS, help=f"format of that (default: {SINK_FORMATS[0]})")
    secret = parser.add_mutually_exclusive_group()
    secret.add_argument("--sink-bearer-file", metavar="FILE", help="file that has the sink's bearer token")
    secret.add_argument("--sink-credential", metavar="NAME", help="credential that has the sink's bearer token")
    parser.add_argument("--config", metavar="FILE", help="JSON object of these options; the command line overrides it")
    parser.add_argument(
        "--check-config",
        action="store_true",
        help="only check that a runner could start like this, and that its hooks have what they need: exit code 0, or "
        "1 if something is missing for hooks, or 2 if a runner would not start",
    )
    parser.add_argument(
        "--credential",
        action="append",
        default=[],
        metavar="NAME",
        help="with --check-config: the service will be given this credential; repeatable",
    )
    parser.add_argument("--json", action="store_true", help="with --check-config: write one JSON object")
    parser.add_argument(
        "--service", action="store_true", help="only in the command line of a service of Windows: report to its manager"
    )


def _interval(text: str) -> float:
    match = _INTERVAL.fullmatch(text)
    try:
        return checked_interval(float(match.group(1)) if match else 0.0)
    except InputError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error.message}") from error
