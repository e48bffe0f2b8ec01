# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request of an http hook: what is sent, when it is tried again, and that no secret is ever shown."""

from __future__ import annotations

import io
import json
import os
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from forewarn import __version__
from forewarn.runner.hooks import webhook
from forewarn.runner.hooks.commands import HookSettings, request_settings
from tools.fixtures.clocks import ManualClocks
from tools.servers.scripted_imds import ScriptedServer, raw, status
from tools.servers.webhooks import CLOSE, HANG, HOST, Answer, Proxy, Webhook

BODY = '{"event": {"EventId": "E", "Description": "für web_0"}}\n'.encode()
TOKEN = "t0ken-that-nobody-may-see"


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> ManualClocks:
    """Count time by pauses alone. Every attempt has two real seconds at the least: a busy machine is not a failure."""
    clocks = ManualClocks()
    monkeypatch.setattr(webhook, "time", clocks)
    monkeypatch.setattr(webhook, "_LEAST_SECONDS", 2.0)
    return clocks


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def send(url: str, **settings: Any) -> tuple[int, str]:
    """Do what the child process does; return its exit code and what it prints."""
    defaults = {"shown": "URL", "timeout_seconds": 5.0, "proxy": None, "ca_file": None, "bearer_file": None}
    line = json.dumps({"url": url, **defaults, **{name: _plain(value) for name, value in settings.items()}})
    target = io.StringIO()
    code = webhook.main(io.BytesIO(line.encode() + b"\n" + BODY), target)
    return code, target.getvalue()


def refusal(url: str, **settings: Any) -> str:
    """Return what the child process prints about a request that must fail."""
    code, text = send(url, **settings)
    assert code == 1
    return text


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


# What is sent


def test_a_request() -> None:
    with Webhook() as server:
        assert send(f"{server.url}?a=b%20c&d") == (0, "URL: answered 200\n")
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/x?a=b%20c&d", BODY)
    assert request.headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": str(len(BODY)),
        "user-agent": f"forewarn/{__version__}",
        "connection": "close",
    }


def test_a_url_that_is_not_ascii() -> None:
    with Webhook() as server:
        assert send(f"http://127.0.0.1:{server.port}/für?x=ä#fragment")[0] == 0
        assert send(f"http://127.0.0.1:{server.port}")[0] == 0
    assert [request.target for request in server.requests] == ["/f%C3%BCr?x=%C3%A4", "/"]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_success(status: int) -> None:
    with Webhook(Answer(status)) as server:
        assert send(server.url) == (0, f"URL: answered {status}\n")


@pytest.mark.parametrize("final", [200, 503])
def test_interim_responses_are_skipped(final: int) -> None:
    """RFC 9110, 15.2: a client has to take any number of interim answers."""
    before = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    answers = [status(final), status(200)]
    with ScriptedServer(*(raw(before + answer.pieces[0], "close") for answer in answers)) as server:
        assert send(server.url) == (0, f"URL: answered 200{' (2 tries)' if final == 503 else ''}\n")


def test_endless_interim_responses_are_given_up() -> None:
    with ScriptedServer(raw(b"HTTP/1.1 102 Processing\r\n\r\n" * 1000, "close")) as server:
        assert send(server.url) == (1, "URL: answered 102\n")


# Trying again


@pytest.mark.parametrize("first", [Answer(429), Answer(500), Answer(502), Answer(503), Answer(504), CLOSE])
def test_what_passes_is_tried_again(first: Answer | str) -> None:
    with Webhook(first, first, Answer(200)) as server:
        assert send(server.url) == (0, "URL: answered 200 (3 tries)\n")
    assert [request.body for request in server.requests] == [BODY] * 3


