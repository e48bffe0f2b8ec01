# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a store: what is refused, in which words, and which store they open."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.azure_blob import AzureBlob
from forewarn.runner.groups.etcd import Etcd
from forewarn.runner.groups.settings import SecretSource, StoreSettings, open_store, store_settings
from forewarn.runner.groups.store import LOGIN, StoredValue, StoreFault
from forewarn.runner.state.secret_file import read_secret
from hypothesis import given
from hypothesis import strategies as st
from tools.servers.scripted_imds import AnsweringServer, Request, ScriptedServer, status
from tools.servers.webhooks import Answer, Webhook

ETCD = {"etcd": ["https://etcd-1.example.com:2379", "https://[fd00::2]:2379"]}
BLOB = {"blob": "https://web.blob.core.windows.net/forewarn"}
SAS = {"sas": {"file": "/etc/forewarn/sas"}}
LOGGED_IN = {**ETCD, "user": "vm", "password": {"credential": "etcd"}}
CLIENT_ID = "0f3c8d1e-0000-1111-2222-333344445555"
ENDPOINT = "http://127.0.0.1:9"


def test_etcd() -> None:
    files = {"ca_file": "/ca.pem", "certificate_file": "/vm.pem", "key_file": "/vm.key"}
    assert store_settings({**LOGGED_IN, **files}) == StoreSettings(
        etcd=(Address("etcd-1.example.com", 2379, True, ""), Address("fd00::2", 2379, True, "")),
        ca_file="/ca.pem",
        certificate_file="/vm.pem",
        key_file="/vm.key",
        user="vm",
        password=SecretSource("etcd", None),
    )
    assert store_settings({"etcd": ["http://127.0.0.1:2379"]}).etcd == (Address("127.0.0.1", 2379, False, ""),)


@pytest.mark.parametrize(
    ("paths", "right", "wrong"),
    [
        (PurePosixPath, ["/ca.pem"], [r"C:\ca.pem", "ca.pem"]),
        (PureWindowsPath, [r"C:\ca.pem", "C:/ca.pem", r"\\server\share\ca.pem"], ["/ca.pem", r"\ca.pem", "C:ca.pem"]),
    ],
)
def test_paths_are_those_of_the_vm(paths: type[PurePath], right: list[str], wrong: list[str]) -> None:
    for path in right:
        assert store_settings({**ETCD, "ca_file": path}, paths).ca_file == path
    for path in wrong:
        with pytest.raises(InputError, match="ca_file is not an absolute path"):
            store_settings({**ETCD, "ca_file": path}, paths)


