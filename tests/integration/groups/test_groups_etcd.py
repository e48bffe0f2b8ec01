# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd as a store while its members are killed, frozen, wiped or restored, and while logins expire or are refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.groups.etcd import WHOLE_SECONDS
from forewarn.runner.groups.store import CERTIFICATE, LOGIN, LOST_DATA, StoredValue, StoreFault
from forewarn.runner.groups.tls import TlsFiles
from tools.servers.etcd_server import TOKEN_SECONDS, EtcdCluster, Member, etcd_cluster
from tools.servers.store_counting import Counting
from tools.sites.waiting import wait_until
from tools.suite.sizes import SIZE, enough

KEY = "forewarn/web/slots"
SLACK_SECONDS = 1.4  # for a busy machine; with 0.5 s less than an attempt has by default


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 3) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: EtcdCluster) -> Iterator[EtcdCluster]:
    """Return three healthy members without any keys; each member that a test ends is started again."""
    with closing(running.store()) as store:
        for key in store.list("forewarn/"):
            store.swap(key, None, store.read(key).version)
    yield running
    running.settle()


def others(cluster: EtcdCluster, *members: Member) -> list[Member]:
    return [member for member in cluster.members if member not in members]


def refused(cluster: EtcdCluster, key: str = KEY, **options: Any) -> StoreFault:
    """Return the fault of a read."""
    with closing(cluster.store(cluster.members[:1], **options)) as store, pytest.raises(StoreFault) as caught:
        store.read(key)
    assert not caught.value.unsure
    return caught.value


# Logins


def test_an_expired_token_is_renewed(cluster: EtcdCluster) -> None:
    member = cluster.members[0]
    token = cluster.root_token(member)
    with closing(cluster.store([member])) as store:
        version = store.swap(KEY, b"one", "")
        time.sleep(TOKEN_SECONDS + 1.5)  # by the clock of etcd
        assert cluster.call(member, "kv/range", token, key="YQ==").status_code == 401, "tokens expire here"
        assert version
        assert store.swap(KEY, b"two", version), "of a write, too"
        assert store.read(KEY).value == b"two"


def test_a_changed_password_counts_at_the_next_login(cluster: EtcdCluster) -> None:
    passwords = ["wrong", "forewarn-pw"]
    with closing(cluster.store(password=lambda: passwords.pop(0))) as store:
        with pytest.raises(StoreFault, match="knows no such user, or has another password") as caught:
            store.swap(KEY, b"one", "")
        assert (caught.value.kind, caught.value.lasting, caught.value.unsure) == (LOGIN, True, False)
        assert store.swap(KEY, b"one", "")


def test_another_prefix_is_refused(cluster: EtcdCluster) -> None:
    fault = refused(cluster, "other/key")
    assert (fault.kind, fault.status, fault.lasting) == (LOGIN, 403, True)
    with closing(cluster.store()) as store, pytest.raises(StoreFault, match="does not let the user") as caught:
        store.swap("other/key", b"one", "")
    assert not caught.value.unsure


def test_login_without_a_user_ignores_the_servers_certificate(cluster: EtcdCluster) -> None:
    """The CN of the server's certificate is a user with rights."""
    member = cluster.members[0]
    token = cluster.root_token(member)
    cluster.call(member, "auth/user/add", token, name="etcd", password="x")  # the CN of the certificate
    assert cluster.call(member, "auth/user/grant", token, user="etcd", role="root").status_code == 200
    fault = refused(cluster, user=None)
    assert (fault.kind, fault.lasting) == (LOGIN, True)
    assert "wants a user" in str(fault)


def test_certificates_that_are_not_accepted(cluster: EtcdCluster) -> None:
    directory = cluster.directory
    assert "unable to get local issuer certificate" in str(refused(cluster, files=TlsFiles()))
    named = TlsFiles(*(str(directory / name) for name in ("ca.crt", "named.crt", "named.key")))
    fault = refused(cluster, files=named)
    assert (fault.kind, fault.lasting) == (CERTIFICATE, True)
    assert "common name" in str(fault)
    text = str(refused(cluster, files=TlsFiles(str(directory / "ca.crt"))))
    assert "CERTIFICATE" in text or "It may want a client certificate" in text, text


# Members that are gone


def test_a_killed_member_is_passed_over(cluster: EtcdCluster) -> None:
    first = others(cluster, cluster.leader())[0]
    with closing(cluster.store([first, *others(cluster, first)])) as store:
        version = store.swap(KEY, b"one", "")
        assert version
        first.kill()
        first.freeze()  # as stories do by chance: nothing happens to a member that has ended
        try:
            assert store.swap(KEY, b"two", version), "it was not sent to the member that is gone"
            assert store.read(KEY).value == b"two"
        finally:
            cluster.start(first)


