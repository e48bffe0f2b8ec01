# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Galera with the kind of hook galera: committed rows, and how long no node commits, with a warning and without."""

from __future__ import annotations

import time

import pytest

from ..software.galera import Galera
from ..software.load import Outcome
from .database_setting import Setting
from .figures import record

_FREEZE_SECONDS = 10.0


@pytest.fixture(scope="module")
def orderly(galera: Setting[Galera]) -> Outcome:
    """Reboot a node by an event; return what the writer wrote down meanwhile.

    It is a client of the very node: it has to go to another one.
    """
    cluster, host, protected, writer = galera
    writer.start("n1", "n2", "n3")
    protected.reboot(abruptly=True)
    assert cluster.is_synced(host), "it was recovered once it was synced"
    return galera.written()


def test_a_node_is_rebooted_without_a_lost_row(galera: Setting[Galera], orderly: Outcome) -> None:
    record("galera", "reboot, forewarn", galera.figures(orderly))


@pytest.mark.full
def test_the_interruption_is_shorter_than_without_a_warning(galera: Setting[Galera], orderly: Outcome) -> None:
    cluster, host, _protected, writer = galera
    writer.start("n1", "n2", "n3")
    host.cut_power()
    writer.more()
    host.start()
    cluster.wait_until_synced()
    unannounced = galera.written()
    record("galera", "reboot, unannounced", galera.figures(unannounced))
    assert orderly.interruption_seconds < unannounced.interruption_seconds


@pytest.mark.full
def test_other_nodes_do_not_wait_for_a_freeze(galera: Setting[Galera]) -> None:
    cluster, host, protected, writer = galera
    writer.start("n2", "n3")
    event_id = protected.announce("Freeze", duration_seconds=int(_FREEZE_SECONDS))
    protected.wait_for_start(event_id)
    host.freeze(_FREEZE_SECONDS)
    protected.wait_for_recovery(event_id)
    assert cluster.is_synced(host)
    orderly = galera.written()
    assert orderly.failed == {}
    record("galera", "freeze, forewarn", galera.figures(orderly))

    writer.start("n2", "n3")
    host.freeze(_FREEZE_SECONDS)
    cluster.wait_until_synced()
    unannounced = galera.written()
    record("galera", "freeze, unannounced", galera.figures(unannounced))
    assert orderly.interruption_seconds < unannounced.interruption_seconds


@pytest.mark.full
def test_a_stop_takes_hardly_longer_than_by_hand(galera: Setting[Galera]) -> None:
    cluster, host, protected, _writer = galera
    began = time.monotonic()
    host.ssh("systemctl stop mariadb")
    by_hand = time.monotonic() - began
    host.ssh("systemctl start mariadb")
    cluster.wait_until_synced()
    event_id = protected.announce()
    seconds = protected.wait_for_start(event_id)
    assert host.properties("mariadb", "ActiveState")["ActiveState"] == "inactive"
    protected.wait_for_recovery(event_id)
    assert cluster.is_synced(host)
    record("galera", "detection to drained", {"by_hand": round(by_hand, 2), "forewarn": seconds})


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(galera: Setting[Galera]) -> None:
    cluster, host, protected, _writer = galera
    protected.rehearse("mariadb-galera")
    assert cluster.is_synced(host)
