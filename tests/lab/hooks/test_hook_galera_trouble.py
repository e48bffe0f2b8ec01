# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind of hook galera makes of nodes and clusters in trouble."""

from __future__ import annotations

import pytest

from ..software.galera import Galera
from .database_setting import Setting

pytestmark = pytest.mark.full

_FREEZE_SECONDS = 10.0


def test_frozen_node_is_recovered_after_it_rejoins(galera: Setting[Galera]) -> None:
    """It was started again before the freeze, so the hook finds a node that says that it is synced, and is not."""
    cluster, host, protected, _writer = galera
    event_id = protected.announce("Freeze", duration_seconds=int(_FREEZE_SECONDS))
    protected.wait_for_start(event_id)
    host.ssh("systemctl start mariadb")
    cluster.wait_until_synced()
    host.freeze(_FREEZE_SECONDS)
    protected.wait_for_recovery(event_id)
    assert cluster.is_synced(host)
    assert cluster.status(cluster.hosts[1])["wsrep_cluster_size"] == "3"


def test_killed_runner_resumes_the_drain(galera: Setting[Galera]) -> None:
    """And it knows that the server ran before the first attempt, which has stopped it."""
    cluster, host, protected, writer = galera
    writer.start("n2", "n3")
    event_id = protected.announce()
    host.wait_for(lambda: host.properties("mariadb", "ActiveState")["ActiveState"] != "active", every=0.05)
    host.ssh("systemctl kill --signal=KILL forewarn")
    protected.wait_for_start(event_id)
    assert host.properties("mariadb", "ActiveState")["ActiveState"] == "inactive"
    protected.wait_for_recovery(event_id)
    assert cluster.is_synced(host)
    assert galera.written().failed == {}


@pytest.mark.parametrize("event_type", ["Preempt", "Redeploy"], ids=["the cluster is smaller", "the others are asked"])
def test_it_waits_for_enough_other_nodes(galera: Setting[Galera], event_type: str) -> None:
    cluster, host, protected, writer = galera
    second, reason = cluster.hosts[1], "1 other node is synced, and 2 must remain"
    writer.start("n3", "n1")
    if event_type == "Preempt":
        second.ssh("systemctl stop mariadb")
    else:
        cluster.sql(second, "SET GLOBAL wsrep_desync = ON")  # a node that lags, as one does that a backup is made of
    event_id = protected.announce(event_type)
    protected.wait_for_reason(event_id, reason)
    assert cluster.is_ready(host)
    second.ssh("systemctl start mariadb")
    cluster.sql(second, "SET GLOBAL wsrep_desync = OFF")
    protected.wait_for_start(event_id)
    assert host.properties("mariadb", "ActiveState")["ActiveState"] == "inactive"
    protected.wait_for_recovery(event_id)
    cluster.wait_until_synced()
    assert galera.written().failed == {}


def test_server_stopped_by_an_operator_stays_stopped(galera: Setting[Galera]) -> None:
    cluster, host, protected, _writer = galera
    host.ssh("systemctl disable --quiet --now mariadb")
    protected.reboot(abruptly=True)
    assert host.properties("mariadb", "ActiveState")["ActiveState"] == "inactive"
    host.ssh("systemctl enable --quiet --now mariadb")
    cluster.wait_until_synced()
