# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Blob Storage as a store, in Azurite: logins that expire or allow too little, and a server that restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from forewarn.runner.groups.azure_blob import AzureBlob
from forewarn.runner.groups.azure_login import AzureLogin, IdentityLogin, SasLogin
from forewarn.runner.groups.store import CERTIFICATE, LOGIN, StoreFault
from forewarn.runner.groups.tls import TlsFiles
from tools.servers.azurite import Azurite, azurite, sas, token_answer
from tools.servers.webhooks import Webhook

KEY = "forewarn/web/slots"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def server(running: Azurite) -> Azurite:
    """Return Azurite without any keys."""
    with closing(running.store()) as store:
        for key in store.list("forewarn/"):
            store.swap(key, None, store.read(key).version)
    return running


def fault_of_write(store: AzureBlob, version: str = "") -> StoreFault:
    with closing(store), pytest.raises(StoreFault) as caught:
        store.swap(KEY, b"one", version)
    return caught.value


@pytest.mark.parametrize("seconds", [-5, 600], ids=["expired", "too little"])
def test_a_sas_that_is_refused(server: Azurite, seconds: float) -> None:
    fault = fault_of_write(server.store(SasLogin(lambda: sas("r", seconds))))
    assert (fault.kind, fault.status, fault.lasting, fault.unsure) == (LOGIN, 403, True, False)
    assert "The SAS must be valid now" in str(fault)
    assert "sig" not in str(fault)


def test_a_sas_that_may_not_replace(server: Azurite) -> None:
    with closing(server.store()) as store:
        version = store.swap(KEY, b"one", "")
    assert version
    fault = fault_of_write(server.store(SasLogin(lambda: sas("rc"))), version)
    assert (fault.kind, fault.lasting) == (LOGIN, True)


def test_another_sas_in_the_file_is_used(server: Azurite) -> None:
    texts = [sas(seconds=-5), sas()]
    with closing(server.store(SasLogin(lambda: texts.pop(0)))) as store:
        assert store.swap(KEY, b"one", "")
    assert texts == []


def test_an_expired_token_is_renewed(server: Azurite) -> None:
    with Webhook(token_answer(-5), token_answer()) as endpoint:
        login = IdentityLogin(f"http://127.0.0.1:{endpoint.port}")
        with closing(server.store(login)) as store:
            assert store.swap(KEY, b"one", "")
            assert store.read(KEY).value == b"one"
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("sas_login", [True, False])
def test_a_container_that_is_not_there(server: Azurite, sas_login: bool) -> None:
    with Webhook(token_answer()) as endpoint:
        login: AzureLogin = IdentityLogin(f"http://127.0.0.1:{endpoint.port}")
        if sas_login:
            login = SasLogin(lambda: sas())
        address = server.address._replace(path="/lab1/none")
        fault = fault_of_write(AzureBlob(address, server.files, login))
    assert (fault.lasting, fault.unsure) == (True, False)
    assert ("there is no such container" in str(fault)) is not sas_login, "a SAS is for a container"


def test_somebody_holds_a_lease(server: Azurite) -> None:
    with closing(server.store()) as store:
        version = store.swap("forewarn/leased", b"one", "")
        assert version
        server.lease("forewarn/leased")
        with pytest.raises(StoreFault, match="somebody holds a lease") as caught:
            store.swap("forewarn/leased", b"two", version)
    assert not caught.value.unsure
    server.release("forewarn/leased")


def test_a_certificate_that_is_not_accepted(server: Azurite) -> None:
    fault = fault_of_write(AzureBlob(server.address, TlsFiles(), SasLogin(lambda: sas())))
    assert (fault.kind, fault.lasting, fault.unsure) == (CERTIFICATE, True, False)


def test_a_server_that_restarts(server: Azurite) -> None:
    with closing(server.store()) as store:
        version = store.swap(KEY, b"one", "")
        assert version
        server.stop()
        try:
            with pytest.raises(StoreFault, match="refused the connection") as caught:
                store.swap(KEY, b"two", version)
            assert not caught.value.unsure
            assert not caught.value.lasting
        finally:
            server.start()
        assert store.swap(KEY, b"two", version), "the kept connection is gone, and another is opened"
