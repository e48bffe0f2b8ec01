# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small web application on hosts, a load balancer in front of it, and clients that count what fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..hosts import Host

PORT = 8080
# Answers with its own name, after a while, so that some requests are always under way.
_APPLICATION = """\
import http.server, socket, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(float(self.path.rpartition("=")[2]) if "=" in self.path else {seconds})  # a request takes so long
        body = socket.gethostname().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("", {port}), Handler).serve_forever()
"""
_UNIT = """\
[Service]
ExecStart=/usr/bin/python3 /usr/local/lib/{name}.py {words}

[Install]
WantedBy=multi-user.target
"""
# Clients with connections of their own, which never try again: requests of GET and POST in turn, until it is ended.
_CLIENTS = """\
import http.client, json, select, signal, sys, threading, time

host, port, clients, period = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
ended, lock = threading.Event(), threading.Lock()
signal.signal(signal.SIGTERM, lambda *_: ended.set())

def client(number):
    connection, turn = None, number
    ended.wait(number * period / clients)
    while not ended.is_set():
        began, turn = time.time(), turn + 1
        method = ("GET", "POST")[turn // 2 % 2]  # both of them at each server
        if connection and connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection = None  # the server has closed it meanwhile, which every client looks for
        connection = connection or http.client.HTTPConnection(host, port, timeout=15)
        try:
            connection.request(method, "/", b"x" if method == "POST" else None)
            answer = connection.getresponse()
            status, server = answer.status, answer.read().decode("utf-8", "replace")[:20]
        except Exception as error:  # of any kind: it is a request that failed
            status, server, connection = 0, type(error).__name__, None
        with lock:
            print(json.dumps([began, time.time() - began, method, status, server]), flush=True)
        ended.wait(max(0, period - (time.time() - began)))

threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
[thread.start() for thread in threads]
while not ended.wait(1):
    pass
[thread.join() for thread in threads]
"""
_RESULTS = "/var/log/requests"
_CLIENT_COUNT, _PERIOD_SECONDS, _ANSWER_SECONDS = 20, 0.4, 0.2  # 50 requests a second, 10 of them under way


class Request(NamedTuple):
    """``status`` is 0 where there was no answer; ``server`` is then the exception."""

    began: float
    seconds: float
    method: str
    status: int
    server: str

    @property
    def failed(self) -> bool:
        return self.status != 200


class Traffic:
    """Requests from a host to another, from ``start`` to ``stop``."""

    def __init__(self, host: Host, target: str, port: int = PORT) -> None:
        self.host = host
        words = " ".join(map(str, (target, port, _CLIENT_COUNT, _PERIOD_SECONDS)))
        self._command = f"exec /usr/bin/python3 /usr/local/lib/clients.py {words} > {_RESULTS}"
        host.write(_CLIENTS, "/usr/local/lib/clients.py")

    def start(self) -> None:
        """Begin, and return once there were answers from two servers."""
        self.host.ssh(f"systemd-run --quiet --collect --unit=clients sh -c '{self._command}'")
        self.host.wait_for(lambda: len({request.server for request in self.requests() if not request.failed}) == 2)

    def stop(self) -> list[Request]:
        """End, and return all requests."""
        self.host.ssh("systemctl stop clients", check=False)  # they may have been stopped before
        return self.requests()

    def requests(self) -> list[Request]:
        """Return the requests so far, in order of their begin."""
        lines = self.host.ssh(f"cat {_RESULTS}", check=False).stdout.splitlines()
        return sorted(Request(*json.loads(line)) for line in lines if line.endswith("]"))

    def wait_for(self, server: str, since: float) -> None:
        """Wait until a server has answered a request that began after ``since`` (seconds since 1970)."""
        self.host.wait_for(lambda: [one for one in self.requests() if one.server == server and one.began > since])


def summary(requests: Sequence[Request]) -> dict[str, Any]:
    """Return what a run of clients comes to, for people and figures."""
    failed = [request for request in requests if request.failed]
    return {
        "requests": len(requests),
        "failed": len(failed),
        "failed_get": len([request for request in failed if request.method == "GET"]),
        "failed_post": len([request for request in failed if request.method == "POST"]),
        "slowest_seconds": round(max((request.seconds for request in requests), default=0.0), 2),
        "failing_for_seconds": round(failed[-1].began - failed[0].began, 2) if failed else 0.0,
    }


def failures(requests: Iterable[Request]) -> list[tuple[str, int, str]]:
    """Return how requests failed."""
    return sorted({(request.method, request.status, request.server) for request in requests if request.failed})


def install_application(host: Host) -> None:
    """Start the application, now and at each boot."""
    install(host, "web", _APPLICATION.format(seconds=_ANSWER_SECONDS, port=PORT))
    host.wait_for(lambda: host.ssh(f"curl --silent --max-time 5 localhost:{PORT}", check=False).returncode == 0)


def install(host: Host, name: str, program: str, words: Sequence[str] = ()) -> None:
    """Install a Python program with some arguments as a service, and start it."""
    host.write(program, f"/usr/local/lib/{name}.py")
    host.write(_UNIT.format(name=name, words=" ".join(words)), f"/etc/systemd/system/{name}.service")
    host.ssh(f"systemctl daemon-reload && systemctl enable --quiet --now {name}")


def now(host: Host) -> float:
    """Return the time of a host, in seconds since 1970. Hosts of a lab share it."""
    return float(host.ssh("date +%s.%N").stdout)
