# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``forewarn fleet status`` says if Prometheus does not answer, or something else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from forewarn.errors import ForewarnError, InputError
from forewarn.fleet.prometheus.client import PrometheusClient, Sample
from forewarn.fleet.prometheus.queries import host_of
from tools.servers.listener_client import free_port
from tools.sites.commands import in_process


@contextmanager
def answering(status: int, body: str, **headers: str) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the URL of a server that always answers so, and the tokens of its requests."""
    tokens: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_arguments: object) -> None:
            """Say nothing of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", tokens
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def vector(*samples: Any, **more: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": list(samples)}, **more})


def sample(value: object, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [1.0, value]}


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (401, "", 3, "refuses the query with HTTP 401"),
        (403, "no", 3, "--bearer-file"),
        (302, "", 3, "points to 'https://login.example.com/'"),
        (404, "<html>not found</html>", 3, "is not Prometheus: it answers with HTTP 404"),
        (200, "<html>welcome</html>", 3, "is not Prometheus"),
        (200, "", 3, "is not Prometheus"),
        (200, "[" * 100_000, 3, "is not Prometheus"),
        (200, "null", 3, "is not Prometheus"),
        (200, '{"status": "success"}', 3, "its answer has no samples"),
        (200, '{"status": "success", "data": 1}', 3, "its answer has no samples"),
        (200, vector({"metric": {}}), 3, "its answer has no samples"),
        (200, vector(sample("x")), 3, "its answer has no samples"),
        (200, vector(), 3, "it does not know the time"),
        (503, '{"status": "error", "errorType": "timeout", "error": "too busy"}', 3, "cannot answer: too busy"),
        (400, '{"status": "error", "errorType": "bad_data", "error": "parse error"}', 2, "--match"),
    ],
)
def test_answer_of_something_else_is_explained(status: int, body: str, code: int, said: str) -> None:
    with answering(status, body, Location="https://user:secret@login.example.com/") as (url, _tokens):
        done = in_process("fleet", "status", "--url", url)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert "defect" not in done.stderr


def test_silent_prometheus_is_a_network_error() -> None:
    done = in_process("fleet", "status", "--url", f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (3, "")
    assert "does not answer: Connection refused" in done.stderr


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "ftp://x", "http://", "http://x?query=1", "http://x:0", "http://x:y", "http://[x"]
)
def test_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="--url is"):
        PrometheusClient(url)


def test_token_is_sent_but_never_in_the_open(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    with answering(200, vector(sample("5"))) as (url, tokens):
        with PrometheusClient(url, str(token)) as client:
            assert client.now() == 5.0
        assert tokens == ["Bearer secret"]
    with pytest.raises(InputError, match="without encryption"):
        PrometheusClient("http://prometheus.example.com", str(token))
    for content in ("", "two words", "näh"):
        token.write_text(content)
        with pytest.raises(InputError, match="does not have one token"):
            PrometheusClient("https://prometheus.example.com", str(token))


@pytest.mark.parametrize("option", ["bearer_file", "ca_file"])
def test_missing_file_is_named(option: str, tmp_path: Path) -> None:
    with pytest.raises(ForewarnError, match=r"missing: No such file"):
        PrometheusClient("https://prometheus.example.com", **{option: str(tmp_path / "missing")})


def test_samples_are_finite_and_warnings_kept_once() -> None:
    body = vector(sample("1.5", __name__="up", job="a"), sample("NaN"), sample("+Inf"), warnings=["partial"])
    with answering(200, body) as (url, _tokens), PrometheusClient(url) as client:
        for _again in range(2):
            assert client.query("up") == [Sample({"job": "a"}, 1.5)]
        assert client.warnings == ["partial"]


@pytest.mark.parametrize(
    ("instance", "host"),
    [
        ("web_0:9100", "web_0"),
        ("web_0", "web_0"),
        ("[::1]:9100", "::1"),
        ("[::1]", "::1"),
        ("fe80::1", "fe80::1"),
        ("", ""),
    ],
)
def test_host_is_the_instance_without_its_port(instance: str, host: str) -> None:
    assert host_of(instance) == host
