# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pacemaker with the kind of hook pacemaker: how long a service is away when its node is rebooted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..hosts import Host
from ..software.pacemaker import Cluster, Requests
from .cluster_setting import Setting, protected_cluster
from .figures import record
from .whole_event import history, power_cut


@pytest.fixture(scope="module")
def setting(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting[Cluster]]:
    directory = tmp_path_factory.mktemp("control")
    with protected_cluster(
        Cluster, ("client", "p1", "p2", "p3"), {"Reboot": "pacemaker: {timeout: 2m}"}, directory, installed_collection
    ) as started:
        started.protected.moving = frozenset({"web.service active", "tcp 00000000 port 8080"})
        yield started


def wait_until_online(cluster: Cluster, node: Host) -> None:
    """Wait until a node is online, as another one sees it."""
    online = {"online": "true", "standby": "false", "pending": "false"}
    cluster.nodes[1].wait_for(lambda: online.items() <= cluster.node(cluster.nodes[1], node).items())


@pytest.fixture(scope="module")
def orderly(setting: Setting[Cluster]) -> Requests:
    """Reboot the node of the service by an event; return what its clients saw."""
    cluster, node = setting.cluster, setting.node
    cluster.place(node)
    cluster.begin_requests("announced")
    setting.protected.reboot()
    return cluster.end_requests("announced")


def test_service_moves_and_the_node_returns(setting: Setting[Cluster], orderly: Requests) -> None:
    cluster, node = setting.cluster, setting.node
    record("pacemaker", "forewarn", {"pause_seconds": orderly.pause_seconds})
    assert not cluster.has_service(node)
    assert cluster.node(node, node)["standby"] == "false"


@pytest.mark.full
def test_announced_reboot_interrupts_the_service_less(setting: Setting[Cluster], orderly: Requests) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.place(node)
    cluster.begin_requests("unannounced")
    elsewhere = cluster.nodes[1:]
    power_cut(node, lambda: node_of(elsewhere, cluster))
    cut = cluster.end_requests("unannounced")
    record("pacemaker", "unannounced", {"pause_seconds": cut.pause_seconds})
    assert orderly.pause_seconds < cut.pause_seconds
    wait_until_online(cluster, node)


def node_of(nodes: list[Host], cluster: Cluster) -> Host:
    """Wait until the service is on one of some nodes, and return that."""
    return nodes[0].wait_for(lambda: next((node for node in nodes if cluster.has_service(node)), None))


@pytest.mark.full
def test_drain_takes_as_long_as_crm_standby(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    cluster.place(node)
    began = time.monotonic()
    node.ssh("crm_standby --update on && crm_resource --wait")
    by_hand = time.monotonic() - began
    node.ssh("crm_standby --delete")
    cluster.place(node)
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    assert cluster.node(node, node)["standby"] == "true"
    forewarn = history(node, event_id)["hooks"][0]["seconds"]
    record("pacemaker", "detection to drained", {"by_hand": round(by_hand, 2), "forewarn": forewarn})
    protected.wait_for_recovery(event_id)
    assert cluster.node(node, node)["standby"] == "false"


def test_standby_set_by_an_operator_remains(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    node.ssh("crm_standby --update on")
    setting.protected.reboot()
    node.wait_for(lambda: cluster.node(node, node).get("standby") == "true")
    node.ssh("crm_standby --delete")
    wait_until_online(cluster, node)


@pytest.mark.full
def test_node_returns_after_pacemaker_starts(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    node.ssh("systemctl disable --quiet pacemaker")
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    node.reboot()
    protected.finish(event_id)
    started = f"journalctl -u forewarn --grep='hook-started event_id={event_id} phase=recover'"
    node.wait_for(lambda: node.ssh(started, check=False).returncode == 0)
    node.ssh("systemctl enable --quiet --now pacemaker")
    protected.wait_for_recovery(event_id)
    wait_until_online(cluster, node)


@pytest.mark.full
def test_service_without_another_node_is_not_stopped(setting: Setting[Cluster]) -> None:
    cluster, node, protected = setting.cluster, setting.node, setting.protected
    cluster.place(node)
    for other in cluster.nodes[1:]:
        node.ssh(f"crm_standby --node {other.host_name} --update on")
    event_id = protected.announce()
    node.wait_for(lambda: history(node, event_id).get("state") == "preparing")
    assert cluster.has_service(node)
    for other in cluster.nodes[1:]:
        node.ssh(f"crm_standby --node {other.host_name} --delete")
    protected.wait_for_start(event_id)
    assert node_of(cluster.nodes[1:], cluster)
    protected.wait_for_recovery(event_id)
