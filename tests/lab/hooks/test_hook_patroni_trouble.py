# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind of hook patroni makes of clusters in trouble, and of those with more security."""

from __future__ import annotations

import pytest

from ..software.patroni import Patroni
from .database_setting import NODES, Setting

pytestmark = pytest.mark.full


def test_paused_cluster_delays_the_switchover(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, writer = patroni
    cluster.make_primary(host)
    writer.start(*NODES)
    cluster.control("pause --wait lab")
    event_id = protected.announce()
    protected.wait_for_reason(event_id, "n1 is the primary of a paused cluster, in which somebody works")
    cluster.control("resume --wait lab")
    protected.wait_for_start(event_id)
    assert cluster.leader() != "n1"
    protected.wait_for_recovery(event_id)
    patroni.written()


def test_switchover_waits_for_a_streaming_member(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, writer = patroni
    cluster.make_primary(host)
    writer.start(*NODES)
    for other in cluster.hosts[1:]:
        other.ssh("systemctl stop patroni")
    event_id = protected.announce("Freeze")
    protected.wait_for_reason(event_id, "no other member streams from n1")
    for other in cluster.hosts[1:]:
        other.ssh("systemctl start patroni")
    protected.wait_for_start(event_id)
    assert cluster.leader() != "n1"
    protected.wait_for_recovery(event_id)
    cluster.wait_until_streaming()
    patroni.written()


def test_a_failover_in_progress_is_waited_for(patroni: Setting[Patroni]) -> None:
    """Whichever of the two that are left becomes the primary, in the end it is not the one that will be rebooted."""
    cluster, _host, protected, writer = patroni
    second = cluster.hosts[1]
    cluster.make_primary(second)
    writer.start(*NODES)
    second.cut_power()
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    assert cluster.leader() == "n3"
    second.start()
    protected.wait_for_recovery(event_id)
    cluster.wait_until_streaming()
    patroni.written()


def test_synchronous_cluster_with_a_secured_api_switches_over(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, writer = patroni
    cluster.make_primary(host)
    cluster.secure()
    cluster.control("edit-config --force --set synchronous_mode=true lab")
    cluster.hosts[0].wait_for(cluster.synchronous)
    writer.start(*NODES)
    event_id = protected.announce("Reboot")
    protected.wait_for_reason(event_id, "Patroni does not answer")
    protected.cancel(event_id)
    standby = cluster.synchronous()
    event_id = protected.announce("Redeploy")
    protected.wait_for_start(event_id)
    assert cluster.leader() == standby
    host.reboot()
    protected.wait_for_recovery(event_id)
    patroni.written()
