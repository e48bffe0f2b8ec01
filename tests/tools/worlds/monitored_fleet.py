# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large fleet that is not there, as Prometheus sees it: pages of metrics, each of many VMs.

The runner's own code renders what a VM exposes. VMs that differ in their names alone share one rendering.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from typing import Any, NamedTuple

from forewarn.events import Event
from forewarn.runner.clocks import Clocks, Stamp
from forewarn.runner.event_record import EventRecord
from forewarn.runner.telemetry.event_metrics import set_event_metrics
from forewarn.runner.telemetry.metrics import Metrics

SET = 100  # VMs that list the same events
WITH_EVENTS = 10  # of so many sets one has events: one that its first VM prepares for, and one that its second holds
SERIALS = (1764000000, 1764003600)  # of policies; every hundredth VM has the first
_NAME = "@vm@"


class MonitoredFleet(NamedTuple):
    """VMs by name. Those of ``troubled`` have no answer from the service, those of ``silent`` stop reporting."""

    names: Sequence[str]

    @property
    def troubled(self) -> Sequence[str]:
        return self.names[5::200]

    @property
    def silent(self) -> Sequence[str]:
        return self.names[7::500]

    @property
    def outdated(self) -> Sequence[str]:
        return self.names[3::100]

    @property
    def affected(self) -> Sequence[str]:
        """Return the VMs with an event of their own."""
        begins = range(0, len(self.names), SET * WITH_EVENTS)
        return [name for begin in begins for name in self.names[begin : begin + 2]]

    def texts(self) -> dict[str, str]:
        """Return the exposition of each VM, with its name as the label ``instance``."""
        now, found = time.time(), {}
        troubled, outdated = set(self.troubled), set(self.outdated)
        renderings: dict[object, str] = {}
        for place, name in enumerate(self.names):
            of_set, within = divmod(place, SET)
            first = self.names[of_set * SET : of_set * SET + 2] if of_set % WITH_EVENTS == 0 else []
            profile = (name in troubled, name in outdated, tuple(first), within if within < 2 and first else None)
            if profile not in renderings:
                renderings[profile] = _rendered(now, troubled=profile[0], outdated=profile[1], first=first, own=within)
            found[name] = renderings[profile].replace(_NAME, name)
        return found


def monitored_fleet(vms: int) -> MonitoredFleet:
    """Return a fleet of so many VMs."""
    return MonitoredFleet([f"vm-{number:05}" for number in range(vms)])


def _rendered(now: float, troubled: bool, outdated: bool, first: Sequence[str], own: int) -> str:
    metrics = Metrics()
    metrics.set("forewarn_build_info", 1.0, version="0.2.0", python="3.11.2")
    artifact = {"digest": f"sha256:{'ab' * 32}", "api_version": "2020-07-01", "policies": "web-tier, defaults"}
    metrics.set("forewarn_artifact_info", 1.0, **artifact, ref="v1.4", commit="3f2a9c1d0e4b77aa", modified=False)
    metrics.set("forewarn_vm_info", 1.0, name=_NAME)
    metrics.set("forewarn_start_timestamp_seconds", now - 86400)
    # Ahead, so that a VM does not become silent while somebody measures.
    metrics.set("forewarn_last_good_poll_timestamp_seconds", now + 7200)
    metrics.set("forewarn_last_good_poll_age_seconds", 1.0)
    metrics.set("forewarn_service_up", 0.0 if troubled else 1.0)
    metrics.set("forewarn_policy_serial", float(SERIALS[not outdated]))
    for name in ("forewarn_policy_loaded_timestamp_seconds", "forewarn_policy_source_last_success_timestamp_seconds"):
        metrics.set(name, now - 600)
    for result in ("unchanged", "updated", "failed", "refused"):
        metrics.count("forewarn_policy_source_checks_total", 5.0, result=result)
    for name in ("policy_source_up", "journal_up"):
        metrics.set(f"forewarn_{name}", 1.0)
    for name in ("dry_run", "paused", "pause_unreadable", "journal_damaged_records", "document_problems"):
        metrics.set(f"forewarn_{name}", 0.0)
    for labels in product(("prepare", "recover", "notify"), ("run", "http"), ("failed", "timed-out", "not-started")):
        metrics.count("forewarn_hooks_total", 0.0, **dict(zip(("phase", "kind", "result"), labels)), drill=False)
    set_event_metrics(metrics, list(_records(now, first, own)), _NAME, Clocks())
    lines = (line for line in metrics.render().splitlines() if not line.startswith("#"))
    return "".join(f"{_with_instance(line)}\n" for line in lines)


def _records(now: float, first: Sequence[str], own: int) -> Iterator[EventRecord]:
    for number, name in enumerate(first):
        affected = number == own
        moment = datetime.fromtimestamp(int(now) + 900, timezone.utc)
        event = Event(f"{name}-event", ("Reboot", "Freeze")[number], "VirtualMachine", (name,), "Scheduled", moment)
        record = EventRecord(number + 1, event, Stamp(now - 60, 0.0, ""))
        record.affected = affected
        record.state = "preparing" if affected and number == 0 else "held"
        answer = ("approve", "drain") if record.state == "preparing" else ("hold", "rest")
        record.decision = {"output": answer[0], "policy": "web-tier", "rule": answer[1]}
        yield record


def _with_instance(line: str) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{instance="{_NAME}",{rest}'
    name, _space, value = line.partition(" ")
    return f'{name}{{instance="{_NAME}"}} {value}'


def pages(texts: Mapping[str, str], number: int) -> list[bytes]:
    """Return the expositions of VMs on at most ``number`` pages."""
    every = list(texts.values())
    size = -(-len(every) // number)
    return ["".join(every[begin : begin + size]).encode() for begin in range(0, len(every), size)]


class ExpositionServer:
    """Serves ``pages``, which may be replaced, at /0, /1 and so on."""

    def __init__(self, server: ThreadingHTTPServer, pages: list[bytes]) -> None:
        self.pages = pages
        self._server = server

    def job(self, **settings: Any) -> dict[str, Any]:
        """Return the scrape configuration of one job that reads all pages."""
        address = f"127.0.0.1:{self._server.server_address[1]}"
        targets = [
            {"targets": [address], "labels": {"__metrics_path__": f"/{number}"}} for number in range(len(self.pages))
        ]
        relabel = {"source_labels": ["__metrics_path__"], "target_label": "instance", "replacement": "page$1"}
        return {
            "job_name": "node",
            "honor_labels": True,
            "static_configs": targets,
            "relabel_configs": [relabel],
            **settings,
        }


@contextmanager
def exposition_server(pages: list[bytes]) -> Iterator[ExpositionServer]:
    """Serve pages of metrics on loopback."""
    served: list[ExpositionServer] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, served))
    served.append(ExpositionServer(server, pages))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, served: list[ExpositionServer], *arguments: Any) -> None:
        self._served = served
        super().__init__(*arguments)

    def do_GET(self) -> None:
        body = self._served[0].pages[int(self.path[1:])]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing of requests."""