@pytest.mark.parametrize("first", [Answer(429), Answer(503), CLOSE])
@pytest.mark.parametrize("attempts", [None, 1, 5])
def test_what_must_not_run_twice_is_sent_once(first: Answer | str, attempts: int | None) -> None:
    """``retry: never`` is one attempt."""
    with Webhook(first, Answer(200)) as server:
        hook = {"http": server.url, **({} if attempts is None else {"retry": {"attempts": attempts}})}
        code, _text = send(server.url, once=request_settings(hook, HookSettings(), 5.0).get("once"))
    assert len(server.requests) == 1 + (attempts != 1)
    assert code == (attempts == 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_what_does_not_pass_is_not(status: int) -> None:
    with Webhook(Answer(status)) as server:
        assert send(server.url) == (1, f"URL: answered {status}\n")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with Webhook() as elsewhere, Webhook(Answer(status, {"Location": elsewhere.url})) as server:
        text = refusal(server.url)
    assert f"answered {status}, a redirect, and none is followed" in text
    assert len(server.requests) == 1
    assert elsewhere.requests == []


def test_it_gives_up_before_its_time_is_over(clocks: ManualClocks) -> None:
    with Webhook(Answer(503)) as server:
        text = refusal(server.url, timeout_seconds=30.0)
    assert 1015.0 < clocks.now < 1030.0
    assert text == f"URL: answered 503 ({len(server.requests)} tries)\n"
    assert len(server.requests) > 3


def test_the_pauses_grow(clocks: ManualClocks) -> None:
    script = [Answer(503), Answer(503), Answer(429, {"Retry-After": "3"}), *[Answer(503)] * 2, Answer(200)]
    with Webhook(*script) as server:
        assert send(server.url, timeout_seconds=60.0)[0] == 0
    assert clocks.pauses == [0.5, 1.0, 3.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("wait", "again"), [("3600", False), ("9" * 400, False), ("soon", True), ("-5", True), ("\u0663", True)]
)
def test_a_wait_that_is_longer_than_the_time(wait: str, again: bool) -> None:
    with Webhook(Answer(503, {"Retry-After": wait.encode().decode("latin-1")})) as server:
        assert send(server.url)[0] == 1
    assert (len(server.requests) > 1) is again


def test_a_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_ATTEMPT_SECONDS", 2.0)
    with Webhook(HANG, Answer(200)) as server:
        assert send(server.url) == (0, "URL: answered 200 (2 tries)\n")
    monkeypatch.setattr(webhook, "_ATTEMPT_SECONDS", 0.2)
    with Webhook(HANG) as server:
        text = refusal(server.url)
    assert f"127.0.0.1 port {server.port} took longer than 0.2 s (" in text


def test_a_server_that_closes_without_an_answer() -> None:
    with Webhook(CLOSE) as server:
        text = refusal(server.url)
    assert f"127.0.0.1 port {server.port}: Remote end closed connection without response (" in text


def test_nobody_there() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        text = refusal(f"http://127.0.0.1:{closed.getsockname()[1]}/")
    assert "Connection refused (" in text
    assert "tries)" in text


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\0\0\0\r\n\r\n"])
def test_what_is_no_http(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(webhook, "_LEAST_SECONDS", 60.0)  # it is asked once
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        text = refusal(f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert "the answer is not HTTP" in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://a:secret@127.0.0.1/", "put a secret into 'bearer'"),
        ("ftp://127.0.0.1/", "the URL is neither http"),
        ("https:///x", "the URL is neither http"),
        ("http://127.0.0.1:port/", "the URL cannot be read"),
        ("http://[::1/", "the URL cannot be read"),
        (f"http://{'a' * 70}.example/", "the URL cannot be read"),
    ],
)
def test_a_url_that_is_none(url: str, says: str) -> None:
    text = refusal(url)
    assert says in text
    assert "secret@" not in text


# TLS


def test_tls(tls: ssl.SSLContext, certificate: Path) -> None:
    with Webhook(tls=tls) as server:
        assert send(server.url, ca_file=certificate) == (0, "URL: answered 200\n")
    assert server.requests[0].body == BODY


def test_a_certificate_that_nobody_vouches_for(tls: ssl.SSLContext) -> None:
    with Webhook(tls=tls) as server:
        text = refusal(server.url)
    assert server.requests == []
    assert text.startswith("URL: the certificate of 127.0.0.1 was not accepted: self")
    assert "tries" not in text


def test_a_certificate_of_somebody_else(tls: ssl.SSLContext, certificate: Path) -> None:
    with Webhook(tls=tls) as server:
        text = refusal(f"https://localhost:{server.port}/", ca_file=certificate)
    assert server.requests == []
    assert "the certificate of localhost was not accepted: Hostname mismatch" in text


def test_a_server_without_tls(certificate: Path) -> None:
    with Webhook() as server:
        text = refusal(f"https://127.0.0.1:{server.port}/", ca_file=certificate)
    assert server.requests == []
    assert "127.0.0.1 port" in text


def test_what_is_asked_of_tls() -> None:
    context = webhook._tls_context(None)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"])
def test_authorities_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    text = refusal("https://127.0.0.1:9/", ca_file=path)
    assert f"{path} holds no certificate that can be read" in text


# Proxies


def test_https_goes_through_the_proxy_unread(tls: ssl.SSLContext, certificate: Path, token: Path) -> None:
    with Webhook(tls=tls) as server, Proxy(server.port) as proxy:
        code, text = send(f"https://{HOST}/x", proxy=proxy.url, ca_file=certificate, bearer_file=token)
    assert (code, text) == (0, "URL: answered 200\n")
    (connect,) = proxy.requests
    assert (connect.method, connect.target) == ("CONNECT", f"{HOST}:443")
    assert connect.headers["host"] == f"{HOST}:443"
    assert "authorization" not in connect.headers
    (request,) = server.requests
    assert (request.target, request.headers["host"], request.body) == ("/x", HOST, BODY)
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


def test_http_is_asked_of_the_proxy() -> None:
    with Proxy() as proxy:
        assert send(f"http://{HOST}:8080/x?y", proxy=proxy.url) == (0, "URL: answered 200\n")
    (request,) = proxy.requests
    assert (request.method, request.target) == ("POST", f"http://{HOST}:8080/x?y")
    assert (request.headers["host"], request.body) == (f"{HOST}:8080", BODY)


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Webhook() as server, Proxy() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert send(server.url)[0] == 0
    assert (len(server.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize(("status", "again"), [(403, False), (407, False), (302, False), (503, True)])
def test_a_proxy_that_refuses(certificate: Path, status: int, again: bool) -> None:
    with Proxy(0, Answer(status)) as proxy:
        text = refusal(f"https://{HOST}/x", proxy=proxy.url, ca_file=certificate)
    assert f"the proxy 127.0.0.1 port {proxy.port} answered {status}" in text
    assert (len(proxy.requests) > 1) is again


def test_a_proxy_that_is_not_there() -> None:
    text = refusal(f"http://{HOST}/", proxy="http://127.0.0.1:9")
    assert "the proxy 127.0.0.1 port 9: Connection refused" in text


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:9", "socks5://127.0.0.1", "127.0.0.1:9", "http://u:pw@127.0.0.1"])
def test_a_proxy_that_is_none(proxy: str) -> None:
    text = refusal(f"http://{HOST}/", proxy=proxy)
    assert "the proxy" in text
    assert "pw" not in text


# The secret


def test_the_secret_is_sent(token: Path) -> None:
    with Webhook() as server:
        assert send(server.url, bearer_file=token) == (0, "URL: answered 200\n")
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_server_that_repeats_the_secret(token: Path) -> None:
    with Webhook(Answer(400, {"X-Token": TOKEN}), Answer(302, {"Location": f"http://x/{TOKEN}"})) as server:
        for _ in range(2):
            code, text = send(server.url, bearer_file=token)
            assert (code, TOKEN in text) == (1, False)


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "No such file"),
        (f"{TOKEN}\n", 0o604, "readable by everybody. Run: chmod o-r"),
        (f"{TOKEN}\n", 0o620, "can be changed by others"),
        (f"{TOKEN}\n", 0o602, "can be changed by others"),
        ("", 0o600, "is empty"),
        (" \n", 0o600, "is empty"),
        (f"{TOKEN}\nX-Other: header\n", 0o600, "not one line"),
        (f"{TOKEN} x", 0o600, "not one line of printable ASCII"),
        (f"{TOKEN}\x00", 0o600, "not one line of printable ASCII"),
        (f"{TOKEN}ä", 0o600, "not one line of printable ASCII"),
    ],
)
def test_a_secret_that_cannot_be_used(tmp_path: Path, content: str | None, mode: int, says: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with Webhook() as server:
        text = refusal(server.url, bearer_file=path)
    assert server.requests == []
    assert says in text
    assert str(path) in text
    assert "tries" not in text
    assert TOKEN not in text


def test_a_secret_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", tmp_path):
        text = refusal("http://127.0.0.1:9/", bearer_file=path)
        assert "is not a regular file" in text
