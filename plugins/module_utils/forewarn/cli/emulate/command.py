# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate``: serve an emulated Scheduled Events service until SIGINT or SIGTERM.

The other commands of this package drive it meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ...atomic_file import replace_file
from ...emulator.emulation import Scenario
from ...emulator.lifecycle import Transition
from ...emulator.requestlog import LoggedRequest
from ...emulator.scenario import load_scenario
from ...emulator.server import EmulatorServer, check_loopback
from ...emulator.spec import VmSpec
from ...errors import InputError
from ...events import LATEST_API_VERSION
from ...runner.telemetry.log_writer import Forms, LogWriter, write_all
from ...system.signals import StopSignals
from ..output.console import Console
from .control import DEFAULT_ADDRESS

# How long to wait at the end until the log is written; a reader that stalls gets no more of it.
_LOG_PATIENCE_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 0.5  # until it is looked again at what is due
_STATUS_STYLES = {2: "green", 3: "cyan", 4: "yellow", 5: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", default=DEFAULT_ADDRESS, metavar="HOST:PORT", help="where to listen (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, help="listen on this port instead of --listen's; 0: any that is free")
    parser.add_argument(
        "--vm-listen",
        action="append",
        default=[],
        metavar="NAME=HOST:PORT",
        help="a further port; requests to it count as that VM's; may be repeated",
    )
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="YAML file with VMs, settings and a timeline")
    parser.add_argument(
        "--vm",
        action="append",
        metavar="NAME",
        help="a VM; the first one is the default; may be repeated, and replaces the scenario's",
    )
    parser.add_argument(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="N",
        help="run emulated time N times as fast as real time; 0: only when it is advanced",
    )
    parser.add_argument(
        "--rate-limit",
        type=int,
        metavar="N",
        help="requests per second and VM before 429 (default: unlimited; Azure allows 5)",
    )
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="write the base URL there when it listens")
    parser.add_argument("--allow-remote", action="store_true", help="allow addresses other than loopback")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name or address by which the control API can be addressed, besides loopback and those it listens on; "
        "may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    if args.command is not None:
        raise InputError(
            f"{args.command} drives a running emulator; the options before it are for starting one.",
            f"Write it like: forewarn emulate {args.command}",
        )
    scenario = load_scenario(args.scenario) if args.scenario else Scenario()
    if args.vm:
        if args.scenario:
            raise InputError("--vm and --scenario both name the VMs.", "Give one of them.")
        scenario = replace(scenario, vms=tuple(VmSpec(name) for name in args.vm))
    if args.rate_limit is not None:
        if args.rate_limit < 0:
            raise InputError("--rate-limit is negative.", "Give 0 for no limit.")
        scenario = replace(scenario, settings=replace(scenario.settings, requests_per_second=args.rate_limit))
    host, port = _address(args.listen, args.allow_remote)
    listeners = {}
    for option in args.vm_listen:
        name, equals, address = option.partition("=")
        if not equals:
            raise InputError(f"--vm-listen {option!r} has no '='.", "Write it like web_0=127.0.0.1:8001.")
        listeners[name] = _address(address, args.allow_remote)
    with StopSignals(reloads=False) as stop:
        log = _Log(args.json, stop.wake)
        server = EmulatorServer(
            scenario,
            host,
            port if args.port is None else _port(str(args.port)),
            time_scale=args.time_scale,
            listeners=listeners,
            allowed_hosts=args.allow_host,
            on_transition=log.transition,
            on_answer=log.answer,
        )
        with server:
            log.listening(server)
            with _ready_file(args.ready_file, server.url):
                _serve(server, stop, log)
            log.stopped()
    log.close(_LOG_PATIENCE_SECONDS)
    return 0


def _serve(server: EmulatorServer, stop: StopSignals, log: _Log) -> None:
    """Play each transition when it is due, so that the log shows it then, until a signal arrives.

    Raises BrokenPipeError once nobody reads the log any more.
    """
    emulation = server.emulation
    while stop.received is None and not log.broken:
        with emulation.lock:
            emulation.model.settle()
            due, scale = emulation.model.next_due(), emulation.clock.scale
            wait = _LONGEST_WAIT_SECONDS
            if due is not None and scale:
                wait = min(wait, max(0.0, (due - emulation.clock.now()) / scale))
        stop.wait(wait)
    if log.broken:
        raise BrokenPipeError