def test_frozen_member_is_skipped_by_reads_only(cluster: EtcdCluster) -> None:
    """A write to the frozen member is unsure."""
    first = others(cluster, cluster.leader())[0]
    with closing(cluster.store([first, *others(cluster, first)], timeout_seconds=0.5)) as store:
        version = store.swap(KEY, b"one", "")
        assert version
        first.freeze()
        try:
            with pytest.raises(StoreFault, match=r"took longer than 0\.5 s") as caught:
                store.swap(KEY, b"two", version)
            assert caught.value.unsure
            assert store.read(KEY) == StoredValue(b"one", version), "the next member is asked"
        finally:
            first.thaw()
        cluster.settle()
        # The write was waiting at the frozen member, and is applied only now, or not at all.
        written = store.swap(KEY, b"three", version) or store.read(KEY).version
        assert store.swap(KEY, b"four", written)


def test_two_of_three_are_gone(cluster: EtcdCluster) -> None:
    left = cluster.leader()
    with closing(cluster.store([left, *others(cluster, left)])) as store:
        version = store.swap(KEY, b"one", "")
        assert version
        for member in others(cluster, left):
            member.kill()
        try:
            for attempt in (lambda: store.read(KEY), lambda: store.swap(KEY, b"two", version)):
                started = time.monotonic()
                with pytest.raises(StoreFault) as caught:
                    attempt()
                assert time.monotonic() - started < WHOLE_SECONDS + SLACK_SECONDS
                assert not caught.value.lasting
        finally:
            for member in others(cluster, left):
                cluster.start(member)
        cluster.settle()
        seen = store.read(KEY)
        assert seen.value in (b"one", b"two"), "the write that failed may have been applied"
        assert store.swap(KEY, b"three", seen.version)


@pytest.mark.parametrize("way", ["kill", "freeze"])
def test_swaps_are_exact_while_the_leader_is_gone(cluster: EtcdCluster, way: str) -> None:
    order = [cluster.members[number:] + cluster.members[:number] for number in range(3)]
    stores = [cluster.store(order[number % 3], timeout_seconds=0.5) for number in range(SIZE.store_writers)]
    counting = Counting(stores, KEY, 60, pause=0.01)
    leader = cluster.leader()

    def trouble() -> None:
        wait_until(lambda: counting.swaps > 20)
        getattr(leader, way)()
        try:
            before = counting.swaps
            wait_until(lambda: counting.swaps > before + 40, what="the others do not go on without it")
        finally:
            if way == "kill":
                cluster.start(leader)
            else:
                leader.thaw()

    try:
        count = counting.run(trouble)
    finally:
        for store in stores:
            store.close()
    assert count.swaps == 60 * len(stores)
    assert count.faults >= enough(1), "of so many writers one gives up while the others elect a leader"
    assert 0.5 < count.seconds < 20, "every writer waits while the others elect a leader, for about a second"


# Data that is lost


@pytest.mark.parametrize("restored", [True, False], ids=["restored", "wiped"])
def test_a_store_that_has_gone_back_is_noticed(tmp_path: Path, restored: bool) -> None:
    with etcd_cluster(tmp_path, 1, users=False) as cluster, closing(cluster.store()) as store:
        (member,) = cluster.members
        version = store.swap(KEY, b"one", "")
        member.kill()
        shutil.copytree(member.data, tmp_path / "backup")
        cluster.start(member)
        cluster.settle()
        assert version
        for number in range(3):
            version = store.swap(KEY, b"%d" % number, version)
            assert version
        member.kill()
        shutil.rmtree(member.data)
        if restored:
            shutil.copytree(tmp_path / "backup", member.data)
        cluster.start(member)
        cluster.settle()
        with pytest.raises(StoreFault, match="gone back") as caught:
            store.read(KEY)
        assert (caught.value.kind, caught.value.lasting, caught.value.unsure) == (LOST_DATA, True, False)
        with pytest.raises(StoreFault, match="gone back") as caught:
            store.swap(KEY, b"new", version)
        assert caught.value.unsure
        with pytest.raises(StoreFault, match="gone back"):
            store.list("forewarn/")


def test_another_cluster_is_noticed(tmp_path: Path) -> None:
    with etcd_cluster(tmp_path, 1, users=False) as cluster, closing(cluster.store()) as store:
        (member,) = cluster.members
        assert store.swap(KEY, b"one", "")
        member.kill()
        shutil.rmtree(member.data)
        member.peer_url = member.peer_url.replace("127.0.0.1", "localhost")  # from which the cluster's id is made
        cluster.start(member)
        cluster.settle()
        with pytest.raises(StoreFault, match="another cluster") as caught:
            store.read(KEY)
        assert caught.value.kind == LOST_DATA
