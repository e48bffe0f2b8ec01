# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last act: a real HAProxy with traffic. A VM is rebooted with a warning and without one; what fails is counted."""

from __future__ import annotations

import csv
import http.client
import os
import select
import shutil
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from acts import AFTER_DRAIN, LONG_NOTICE_SECONDS, TIME_SCALE
from narration import Narrator
from pool import PLACEHOLDER
from stage import EMULATOR, ROOT, Line, Stage, StageError, forewarn

POLICY = "demo/traffic.yml"
HEADER = ("REBOOT OF web_0", "REQUESTS", "FAILED", "OPEN WHEN IT WENT", "OK")
_VM, _OTHER = "web_0", "web_1"
_CLIENTS, _PERIOD_SECONDS, _ANSWER_SECONDS = 20, 0.4, 0.2  # 50 requests a second, 10 of them under way
_REBOOT_SECONDS = 2.0
_PATIENCE_SECONDS = 15.0
_APPLICATION = """\
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(float(sys.argv[2]) if self.path == "/" else 0)  # a request takes so long
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
_CONFIGURATION = """\
global
  stats socket {socket} mode 600 level admin
defaults
  mode http
  timeout connect 1s
  timeout client 15s
  timeout server 15s
  option redispatch
frontend clients
  bind 127.0.0.1:{port}
  default_backend web
backend web
  option httpchk GET /check
  default-server check inter 500ms fall 2 rise 2
