# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands that drive a running emulator share: its address, values of options, and output."""

from __future__ import annotations

import argparse
import ipaddress
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...emulator.client import EmulatorClient
from ...emulator.spec import parse_duration
from ...errors import InputError
from ...texts import exact_text
from ..output.console import Console, write_result

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


def report_event(args: argparse.Namespace, client: EmulatorClient, event_id: str, done: str, more: str = "") -> int:
    """Report what was done to an event: a line for people, or the event as JSON. Return the exit code."""
    event = client.event(event_id)
    console = write_result(args.json, "emulate-event", {"event": event})
    name = f"{event['name']}, " if event["name"] else ""
    console.result(
        done, f"{event['event_id']} ({name}{event['type']} of {', '.join(event['resources'])}){more}", "green"
    )
    return 0


def report_state(
    args: argparse.Namespace, client: EmulatorClient, show: Callable[[Console, Mapping[str, Any]], None]
) -> int:
    """Report the state of the emulator: what ``show`` writes for people, or all of it as JSON. Return the exit code."""
    state = client.state()
    show(write_result(args.json, "emulate-state", state), state)
    return 0


def show_time(console: Console, state: Mapping[str, Any]) -> None:
    """Write a sentence on the emulated time."""
    scale = state["time_scale"]
    pace = "runs as real time does" if scale == 1 else f"runs {scale:g} times as fast as real time"
    pace = pace if scale else "stands still until it is advanced"
    console.line(f"{exact_text(state['elapsed'])} of emulated time since the start; it {pace}.")


def show_faults(console: Console, state: Mapping[str, Any]) -> None:
    """Write a line for each fault."""
    if not state["faults"]:
        console.line("No request fails.")
    for fault in state["faults"]:
        console.result("fault", _fault_text(fault, state["now"]["emulated"]), "red")


def _fault_text(fault: Mapping[str, Any], now: float) -> str:
    texts = [f"status {fault['status']}" if fault["kind"] == "status" else fault["kind"]]
    if fault["latency"]:
        texts.append(f"{exact_text(fault['latency'])} late")
    if fault.get("retry_after") is not None:
        texts.append(f"Retry-After {exact_text(fault['retry_after'])}")
    if fault["processed"]:
        texts.append("processed anyway")
    texts += [f"requests {', '.join(fault['requests'])}"] if fault.get("requests") else []
    texts += [f"of {', '.join(fault['vms'])}"] if fault.get("vms") else []
    texts += [f"for another {exact_text(fault['until'] - now)}"] if fault.get("until") is not None else []
    texts += [f"times left: {fault['left']}"] if fault.get("left") is not None else []
    return ", ".join(texts)


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