def test_blob() -> None:
    container = Address("web.blob.core.windows.net", 443, True, "/forewarn")
    assert store_settings({**BLOB, **SAS}) == StoreSettings(blob=container, sas=SecretSource(None, "/etc/forewarn/sas"))
    assert store_settings({**BLOB, "identity": True}) == StoreSettings(blob=container, identity="")
    assert store_settings({**BLOB, "identity": CLIENT_ID}).identity == CLIENT_ID
    assert store_settings({"blob": "https://127.0.0.1:10000/lab1/group/", **SAS}).blob == Address(
        "127.0.0.1", 10000, True, "/lab1/group"
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "exactly one of etcd and blob"),
        ({**ETCD, **BLOB}, "exactly one of etcd and blob"),
        ({**ETCD, "passwd": 1}, "the store has no setting 'passwd'. Its settings are etcd, blob, ca_file"),
        ({"etcd": []}, "not a list of URLs"),
        ({"etcd": "https://a:2379"}, "not a list of URLs"),
        ({"etcd": [5]}, "etcd, URL 1 is not a text"),
        ({"etcd": ["https://a:1", "a:1"]}, "etcd, URL 2 is no URL"),
        ({"etcd": ["https://a"]}, "etcd, URL 1 has no port"),
        ({"etcd": ["https://a:1/x"]}, "etcd, URL 1 has a path"),
        ({"etcd": ["https://a:1", "https://a:1/"]}, "the same URL twice"),
        ({"etcd": ["http://etcd-1:2379"]}, "http, which carries secrets in the clear. Use https."),
        ({"etcd": ["http://127.0.0.1.example.com:2379"]}, "http, which carries secrets"),
        ({"etcd": ["https://vm:hidden@a:1"]}, "a login in it. Put that into password or sas."),
        ({**ETCD, "ca_file": "ca.pem"}, "ca_file is not an absolute path"),
        ({**ETCD, "ca_file": None}, "ca_file is not an absolute path"),
        ({**ETCD, "ca_file": "/a\0"}, "ca_file is not an absolute path"),
        ({**ETCD, "key_file": "/a"}, "certificate_file and key_file go together"),
        ({**ETCD, "user": "vm"}, "user and password go together"),
        ({**LOGGED_IN, "user": ""}, "user is not the name"),
        ({**LOGGED_IN, "user": "a\nb"}, "user is not the name"),
        ({**LOGGED_IN, "password": "hidden"}, 'exactly one of credential and file. Write it like {"credential"'),
        ({**LOGGED_IN, "password": {}}, "exactly one of credential and file"),
        ({**LOGGED_IN, "password": {"file": "/a", "credential": "b"}}, "exactly one of credential and file"),
        ({**LOGGED_IN, "password": {"text": "hidden"}}, "exactly one of credential and file"),
        ({**LOGGED_IN, "password": {"file": "a"}}, "password: file is not an absolute path"),
        ({**LOGGED_IN, "password": {"credential": "../a"}}, "password: credential is not the name"),
        ({**LOGGED_IN, "password": {"credential": ".."}}, "password: credential is not the name"),
        ({**ETCD, **SAS}, "sas does not belong to a store with etcd"),
        ({**ETCD, "identity": True}, "identity does not belong to a store with etcd"),
        ({**BLOB, **SAS, "user": "vm", "password": {"file": "/a"}}, "user does not belong to a store with blob"),
        ({**BLOB, **SAS, "key_file": "/a"}, "key_file does not belong to a store with blob"),
        (BLOB, "exactly one of sas and identity"),
        ({**BLOB, **SAS, "identity": True}, "exactly one of sas and identity"),
        ({**BLOB, "identity": False}, "identity is neither true nor"),
        ({**BLOB, "identity": "x&y"}, "identity is neither true nor"),
        ({"blob": "https://web.blob.core.windows.net/c?sig=hidden", **SAS}, "blob has a login in it"),
        ({"blob": "https://web.blob.core.windows.net", **SAS}, "blob has no container"),
        ({"blob": "https://a/b/c/d", **SAS}, "blob has no container"),
        ({"blob": "http://web.blob.core.windows.net/c", **SAS}, "Use https."),
        ({"blob": 5, **SAS}, "blob is not a text"),
    ],
)
def test_what_is_refused(data: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        store_settings(data)
    assert says in str(caught.value)
    assert "hidden" not in str(caught.value)


NAMES = ["etcd", "blob", "ca_file", "certificate_file", "key_file", "user", "password", "sas", "identity", "other"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["/a", "https://a:1", "https://a/b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["file", "credential"]), inner, max_size=2)
    ),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5))
def test_any_content_is_a_setting_or_error(data: dict[str, Any]) -> None:
    try:
        settings = store_settings(json.loads(json.dumps(data)))
    except InputError:
        return
    assert bool(settings.etcd) != bool(settings.blob)


# Opening


def test_a_credential_where_the_runner_has_none() -> None:
    with pytest.raises(InputError, match="add LoadCredential=etcd:/path/of/the/file to the runner's systemd unit"):
        open_store(store_settings(LOGGED_IN), None, ENDPOINT)


