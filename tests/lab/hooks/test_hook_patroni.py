# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patroni with the kind of hook patroni: committed rows, and the time without a primary, with a warning and without."""

from __future__ import annotations

import pytest

from ..software.load import Outcome
from ..software.patroni import Patroni
from .database_setting import NODES, Setting
from .figures import record


@pytest.fixture(scope="module")
def orderly(patroni: Setting[Patroni]) -> Outcome:
    """Reboot the primary by an event; return what the writer wrote down meanwhile."""
    cluster, _host, protected, writer = patroni
    writer.start(*NODES)
    protected.reboot(abruptly=True)
    assert cluster.leader() != "n1"
    assert "n1" in cluster.streaming(), "it was recovered once it streamed"
    return patroni.written()


def test_a_primary_is_rebooted_without_a_lost_row(patroni: Setting[Patroni], orderly: Outcome) -> None:
    record("patroni", "forewarn", patroni.figures(orderly))


@pytest.mark.full
def test_the_interruption_is_shorter_than_without_a_warning(patroni: Setting[Patroni], orderly: Outcome) -> None:
    cluster, host, _protected, writer = patroni
    cluster.make_primary(host)
    writer.start(*NODES)
    host.cut_power()
    cluster.hosts[1].wait_for(lambda: cluster.others_leader(host))
    writer.more()
    host.start()
    cluster.wait_until_streaming()
    unannounced = patroni.written()
    record("patroni", "unannounced", patroni.figures(unannounced))
    assert orderly.interruption_seconds < unannounced.interruption_seconds


@pytest.mark.full
def test_a_switchover_takes_hardly_longer_than_by_hand(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, _writer = patroni
    by_hand = cluster.make_primary(host)
    event_id = protected.announce()
    seconds = protected.wait_for_start(event_id)
    assert cluster.sql(cluster.primary(), "SELECT 1") == "1"
    assert cluster.leader() != "n1"
    protected.wait_for_recovery(event_id)
    record("patroni", "detection to drained", {"by_hand": round(by_hand, 2), "forewarn": seconds})


@pytest.mark.full
def test_killed_runner_resumes_the_switchover(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, writer = patroni
    cluster.make_primary(host)
    asked = "received switchover request"
    before = host.ssh("journalctl --unit=patroni").stdout.count(asked)
    writer.start(*NODES)
    event_id = protected.announce()
    host.wait_for(lambda: host.ssh("journalctl --unit=patroni").stdout.count(asked) > before, every=0.1)
    host.ssh("systemctl kill --signal=KILL forewarn")
    protected.wait_for_start(event_id)
    assert cluster.leader() != "n1"
    assert protected.wait_for_recovery(event_id)["hooks"][0]["attempts"] == 2
    patroni.written()


@pytest.mark.full
def test_a_replica_is_left_as_it_is(patroni: Setting[Patroni]) -> None:
    cluster, _host, protected, writer = patroni
    cluster.wait_until_streaming()
    leader = cluster.leader()
    assert leader != "n1"
    writer.start(*NODES)
    protected.reboot(abruptly=True)
    assert cluster.leader() == leader
    assert patroni.written().failed == {}


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(patroni: Setting[Patroni]) -> None:
    cluster, host, protected, _writer = patroni
    cluster.make_primary(host)
    protected.rehearse("postgres-patroni")
    assert cluster.leader() != "n1"
