# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook ``etcd`` on three hosts, and the role on a fourth whose group meets there: one story, in its order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..hosts import Host
from ..images import SOFTWARE
from ..lab import SETTINGS, Lab
from .control_node import control_node, refusal, status
from .playbooks import Playbooks

pytestmark = pytest.mark.in_turn(2, together=True)
NODES = ("etcd_0", "etcd_1", "etcd_2")
ETCD, ROLLOUT = "forewarn.azure.etcd", "forewarn.azure.rollout"
POLICY = """\
name: web
description: One VM after the other.
rule:
  match: [{id: all, condition: event.EventType == "Reboot", output: approve, group: ready, limit: 1}]
"""


@pytest.fixture(scope="module")
def joined(lab_machine: None) -> Iterator[Lab]:
    hosts = {**dict.fromkeys(NODES, SOFTWARE), "web_0": "trixie"}
    with Lab(hosts, SETTINGS, joined=True) as started:
        yield started


@pytest.fixture(scope="module")
def playbooks(joined: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> Playbooks:
    books = control_node(joined, tmp_path_factory.mktemp("control"), installed_collection)
    for name in NODES:
        books.variables(name, {"forewarn_etcd_address": joined.host(name).host_name})
    (books.directory / "groups").mkdir()
    (books.directory / "groups" / "web.yml").write_text(POLICY)
    return books


def cluster(playbooks: Playbooks, password: str = "of web", **changed: Any) -> dict[str, Any]:
    """Return the variables of the cluster."""
    return {
        "forewarn_hosts": "etcd_*",
        "forewarn_etcd_directory": str(playbooks.directory / "etcd"),
        "forewarn_etcd_root_password": "of root",
        "forewarn_etcd_users": [
            {"name": "web", "password": password, "groups": ["web"]},
            {"name": "db", "password": "of db", "groups": ["db", "db-spare"]},
        ],
        **changed,
    }


def group(playbooks: Playbooks, password: str = "of web", **changed: Any) -> dict[str, Any]:
    """Return the variables of the role for a VM of the group."""
    files = {"ca_file": "ca.crt", "certificate_file": "client.crt", "key_file": "client.key"}
    return {
        "forewarn_hosts": "web_0",
        "forewarn_policies": ["groups"],
        "forewarn_health_seconds": 60,
        "forewarn_group": "web",
        "forewarn_group_members": ["web_0", "web_1"],
        "forewarn_group_store": {
            "etcd": ["https://etcd-0:2379", "https://etcd-1:2379", "https://etcd-2:2379"],
            "user": "web",
            "password": {"credential": "etcd"},
        },
        "forewarn_group_files": {name: str(playbooks.directory / "etcd" / file) for name, file in files.items()},
        "forewarn_credentials": {"etcd": password},
        **changed,
    }


def main_pid(host: Host, unit: str) -> str:
    return host.properties(unit, "MainPID")["MainPID"]


@pytest.mark.full
def test_mistakes_are_refused_before_anything_is_done(joined: Lab, playbooks: Playbooks) -> None:
    joined.host("etcd_1").ssh("systemctl start etcd")
    for changed, host, says in (
        ({"forewarn_hosts": "etcd_0,etcd_1"}, "etcd_0", "A cluster has 3, 5 or 7 nodes, and here are 2."),
        ({}, "etcd_1", "This host runs an etcd that this playbook has not set up."),
    ):
        message = refusal(playbooks.play(ETCD, cluster(playbooks, **changed)), host)
        assert message.startswith(says)
        assert message.endswith("Nothing was changed.")
    assert not (playbooks.directory / "etcd").exists()
    joined.host("etcd_1").ssh("systemctl stop etcd")  # what it has begun stays beside the cluster's data


def test_three_nodes_become_a_cluster(joined: Lab, playbooks: Playbooks) -> None:
    played = playbooks.play(ETCD, cluster(playbooks))
    assert set(played.changed()) == set(NODES)
    assert "of web" not in played.text
    assert "of root" not in played.text
    assert (playbooks.directory / "etcd").stat().st_mode & 0o77 == 0
    for name in NODES:
        host = joined.host(name)
        kept = host.ssh("stat -c '%n %a %U %G' /etc/forewarn-etcd /etc/forewarn-etcd/node.key").stdout
        assert kept == "/etc/forewarn-etcd 750 root etcd\n/etc/forewarn-etcd/node.key 640 root etcd\n"
        assert host.properties("etcd", "UnitFileState", "NRestarts") == {"UnitFileState": "enabled", "NRestarts": "0"}


def test_role_connects_a_vm_to_its_group_store(joined: Lab, playbooks: Playbooks) -> None:
    host = joined.host("web_0")
    played = playbooks.play(ROLLOUT, group(playbooks, forewarn_group_create=True))
    assert played.changed()["web_0"] > 0
    assert "of web" not in played.text
    assert status(host)["problems"] == []
    shown = json.loads(host.ssh("forewarn group status --json").stdout)
    assert (shown["group"], shown["members"], shown["semaphore"]["slots"]) == ("web", ["web_0", "web_1"], [])
    checks = json.loads(host.ssh("forewarn doctor --json", check=False).stdout)["checks"]
    assert [check["state"] for check in checks if check["name"] == "group"] == ["ok"]
    unit = host.read("/etc/systemd/system/forewarn.service")
    assert "ProtectSystem=strict" in unit
    assert "AF_NETLINK" in unit
    other = host.ssh("forewarn group status --group db", check=False)
    assert other.returncode == 3, "web may not read what belongs to db"
    assert "permission" in other.stderr


@pytest.mark.full
def test_a_second_run_changes_nothing(joined: Lab, playbooks: Playbooks) -> None:
    assert playbooks.play(ETCD, cluster(playbooks), "--diff").changed() == dict.fromkeys(NODES, 0)
    assert playbooks.play(ROLLOUT, group(playbooks, forewarn_group_create=True)).changed() == {"web_0": 0}


def test_an_event_takes_a_slot_in_the_store(joined: Lab, playbooks: Playbooks) -> None:
    host = joined.host("web_0")
    event_id = joined.emulator.schedule("Reboot", ["web_0"])
    host.wait_for(lambda: joined.emulator.event(event_id)["status"] == "Started")
    slots = json.loads(host.ssh("forewarn group status --json").stdout)["semaphore"]["slots"]
    assert [(slot["vm"], slot["within_limit"]) for slot in slots] == [("web_0", True)]
    joined.emulator.finish(event_id)
    host.wait_for(lambda: not json.loads(host.ssh("forewarn group status --json").stdout)["semaphore"]["slots"])


@pytest.mark.full
def test_rotated_password_and_certificates_take_one_run(joined: Lab, playbooks: Playbooks) -> None:
    host = joined.host("web_0")
    before = {name: main_pid(joined.host(name), "etcd") for name in NODES}
    process = main_pid(host, "forewarn")
    users = cluster(playbooks, "another of web")["forewarn_etcd_users"]
    users[1]["groups"] = ["db"]
    for name in ("node-etcd_1.crt", "client.crt"):
        (playbooks.directory / "etcd" / name).unlink()
    changed = playbooks.play(ETCD, cluster(playbooks, forewarn_etcd_users=users)).changed()
    assert changed["etcd_2"] == 0
    after = {name: main_pid(joined.host(name), "etcd") for name in NODES}
    assert [name for name in NODES if after[name] != before[name]] == ["etcd_1"]
    assert host.ssh("forewarn group status", check=False).returncode == 3, "the password is another"
    assert playbooks.play(ROLLOUT, group(playbooks, "another of web")).changed()["web_0"] > 0
    assert main_pid(host, "forewarn") != process
    host.ssh("forewarn group status")


@pytest.mark.full
def test_node_without_data_is_replaced_on_request(joined: Lab, playbooks: Playbooks) -> None:
    host = joined.host("etcd_2")
    host.ssh("systemctl stop etcd && rm -r /var/lib/etcd/forewarn")
    given = cluster(playbooks, "another of web")
    assert refusal(playbooks.play(ETCD, given), "etcd_2").startswith("This host has lost its data")
    assert host.ssh("ls -d /var/lib/etcd/forewarn", check=False).stdout == ""
    joined.host("web_0").ssh("forewarn group status")  # two of three are enough
    playbooks.play(ETCD, {**given, "forewarn_etcd_replace": "etcd_2"}).changed()
    joined.host("etcd_0").ssh("systemctl stop etcd")
    joined.host("web_0").wait_for(
        lambda: joined.host("web_0").ssh("forewarn group status", check=False).returncode == 0
    )


@pytest.mark.full
def test_a_semaphore_cannot_be_created_without_the_store(joined: Lab, playbooks: Playbooks) -> None:
    joined.host("etcd_1").ssh("systemctl stop etcd")
    played = playbooks.play(ROLLOUT, group(playbooks, "another of web", forewarn_group_create=True))
    message = refusal(played, "web_0")
    assert "etcd-2:2379" in message
    assert status(joined.host("web_0"))["runner"]["condition"] == "running"