def test_a_rotated_password_counts_without_a_restart(tmp_path: Path) -> None:
    given_passwords = []

    def answer(request: Request) -> Any:
        if request.target.endswith("authenticate"):
            given_passwords.append(json.loads(request.body)["password"])
            wrong = status(400, b'{"error": "etcdserver: authentication failed"}')
            return wrong if given_passwords[-1] == "old" else status(200, b'{"token": "t"}')
        return status(200, b'{"header": {"cluster_id": "1", "revision": "1"}}')

    password = tmp_path / "etcd"
    password.write_text("old\n")
    password.chmod(0o600)
    with AnsweringServer(answer) as server:
        settings = store_settings({**LOGGED_IN, "etcd": [server.url]})
        with closing(open_store(settings, str(tmp_path), ENDPOINT)) as store:
            assert isinstance(store, Etcd)
            with pytest.raises(StoreFault, match="another password"):
                store.read("forewarn/a")
            password.write_text("new pass wörd\n")
            assert store.read("forewarn/a") == StoredValue(None, "")
    assert given_passwords == ["old", "new pass wörd"]


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "No such file"),
        (b"hidden", 0o604, "readable by everybody"),
        (b"hidden", 0o620, "can be changed by others"),
        (b"", 0o600, "is empty, or not one line"),
        (b"hidden\nhidden", 0o600, "is empty, or not one line"),
        (b"\xffhidden", 0o600, "is not UTF-8"),
        (b"h" * (64 * 1024 + 1), 0o600, "is longer than 65536 bytes"),
    ],
)
def test_a_secret_that_cannot_be_used(tmp_path: Path, content: bytes | None, mode: int, says: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    with ScriptedServer(status(200)) as server:
        settings = store_settings({"etcd": [server.url], "user": "vm", "password": {"file": str(path)}})
        with closing(open_store(settings, None, ENDPOINT)) as store, pytest.raises(StoreFault) as caught:
            store.swap("forewarn/a", b"", "")
    fault = caught.value
    assert says in str(fault)
    assert (fault.kind, fault.lasting, fault.unsure, server.requests) == (LOGIN, True, False, [])
    assert "hidden" not in str(fault)


def test_a_secret_is_without_white_space_around_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b" a b\r\n\n")
    path.chmod(0o600)
    assert read_secret(str(path)) == b"a b"


def test_a_container_with_a_sas(tmp_path: Path, certificate: Path, tls: ssl.SSLContext) -> None:
    sas = tmp_path / "sas"
    sas.write_text("?sv=1&sig=s%3D\n")
    sas.chmod(0o600)
    with Webhook(Answer(200, {"ETag": '"1"'}, b"x"), tls=tls) as server:
        url = f"https://127.0.0.1:{server.port}/lab1/group"
        settings = store_settings({"blob": url, "ca_file": str(certificate), "sas": {"file": str(sas)}})
        with closing(open_store(settings, None, ENDPOINT)) as store:
            assert isinstance(store, AzureBlob)
            assert store.read("forewarn/a") == StoredValue(b"x", '"1"')
    assert [request.target for request in server.requests] == ["/lab1/group/forewarn/a?sv=1&sig=s%3D"]


def test_a_container_with_an_identity(certificate: Path, tls: ssl.SSLContext) -> None:
    token = json.dumps({"access_token": "t", "expires_in": "9999"}).encode()
    with Webhook(Answer(200, {"ETag": '"1"'}, b"x"), tls=tls) as server, Webhook(Answer(200, {}, token)) as identity:
        settings = store_settings(
            {"blob": f"https://127.0.0.1:{server.port}/c", "ca_file": str(certificate), "identity": CLIENT_ID}
        )
        with closing(open_store(settings, None, f"http://127.0.0.1:{identity.port}")) as store:
            assert store.read("forewarn/a").value == b"x"
    assert server.requests[0].headers["authorization"] == "Bearer t"
    assert identity.requests[0].target.endswith(f"&client_id={CLIENT_ID}")
