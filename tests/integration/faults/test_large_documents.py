# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` and documents of any size: it goes on, in fixed memory, and reports what it did not read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.journal.reader import JournalReader
from tools.fixtures.events import MIGRATION, listed
from tools.sites.commands import in_process
from tools.sites.runner_process import Process, compiled
from tools.sites.waiting import wait_until
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(2)

MOST_MIB = 64.0
POLICY = """
name: all
rule:
  match:
    - condition: event.EventType == "Freeze"
      output: approve
      approver: any
"""


class Service:
    """Answers every GET with one body; keeps the ids that were approved."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.approved: list[str] = []
        self.polls = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = b'{"compute": {"name": "web_0"}}' if "instance" in self.path else service.body
                service.polls += "scheduledevents" in self.path
                self._answer(body)

            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.approved += [request["EventId"] for request in content["StartRequests"]]
                self._answer(b"")

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator[Service]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


def event(number: int, **fields: object) -> dict[str, Any]:
    own = {"Resources": ["web_0"], "NotBefore": "", "Description": MIGRATION["Description"]}
    return listed(f"{number:08X}-0000-4513-9DB5-24B0A2A2A2A2", **{**own, **fields})


def document(*events: dict[str, Any]) -> bytes:
    return json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()


def nested(depth: int) -> bytes:
    return document(event(0, More="?")).replace(b'"?"', b"[" * depth + b"]" * depth)


def most_memory(pid: int) -> float:
    """Return the peak resident memory of a process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


BODIES: dict[str, Callable[[], bytes]] = {
    "10,000 events": lambda: document(*map(event, range(10_000))),
    "3,000 events": lambda: document(*map(event, range(3_000))),
    "1,000 events": lambda: document(*map(event, range(1_000))),
    "10 MB of names": lambda: document(event(0, Resources=[f"vm{number:060}" for number in range(160_000)])),
    "3 MB of names": lambda: document(event(0, Resources=[f"vm{number:060}" for number in range(47_000)])),
    "1,000 events with 100 names": lambda: document(
        *(event(number, Resources=["web_0", *(f"vm_{other}" for other in range(99))]) for number in range(1_000))
    ),
    "nested 981 deep": lambda: nested(981),
    "nested 500 deep": lambda: nested(500),
    "nested 100,000 deep": lambda: b'{"DocumentIncarnation": 1, "Events": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a million empty lists": lambda: b'{"DocumentIncarnation": 1, "Events": [' + b"[]," * 1_000_000 + b"[]]}",
    "a million empty events": lambda: b'{"DocumentIncarnation": 1, "Events": [' + b"{}," * 1_000_000 + b"{}]}",
    "2 MB of one text": lambda: document(event(0, Description="x" * 2_000_000)),
    "one wide character in 3 MB": lambda: document(event(0, Description="\U0001f600" + "x" * 3_000_000)).replace(
        b"\\ud83d\\ude00", "\U0001f600".encode()
    ),
    "a number of 3 million digits": lambda: document(event(0)).replace(b": 5", b": " + b"7" * 3_000_000),
    "2 MB of fields nobody knows": lambda: document(event(0, **{f"Field{number}": number for number in range(99_000)})),
}
READ_IN_FULL = ("1,000 events",)
REFUSED = ("10 MB of names", "nested 100,000 deep", "a number of 3 million digits", "a million")


# Each of these takes seconds to read.
MANY = ("10,000 events", "3,000 events", "1,000 events with 100 names")


@pytest.mark.in_turn(1)  # in_turn takes some of its cases
@pytest.mark.parametrize("name", [*(name for name in BODIES if name not in MANY), *in_turn(MANY)])
def test_large_document_costs_at_most_64_mib(name: str, tmp_path: Path) -> None:
    """The runner goes on whatever the document's size, and reports what it did not read."""
    artifact = compiled(tmp_path, POLICY)
    with Service(BODIES[name]()).serving() as service:
        runner = Process("--artifact", str(artifact), endpoint=service.url, state=tmp_path / "state", quick=True)
        try:
            if name == "nested 981 deep":  # whether that is JSON is a matter of the interpreter
                wait_until(lambda: {"poll-failed", "decision"} & {line["line"] for line in runner.lines})
            elif name.startswith(REFUSED):
                assert runner.wait_for("poll-failed", kind="garbage")["reason"]
            else:
                problem = runner.wait_for("document").get("problems")
                if name not in READ_IN_FULL:
                    assert (
                        problem or "in doubt" in runner.wait_for("decision", eligibility="refused-by-policy")["reason"]
                    )
                if "events" in name and "empty" not in name:  # the first document may have taken more than a second
                    wait_until(lambda: len(service.approved) == (100 if "names" in name else 1000))
            polls = service.polls
            wait_until(lambda: service.polls > polls)
            service.body = document(event(20_000))  # it has not ended, nor is it stuck
            wait_until(lambda: service.approved[-1:] == [event(20_000)["EventId"]])
            assert most_memory(runner.process.pid) < MOST_MIB
            files = sum(file.stat().st_size for file in (tmp_path / "state").iterdir())
            assert files < 20 * 2**20
        finally:
            code, _text = runner.stop()
        assert code == 0
    approved = set(service.approved) - {event(20_000)["EventId"]}
    if "events" in name and "empty" not in name:
        assert approved == {event(number)["EventId"] for number in range(100 if "names" in name else 1000)}
        # Events that were not read are not gone: only events that were read are over.
        records = JournalReader(str(tmp_path / "state")).records()
        assert len(records) == 1001
    else:
        assert not approved


def test_the_commands_say_so_too() -> None:
    for name in ("10,000 events", "nested 500 deep", "2 MB of one text"):
        with Service(BODIES[name]()).serving() as service:
            done = in_process("events", "--endpoint", service.url)
        assert done.returncode in (0, 1, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout + done.stderr


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ([{"EventType": "Reboot", "EventStatus": "Scheduled", "Resources": ["web_0"]}], "no usable EventId"),
        ([event(number, EventType="Reboot") for number in range(1001)], "1001 events are listed"),
    ],
)
def test_status_and_metrics_show_what_was_not_read(listed: list[dict[str, Any]], problem: str, tmp_path: Path) -> None:
    artifact = compiled(tmp_path, POLICY)
    state, metrics = tmp_path / "state", tmp_path / "forewarn.prom"
    with Service(document(*listed)).serving() as service:
        runner = Process(
            *("--artifact", str(artifact), "--metrics-file", str(metrics)),
            endpoint=service.url,
            state=state,
            quick=True,
        )
        try:
            runner.wait_for("document")
            wait_until(lambda: _counted(metrics) == 1.0, pause=0.05)
            (reported,) = _status(state)["problems"]
            assert problem in reported
            service.body = document()
            wait_until(lambda: _counted(metrics) == 0.0, pause=0.05)
            wait_until(lambda: not _status(state)["problems"], pause=0.05)
        finally:
            runner.stop()


def _counted(metrics: Path) -> float | None:
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    values = [float(line.split()[1]) for line in lines if line.startswith("forewarn_document_problems ")]
    return values[0] if values else None


def _status(state: Path) -> dict[str, Any]:
    done = in_process("status", "--json", "--state", state)
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(report["problems"])
    return report