"""


class Outcome(NamedTuple):
    """What came of the requests of a reboot; ``open`` counts those that were under way on the VM when it went."""

    title: str
    requests: int
    failed: int
    open: int


def program() -> str | None:
    """Return the path of HAProxy, which Debian installs where not every user looks; None if there is none."""
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def play(narrator: Narrator) -> list[str]:
    """Play the act, or say why not. Show its table, and return a sentence for each difference from what should be."""
    haproxy = program()
    if haproxy is None:
        narrator.act(
            "A real load balancer, left out",
            "With HAProxy installed (apt-get install haproxy), this act sends requests through it, and counts those",
            "that fail when a VM is rebooted, with Forewarn and without.",
        )
        return []
    narrator.act(
        "A real load balancer with traffic",
        f"HAProxy sends 50 requests a second to two applications, {_VM} and {_OTHER}. {_VM} is rebooted twice: first",
        f"Azure announces it, and Forewarn drains it by the hook haproxy of {POLICY}. Then nobody knows.",
    )
    with Stage(narrator.hear) as stage:
        balancer = _Balancer(stage, haproxy)
        outcomes = [_announced(stage, narrator, balancer), _unannounced(narrator, balancer)]
    with_forewarn, without = outcomes
    good = [with_forewarn.failed == 0 and with_forewarn.open == 0, without.failed > 0]
    rows = [[*map(str, outcome), "yes" if fine else "no"] for outcome, fine in zip(outcomes, good, strict=True)]
    narrator.table(HEADER, rows)
    differences = [] if good[0] else [f"with Forewarn, {with_forewarn.failed} requests have failed"]
    return differences if good[1] else [*differences, "without Forewarn no request has failed: nothing was shown"]


def _announced(stage: Stage, narrator: Narrator, balancer: _Balancer) -> Outcome:
    own = stage.directory / "policy.yml"
    text = (ROOT / POLICY).read_text(encoding="utf-8")
    own.write_text(text.replace(PLACEHOLDER, str(stage.directory)), encoding="utf-8")
    code, _output, errors = stage.command(forewarn("policy", "compile", "--output", str(stage.artifact), str(own)))
    if code:
        raise StageError(errors)
    stage.emulate(ROOT / "demo" / "scenario.yml", TIME_SCALE)
    stage.run(_VM)
    with _Clients(balancer.port) as clients:
        event_id = str(uuid.uuid4()).upper()
        narrator.introduce(event_id, "Reboot", [_VM])
        narrator.say("Azure", f"schedules: a reboot under load (Reboot of {_VM})", "cyan")
        stage.emulator.schedule("Reboot", [_VM], event_id=event_id, notice_seconds=LONG_NOTICE_SECONDS)
        stage.wait("the reboot to start", _of_emulator("started", event_id), AFTER_DRAIN)
        under_way = balancer.reboot(narrator)
        stage.wait(f"{_VM} to recover", _recovered(event_id), AFTER_DRAIN)
        balancer.wait_for("UP")
    return Outcome("announced, with Forewarn", clients.sent, clients.failed, under_way)


def _unannounced(narrator: Narrator, balancer: _Balancer) -> Outcome:
    with _Clients(balancer.port) as clients:
        under_way = balancer.reboot(narrator)
        balancer.wait_for("UP")
    return Outcome("without", clients.sent, clients.failed, under_way)


class _Balancer:
    """HAProxy, and the applications of two VMs."""

    def __init__(self, stage: Stage, haproxy: str) -> None:
        self._stage = stage
        self._socket = str(stage.directory / "haproxy.sock")
        self.port, *ports = _free_ports(3)
        self._ports = dict(zip((_VM, _OTHER), ports, strict=True))
        for vm in self._ports:
            self._boot(vm)
        servers = "".join(f"  server {vm} 127.0.0.1:{port}\n" for vm, port in self._ports.items())
        configuration = stage.directory / "haproxy.cfg"
        configuration.write_text(_CONFIGURATION.format(socket=self._socket, port=self.port) + servers)
        stage.start("haproxy", [haproxy, "-db", "-q", "-f", str(configuration)])
        _until("HAProxy to listen", Path(self._socket).exists)
        self.wait_for("UP")

    def reboot(self, narrator: Narrator) -> int:
        """Let a VM go at once and come back; return how many requests were under way on it."""
        under_way = int(self._row()["scur"])
        narrator.say("Azure", f"reboots {_VM}, where {under_way} requests are under way", "cyan")
        self._stage.kill(_name(_VM))
        time.sleep(_REBOOT_SECONDS)  # how long the VM is away
        self._boot(_VM)
        return under_way

    def wait_for(self, status: str) -> None:
        """Wait until HAProxy has checked the VM that often that it believes it."""
        _until(f"HAProxy to find {_VM} {status}", lambda: self._row()["status"] == status)

    def _boot(self, vm: str) -> None:
        words = ["-c", _APPLICATION, str(self._ports[vm]), str(_ANSWER_SECONDS)]
        self._stage.start(_name(vm), [sys.executable, *words])

    def _row(self) -> dict[str, str]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._socket)
            connection.sendall(b"show stat\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return next(row for row in csv.DictReader(text[2:].splitlines()) if row["svname"] == _VM)


class _Clients:
    """Clients with connections of their own, which never try again; they send while the context lasts."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.sent = self.failed = 0
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(_CLIENTS)]

    def __enter__(self) -> _Clients:
        for thread in self._threads:
            thread.start()
        time.sleep(2 * _PERIOD_SECONDS)  # until each of them has sent something
        return self

    def __exit__(self, *_error: object) -> None:
        if _error[0] is None:
            time.sleep(2 * _PERIOD_SECONDS)  # likewise, to both VMs again
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _send(self, number: int) -> None:
        self._ended.wait(number * _PERIOD_SECONDS / _CLIENTS)
        connection, turn = None, number
        while not self._ended.is_set():
            began, turn, good = time.monotonic(), turn + 1, False
            if connection is not None and connection.sock and select.select([connection.sock], [], [], 0)[0]:
                connection = None  # closed by HAProxy meanwhile
            connection = connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            try:
                method = ("GET", "POST")[turn // 2 % 2]
                connection.request(method, "/", b"x" if method == "POST" else None)
                response = connection.getresponse()
                response.read()
                good = response.status == 200
            except (OSError, http.client.HTTPException):
                connection = None
            with self._lock:
                self.sent += 1
                self.failed += not good
            self._ended.wait(max(0.0, _PERIOD_SECONDS - (time.monotonic() - began)))


def _name(vm: str) -> str:
    return f"application of {vm}"


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _until(what: str, test: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not test():
        if time.monotonic() >= deadline:
            raise StageError(f"waited {_PATIENCE_SECONDS:g} s for {what}")
        time.sleep(0.1)  # until the next look


def _of_emulator(kind: str, event_id: str) -> Callable[[Line], bool]:
    wanted = {"event": "transition", "kind": kind, "subject": event_id}
    return lambda line: line.source == EMULATOR and wanted.items() <= line.data.items()


def _recovered(event_id: str) -> Callable[[Line], bool]:
    wanted = {"line": "hook-ended", "event_id": event_id, "phase": "recover", "result": "succeeded"}
    return lambda line: line.source == _VM and wanted.items() <= line.data.items()
