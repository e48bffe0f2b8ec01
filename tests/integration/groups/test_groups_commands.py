# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` and ``forewarn group`` with a real etcd, by the rights that a user has there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.doctor import service
from forewarn.runner.groups import documents
from forewarn.runner.groups.etcd_answers import encode
from tools.servers.etcd_server import PASSWORD, PREFIX, EtcdCluster, etcd_cluster
from tools.sites.commands import in_process
from tools.sites.runner_process import compiled

POLICY = "name: web\nrule: {match: [{id: drain, output: approve, limit: 1, prepare: [{run: ['true']}]}]}\n"
READER = "reader"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        _add_reader(cluster)
        yield cluster


def _add_reader(cluster: EtcdCluster) -> None:
    """Let a user read what the others write, and nothing more."""
    member = cluster.members[0]
    token = cluster.root_token(member)
    permission = {"permType": "READ", "key": encode(PREFIX), "range_end": encode(PREFIX[:-1] + "0")}
    for path, request in (
        ("auth/role/add", {"name": READER}),
        ("auth/role/grant", {"name": READER, "perm": permission}),
        ("auth/user/add", {"name": READER, "password": PASSWORD}),
        ("auth/user/grant", {"user": READER, "role": READER}),
    ):
        assert cluster.call(member, path, token, **request).status_code == 200, path


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``doctor`` not wait for a service that is not there."""
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def _empty(etcd: EtcdCluster) -> None:
    with closing(etcd.store()) as store:
        for key in store.list(PREFIX):
            store.swap(key, None, store.read(key).version)


def config(directory: Path, etcd: EtcdCluster, **store: Any) -> Path:
    compiled(directory, POLICY)
    directory.chmod(0o700)
    path = directory / "config.json"
    content = {"artifact": "policy.json", "state": str(directory / "state"), "vm_name": "web_0"}
    group = {"group": "web", "group_members": ["web_0", "web_1"], "group_store": {**etcd.settings(), **store}}
    path.write_text(json.dumps({**content, **group, "endpoint": "http://127.0.0.1:9"}))
    return path


def group_check(path: Path) -> dict[str, str]:
    report = json.loads(in_process("doctor", "--config", path, "--json").stdout)
    (found,) = [check for check in report["checks"] if check["name"] == "group"]
    return dict(found)


def left(etcd: EtcdCluster) -> list[str]:
    with closing(etcd.store()) as store:
        return list(store.list(PREFIX))


def test_doctor_tries_the_store_and_leaves_nothing(tmp_path: Path, etcd: EtcdCluster) -> None:
    path = config(tmp_path, etcd)
    found = group_check(path)
    assert (found["state"], found["hint"]) == (
        "trouble",
        "Once no VM of the group is disturbed: forewarn group create.",
    )
    assert left(etcd) == []
    created = in_process("group", "create", "--config", path)
    assert (created.returncode, created.stderr) == (0, "")
    found = group_check(path)
    assert (found["state"], found["hint"]) == ("ok", ""), found
    assert found["text"].startswith(f"web: etcd at {etcd.members[0].address.where} answers in ")
    assert left(etcd) == [documents.semaphore_key("web")]


def test_read_only_user_is_trouble_and_sees_status(tmp_path: Path, etcd: EtcdCluster) -> None:
    assert in_process("group", "create", "--config", config(tmp_path, etcd)).returncode == 0
    path = config(tmp_path, etcd, user=READER)
    found = group_check(path)
    assert (found["state"], "does not let the user read or write this key" in found["text"]) == ("trouble", True)
    assert "role grant-permission" in found["hint"]
    assert in_process("group", "status", "--config", path).returncode == 0
    done = in_process("group", "create", "--group", "other", "--config", path)
    assert (done.returncode, "does not let the user read or write this key" in done.stderr) == (3, True), done.stderr
    assert left(etcd) == [documents.semaphore_key("web")]


def test_credential_comes_from_the_credentials_directory(tmp_path: Path, etcd: EtcdCluster) -> None:
    path = config(tmp_path, etcd, password={"credential": "etcd"})
    done = in_process("group", "status", "--config", path, CREDENTIALS_DIRECTORY="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the store needs the credential etcd, which cannot be read here." in done.stderr
    secret = tmp_path / "etcd"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    done = in_process("group", "status", "--config", path, CREDENTIALS_DIRECTORY=str(tmp_path))
    assert (done.returncode, "It has no semaphore" in done.stdout) == (0, True), done.stderr
    secret.write_text("another")
    done = in_process("group", "status", "--config", path, CREDENTIALS_DIRECTORY=str(tmp_path))
    assert (done.returncode, "has another password for it" in done.stderr) == (3, True), done.stderr


def test_a_file_with_the_group_alone_is_enough(tmp_path: Path, etcd: EtcdCluster) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"group": "web", "group_store": etcd.settings()}))
    assert in_process("group", "create", "--config", path).returncode == 0
    shown = json.loads(in_process("group", "status", "--config", path, "--json").stdout)
    assert shown["semaphore"] == {"slots": [], "waiting": [], "releases": []}