class _Log:
    """Writes one line per request and transition, for people or as JSON.

    A thread writes them: a reader that stalls delays neither requests nor the end.
    """

    def __init__(self, as_json: bool, on_broken: Callable[[], None]) -> None:
        self.broken = False  # nobody reads it any more
        self._json = as_json
        self._console = Console(sys.stdout)
        self._on_broken = on_broken
        self._encoding = sys.stdout.encoding or "utf-8"
        self._descriptor = sys.stdout.fileno()
        self._writer = LogWriter(self._deliver, self._about_lost)

    def close(self, seconds: float) -> None:
        """Write the lines that are left, for at most ``seconds``."""
        self._writer.close(seconds)

    def listening(self, server: EmulatorServer) -> None:
        """Log the addresses, and commands to try."""
        with server.emulation.lock:
            names = [vm.name for vm in server.emulation.model.vms()]
        endpoints = {name: server.vm_endpoint(name) for name in names}
        url = f"{server.url}/metadata/scheduledevents?api-version={LATEST_API_VERSION}"
        body = '{"StartRequests": [{"EventId": "…"}]}'
        lines = [f"Emulating Scheduled Events at {server.url}"]
        lines += [
            f"  {name}: {endpoint}{' (the default)' if name == names[0] else ''}"
            for name, endpoint in endpoints.items()
        ]
        lines += [
            "Ask what is scheduled, approve, publish a reboot:",
            f"  curl -H Metadata:true '{url}'",
            f"  curl -H Metadata:true -d '{body}' '{url}'",
            f"  forewarn emulate publish --type Reboot --notice 2m --control {server.url}",
            "Stop with Ctrl-C.",
        ]
        values = {"url": server.url, "default_vm": names[0], "vms": endpoints}
        self._write("listening", values, "\n".join(lines))

    def answer(self, entry: LoggedRequest) -> None:
        """Log a request."""
        status = "closed" if entry.status is None else str(entry.status)
        style = _STATUS_STYLES.get((entry.status or 500) // 100, "red")
        parts = [_clock_time(entry.received.wall), entry.vm or "?", entry.method, entry.path, entry.api_version or "-"]
        line = " ".join(self._console.style(part) for part in parts) + " " + self._console.style(status, style)
        if entry.incarnation is not None:
            line += f" incarnation {entry.incarnation}"
        if entry.event_ids:
            line += self._console.style(f" start {', '.join(entry.event_ids)}")
        if entry.fault:
            line += f" fault {entry.fault}"
        if entry.error:
            line += self._console.style(f" ({entry.error})")
        if entry.answered is not None:
            line += f" {(entry.answered.monotonic - entry.received.monotonic) * 1000:.1f} ms"
        self._write("request", vars(entry), line)

    def transition(self, transition: Transition) -> None:
        """Log what happened to an event or a deployment."""
        text = f"{transition.subject} {self._console.style(transition.kind, 'bold')}"
        line = f"{_clock_time(transition.at.wall)} {text} {self._console.style(transition.detail)}".rstrip()
        self._write("transition", vars(transition), line)

    def stopped(self) -> None:
        """Log that the emulator has stopped."""
        self._write("stopped", {}, "Stopped.")

    def _write(self, kind: str, values: Mapping[str, Any], text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the serving threads must not fail; the main thread ends
            self._writer.put(self._forms(kind, values, text))

    def _forms(self, kind: str, values: Mapping[str, Any], text: str) -> Forms:
        """Return a line: ``values`` as JSON, or the ``text`` for people."""
        if self._json:
            content = {"forewarn": {"schema": "emulate", "version": 1}, "event": kind, **values}
            text = json.dumps(content, default=vars)
        return ((text + "\n").encode(self._encoding, "backslashreplace"),)

    def _about_lost(self, count: int) -> Forms:
        return self._forms("lost", {"lines": count}, f"({count} lines before this one could not be written.)")

    def _deliver(self, forms: Forms) -> None:
        try:
            write_all(self._descriptor, forms[-1])
        except BrokenPipeError:
            self.broken = True
            self._on_broken()
            raise


def _clock_time(wall: float) -> str:
    return datetime.fromtimestamp(wall, timezone.utc).strftime("%H:%M:%S.%f")[:-3] + "Z"


def _address(text: str, allow_remote: bool) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host:
        raise InputError(f"{text!r} is not HOST:PORT.", "Write it like 127.0.0.1:8254.")
    check_loopback(host, allow_remote)
    return host, _port(port)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise InputError(f"{text!r} is not a port.", "Give a number from 0 (any that is free) to 65535.")
    return int(text)


@contextlib.contextmanager
def _ready_file(path: Path | None, url: str) -> Iterator[None]:
    """Keep a file with the base URL for as long as the emulator serves; readers never see a part of it."""
    if path is None:
        yield
        return
    replace_file(path, f"{url}\n".encode())
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
