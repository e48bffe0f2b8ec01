# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the commands that drive a running emulator: its address, option values, and output."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...emulator.client import EmulatorClient
from ...emulator.spec import parse_duration
from ...errors import InputError
from ..output.console import Console, one_line, write_json

DEFAULT_ADDRESS = "127.0.0.1:8254"
_METADATA_SERVICE = ipaddress.ip_address("169.254.169.254")  # SE-01: in Azure a request there is a real one


def add_control_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--control``, ``--allow-remote`` and ``--json``."""
    parser.add_argument(
        "--control",
        metavar="URL",
        default=f"http://{DEFAULT_ADDRESS}",
        help="base address of the emulator (default: %(default)s)",
    )
    parser.add_argument("--allow-remote", action="store_true", help="allow --control to name another machine")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Exit codes: 0 if the emulator did it; 2 for bad usage, an unknown event, or an event whose state forbids it; "
        "3 if no emulator answers. Times are emulated: a number of seconds, or 90s, 15m, 1h30m, 7d and the like."
    )


def client_of(args: argparse.Namespace) -> EmulatorClient:
    """Return a client for parsed arguments. Raises InputError for an address that must not be asked."""
    try:
        url = urlsplit(args.control)
        host, _port = url.hostname, url.port
    except ValueError:
        host = None
    if not host or url.scheme != "http" or url.path.strip("/") or url.query or url.fragment or "@" in url.netloc:
        raise InputError(
            f"--control {args.control!r} is not the base address of an emulator.",
            f"Write it like http://{DEFAULT_ADDRESS}, without a path.",
        )
    _check_host(host, args.allow_remote)
    return EmulatorClient(args.control)


def seconds(text: str) -> float:
    """Read a duration, or a number of seconds, for argparse."""
    try:
        return parse_duration(float(text) if text.replace(".", "", 1).isdecimal() else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 15m, 1h30m or 7d") from error


def report(args: argparse.Namespace, done: str, event: Mapping[str, Any], more: str = "") -> None:
    """Report what was done to an event: a line for people, or the event as JSON."""
    if args.json:
        write_json("emulate-event", {"event": event})
        return
    console = Console(sys.stdout)
    name = f"{event['name']}, " if event["name"] else ""
    text = f" {event['event_id']} ({name}{event['type']} of {', '.join(event['resources'])}){more}"
    console.line(console.style(f"{done}:", "green") + one_line(text))


def _check_host(host: str, allow_remote: bool) -> None:
    """Raise InputError for another machine unless that is allowed, and always for Azure's own service."""
    if host == "localhost":
        return
    try:
        addresses = [ipaddress.ip_address(host)]
    except ValueError:
        addresses = _look_up(host) if allow_remote else []
    if any((getattr(address, "ipv4_mapped", None) or address) == _METADATA_SERVICE for address in addresses):
        raise InputError(f"--control: {host} is the address of Azure's own service, never of an emulator.")
    if not allow_remote and not (addresses and addresses[0].is_loopback):
        raise InputError(f"--control: {host} is not a loopback address.", "Add --allow-remote if it is meant.")


def _look_up(name: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        return [ipaddress.ip_address(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:  # the request will fail for the same reason
        return []
