# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS to a store's server, the addresses of its name, and the addresses that settings may have."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from forewarn.imds.errors import CONNECTION, TIMEOUT
from forewarn.runner.groups import dns_lookup
from forewarn.runner.groups.address import Address, parse_address
from forewarn.runner.groups.store import CERTIFICATE, StoreFault
from forewarn.runner.groups.tls import TlsFiles
from tools.servers.kept_connections import ask, fault_of, to
from tools.servers.listener_client import free_port
from tools.servers.scripted_imds import ScriptedServer, status
from tools.servers.webhooks import HOST, Answer, Webhook, server_context


@pytest.fixture
def files(certificate: Path) -> TlsFiles:
    return TlsFiles(str(certificate))


def test_tls(tls: ssl.SSLContext, files: TlsFiles) -> None:
    with Webhook(Answer(200, {}, b"x" * 500_000), tls=tls) as server, closing(to(server.port, files)) as connection:
        assert ask(connection, body=b"y" * 700_000).body == b"x" * 500_000
    assert server.requests[0].body == b"y" * 700_000


def test_a_certificate_of_somebody_else(tls: ssl.SSLContext) -> None:
    with Webhook(tls=tls) as server:
        fault = fault_of(to(server.port, TlsFiles()))
    assert f"the certificate of 127.0.0.1:{server.port} was not accepted: " in str(fault)
    assert (fault.kind, fault.lasting, fault.unsure) == (CERTIFICATE, True, False)
    assert server.requests == []


def test_a_certificate_for_another_name(tls: ssl.SSLContext, files: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    with Webhook(tls=tls) as server:
        found = [(socket.AF_INET, 1, 6, "", ("127.0.0.1", server.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with closing(to(server.port, files, HOST)) as connection:
            assert ask(connection).status == 200
        fault = fault_of(to(server.port, files, "other.example.test"))
    assert "Hostname mismatch" in str(fault)
    assert len(server.requests) == 1


def test_a_server_that_speaks_no_tls(files: TlsFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as accepted:
                accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        fault = fault_of(to(listener.getsockname()[1], files))
        thread.join(10)
    assert (fault.kind, fault.unsure, fault.lasting) == (CONNECTION, False, False)


def test_a_server_that_never_shakes_hands(files: TlsFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        fault = fault_of(to(listener.getsockname()[1], files), 0.3)
        assert time.monotonic() - started < 8
    assert (fault.kind, fault.unsure) == (TIMEOUT, False)
    assert "connecting" in str(fault)


def test_tls_1_1_is_refused(certificate: Path, files: TlsFiles) -> None:
    old = server_context(certificate)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with Webhook(tls=old) as server:
        fault = fault_of(to(server.port, files))
    assert (fault.unsure, server.requests) == (False, [])


def test_files_that_cannot_be_used(certificate: Path, tmp_path: Path) -> None:
    empty, key = tmp_path / "empty.pem", certificate.with_name("key.pem")
    empty.write_text("")
    empty.chmod(0o644)
    shared = tmp_path / "shared.pem"
    shared.write_bytes(key.read_bytes())
    shared.chmod(0o644)
    for files, says in (
        (TlsFiles(str(tmp_path / "none")), "No such file"),
        (TlsFiles(str(empty)), f"the CA file {empty} holds no certificate"),
        (TlsFiles(None, str(empty), str(key)), f"the certificate {empty} and its key"),
        (TlsFiles(None, str(certificate), str(shared)), "readable by everybody"),
    ):
        with pytest.raises(StoreFault) as caught:
            files.context()
        assert says in str(caught.value)
        assert (caught.value.kind, caught.value.lasting) == (CERTIFICATE, True)


# Names


def test_a_lookup_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    release, calls = threading.Event(), []
    found = [(socket.AF_INET, 1, 6, "", ("127.0.0.1", 80))]

    def slow(host: str, *_: object, **__: object) -> object:
        calls.append(host)
        release.wait(20)
        return found

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    searched = dns_lookup.Lookup("etcd.example.test", 80)
    for _ in range(3):
        with pytest.raises(socket.timeout):
            searched.addresses(0.02)
    assert len(calls) == 1, "one thread at a time"
    release.set()
    assert searched.addresses(5) == [(socket.AF_INET, ("127.0.0.1", 80))]

    def gone(*_: object, **__: object) -> object:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", gone)
    assert searched.addresses(5) == [(socket.AF_INET, ("127.0.0.1", 80))], "what is known serves on"
    fault = fault_of(to(80, host="etcd.example.test"))
    assert str(fault) == "the address of etcd.example.test:80 could not be looked up: Name or service not known."
    assert not fault.unsure


def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(status(200, b"a")) as server:
        ports = (free_port(), server.port)
        found = [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with closing(to(80, host="etcd.example.test")) as connection:
            assert ask(connection).body == b"a"


# Addresses


@pytest.mark.parametrize(
    ("url", "address", "where"),
    [
        ("https://etcd-1.example.com:2379", Address("etcd-1.example.com", 2379, True, ""), "etcd-1.example.com:2379"),
        ("https://[fd00::1]:2379/", Address("fd00::1", 2379, True, ""), "[fd00::1]:2379"),
        ("http://127.0.0.1:10000/a/b", Address("127.0.0.1", 10000, False, "/a/b"), "127.0.0.1:10000"),
        ("https://a.blob.core.windows.net/c", Address("a.blob.core.windows.net", 443, True, "/c"), None),
    ],
)
def test_addresses(url: str, address: Address, where: str | None) -> None:
    assert parse_address(url) == address
    assert where in (None, address.where)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "etcd:2379",
        "ftp://a",
        "https://",
        "https://a:0",
        "https://a:99999",
        "https://a..b",
        "https://a/b?c",
        "https://u:p@a",
    ],
)
def test_no_addresses(url: str) -> None:
    with pytest.raises(ValueError, match=r"form|name|port"):
        parse_address(url)
