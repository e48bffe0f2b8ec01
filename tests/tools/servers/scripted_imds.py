# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A loopback server that gives scripted answers, byte for byte, and keeps the requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Request:
    """What arrived; header names are in lower case, ``connection`` counts from 0."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(frozen=True)
class Answer:
    """Bytes to send for one request. ``pieces`` after the first wait ``pause`` seconds each.

    ``end`` is what follows: "keep" the connection, "close" it, or "reset" it.
    """

    pieces: tuple[bytes, ...] = ()
    end: str = "keep"
    delay: float = 0.0
    pause: float = 0.0


def raw(data: bytes, end: str = "keep", delay: float = 0.0) -> Answer:
    """Answer with these very bytes."""
    return Answer((data,), end, delay)


def status(code: int, body: bytes = b"", headers: dict[str, str] | None = None, **how: Any) -> Answer:
    """Answer with a well-formed response."""
    lines = {"Content-Length": str(len(body)), **(headers or {})}
    head = f"HTTP/1.1 {code} Reason\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return raw(head.encode() + b"\r\n" + body, **how)


def document(*events: dict[str, Any], incarnation: Any = 1, **how: Any) -> Answer:
    """Answer with a Scheduled Events document."""
    body = json.dumps({"DocumentIncarnation": incarnation, "Events": list(events)}).encode()
    return status(200, body, {"Content-Type": "application/json"}, **how)


def instance(name: str, **compute: Any) -> Answer:
    """Answer with instance metadata."""
    return status(200, json.dumps({"compute": {"name": name, **compute}}).encode())


class ScriptedServer:
    """Serves the answers in turn, whatever the request and the connection; the last one over and over."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self._lock = threading.Condition()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._accepting = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ScriptedServer:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for opened in [self._listener, *self._connections]:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()
        for thread in self._threads:
            thread.join(timeout=10)
        assert not any(thread.is_alive() for thread in self._threads)

    @property
    def connections(self) -> int:
        """How many connections were accepted."""
        return len(self._connections)

    def choose(self, _request: Request) -> Answer:
        """Return the answer to a request that has just arrived."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait_for_requests(self, number: int, timeout: float = 10.0) -> None:
        """Wait until so many requests have arrived."""
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.requests) >= number, timeout), f"{len(self.requests)} requests"

    def stop_accepting(self) -> None:
        """Fill the kernel's queue of connections, so that connecting takes until the client gives up."""
        self._accepting = False
        self._listener.listen(1)
        self._connections.append(socket.create_connection(self._listener.getsockname()))
        self._threads[0].join(10)  # it was waiting for one more connection
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(self._listener.getsockname())
            self._connections.append(filler)

    def _start(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while self._accepting and not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._start(self._serve, connection, len(self._connections) - 1)

    def _serve(self, connection: socket.socket, number: int) -> None:
        answer = None  # while the client has not asked
        with suppress(OSError), connection.makefile("rb") as stream:
            while True:
                request = _read_request(stream, number)
                if request is None:
                    return
                with self._lock:
                    self.requests.append(request)
                    self._lock.notify_all()
                    answer = self.choose(request)
                if self._stopping.wait(answer.delay):
                    return
                for place, piece in enumerate(answer.pieces):
                    if place and self._stopping.wait(answer.pause):
                        return
                    connection.sendall(piece)
                if answer.end != "keep":
                    break
        if answer is not None and answer.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        connection.close()


class AnsweringServer(ScriptedServer):
    """Serves what a function makes of each request."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        super().__init__()
        self._answer = answer

    def choose(self, request: Request) -> Answer:
        """Return what the function makes of it."""
        return self._answer(request)


def vm_service(events: list[dict[str, Any]], approve: Callable[[], Answer] | None = None) -> AnsweringServer:
    """Return the service of web_0. It lists ``events`` as they are at that time; ``approve`` answers approvals."""

    def answer(request: Request) -> Answer:
        if request.method == "POST":
            return approve() if approve else status(200)
        return instance("web_0") if "/instance" in request.target else document(*events, incarnation=len(events))

    return AnsweringServer(answer)


def _read_request(stream: Any, number: int) -> Request | None:
    line = stream.readline().decode()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    headers = {}
    while True:
        line = stream.readline().decode().strip()
        if not line:
            break
        name, _, value = line.partition(":")
        assert name.lower() not in headers, f"{name} was sent twice"
        headers[name.lower()] = value.strip()
    return Request(method, target, headers, stream.read(int(headers.get("content-length", 0))), number)
