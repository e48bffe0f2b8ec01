# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RabbitMQ with the kind of hook rabbitmq: confirmed messages and their pauses when the queue's leader is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..software.rabbitmq import Cluster, Traffic
from .cluster_setting import Setting, protected_cluster
from .figures import record
from .whole_event import history, power_cut

_FROZEN = 8.0  # seconds
_DOWN = 5.0  # seconds at least: a host of the lab boots sooner than a VM
_HOOK = "rabbitmq: {timeout: 2m}"


@pytest.fixture(scope="module")
def setting(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting[Cluster]]:
    directory = tmp_path_factory.mktemp("control")
    with protected_cluster(
        Cluster, ("client", "r1", "r2", "r3"), {"Reboot": _HOOK, "Freeze": _HOOK}, directory, installed_collection
    ) as started:
        yield started


def keep(case: str, traffic: Traffic) -> None:
    record("rabbitmq", case, traffic._asdict())


@pytest.fixture(scope="module")
def orderly(setting: Setting[Cluster]) -> Traffic:
    """Reboot a node by an event; return what became of the messages meanwhile."""
    cluster, node = setting.cluster, setting.node
    cluster.begin_traffic("announced")
    setting.protected.reboot(during=lambda: time.sleep(_DOWN))  # how long a VM is down
    assert not cluster.in_maintenance(node)
    return cluster.end_traffic("announced")


def test_no_confirmed_message_is_lost_in_a_reboot(orderly: Traffic) -> None:
    keep("forewarn", orderly)
    assert orderly.lost == 0


@pytest.mark.full
def test_the_pause_is_shorter_than_without_a_warning(setting: Setting[Cluster], orderly: Traffic) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.begin_traffic("unannounced")
    power_cut(node, lambda: time.sleep(_DOWN))  # likewise
    cluster.wait_for_quorum()
    cut = cluster.end_traffic("unannounced")
    keep("unannounced", cut)
    assert cut.lost == 0
    assert orderly.publisher_pause_seconds < cut.publisher_pause_seconds


@pytest.mark.full
def test_clients_go_on_while_a_node_is_frozen(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    cluster.wait_for_quorum()
    cluster.begin_traffic("freeze")
    event_id = protected.announce("Freeze", duration_seconds=_FROZEN)
    protected.wait_for_start(event_id)
    assert cluster.in_maintenance(node)
    node.freeze(_FROZEN)
    protected.wait_for_recovery(event_id)
    drained = cluster.end_traffic("freeze")
    keep(f"forewarn, {_FROZEN:g} s freeze", drained)
    assert drained.lost == 0

    cluster.wait_for_quorum()
    cluster.begin_traffic("sudden-freeze")
    node.freeze(_FROZEN)
    frozen = cluster.end_traffic("sudden-freeze")
    keep(f"unannounced, {_FROZEN:g} s freeze", frozen)
    assert frozen.lost == 0
    assert drained.publisher_pause_seconds < frozen.publisher_pause_seconds


@pytest.mark.full
def test_drain_takes_as_long_as_rabbitmq_upgrade(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    cluster.wait_for_quorum()
    began = time.monotonic()
    node.ssh("rabbitmq-upgrade await_online_quorum_plus_one && rabbitmq-upgrade drain")
    by_hand = time.monotonic() - began
    node.reboot()  # which ends the maintenance mode, and starts what a drain has stopped
    cluster.wait_for_quorum()
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    record(
        "rabbitmq",
        "detection to drained",
        {"by_hand": round(by_hand, 2), "forewarn": history(node, event_id)["hooks"][0]["seconds"]},
    )
    protected.wait_for_recovery(event_id)


@pytest.mark.full
def test_maintenance_by_a_person_lasts_beyond_a_reboot(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    node.ssh("rabbitmq-upgrade drain")
    setting.protected.reboot()
    assert cluster.in_maintenance(node)
    node.ssh("rabbitmq-upgrade revive")
    cluster.wait_for_quorum()


@pytest.mark.full
def test_node_needed_for_the_quorum_is_not_drained(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    other = cluster.nodes[1]
    other.ssh("systemctl stop rabbitmq-server")
    event_id = protected.announce()
    asked = "pgrep --full await_online_quorum_plus_one"
    node.wait_for(lambda: node.ssh(asked, check=False).returncode == 0)
    assert not cluster.in_maintenance(node)
    assert history(node, event_id)["state"] == "preparing"
    other.ssh("systemctl start rabbitmq-server")
    protected.wait_for_start(event_id)
    assert cluster.in_maintenance(node)
    protected.wait_for_recovery(event_id)
    assert not cluster.in_maintenance(node)


@pytest.mark.full
def test_member_left_down_by_a_revive_returns(setting: Setting[Cluster]) -> None:
    """A revive right after a drain does that to queues that the node led: where an event is cancelled, for example."""
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    cluster.wait_for_quorum()
    cluster.begin_traffic("member")
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    node.ssh("rabbitmq-upgrade revive")
    cluster.stop_member(node, "member")
    entry = protected.wait_for_recovery(event_id)
    assert [hook["status"] for hook in entry["hooks"]] == ["succeeded", "succeeded"]
    cluster.wait_for_quorum()
    assert cluster.end_traffic("member").lost == 0


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(setting: Setting[Cluster]) -> None:
    setting.protected.rehearse("rabbitmq")
    assert not setting.cluster.in_maintenance(setting.node)
