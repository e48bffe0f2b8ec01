# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Galera with the kind of hook galera: committed rows, and how long no node commits, with a warning and without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .figures import record
from .galera_setting import Setting, protected_galera
from .load import Outcome

_FREEZE_SECONDS = 10.0


@pytest.fixture(scope="module")
def setting(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting]:
    with protected_galera(tmp_path_factory.mktemp("control"), installed_collection) as started:
        yield started


def figures(outcome: Outcome) -> dict[str, float]:
    return {
        "committed": len(outcome.acknowledged),
        "failed": len(outcome.failed),
        "lost": 0,
        "interruption_seconds": round(outcome.interruption_seconds, 2),
    }


def test_a_node_is_rebooted_without_a_lost_row_and_with_a_shorter_interruption(setting: Setting) -> None:
    """The writer is a client of the very node: it has to go to another one."""
    cluster, host, protected, writer = setting
    writer.start("n1", "n2", "n3")
    protected.reboot()
    assert cluster.is_synced(host), "it was recovered once it was synced"
    orderly = setting.written()
    record("galera", "reboot, forewarn", figures(orderly))

    writer.start("n1", "n2", "n3")
    host.cut_power()
    writer.more()
    host.start()
    cluster.wait_until_synced()
    unannounced = setting.written()
    record("galera", "reboot, unannounced", figures(unannounced))
    assert orderly.interruption_seconds < unannounced.interruption_seconds


def test_the_others_do_not_wait_for_a_node_that_is_frozen(setting: Setting) -> None:
    cluster, host, protected, writer = setting
    writer.start("n2", "n3")
    event_id = protected.announce("Freeze", duration_seconds=int(_FREEZE_SECONDS))
    protected.wait_for_start(event_id)
    host.freeze(_FREEZE_SECONDS)
    protected.wait_for_recovery(event_id)
    assert cluster.is_synced(host)
    orderly = setting.written()
    assert orderly.failed == {}
    record("galera", "freeze, forewarn", figures(orderly))

    writer.start("n2", "n3")
    host.freeze(_FREEZE_SECONDS)
    cluster.wait_until_synced()
    unannounced = setting.written()
    record("galera", "freeze, unannounced", figures(unannounced))
    assert orderly.interruption_seconds < unannounced.interruption_seconds


def test_a_stop_takes_hardly_longer_than_by_hand(setting: Setting) -> None:
    cluster, host, protected, _writer = setting
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


def test_the_shipped_policy_is_rehearsed(setting: Setting) -> None:
    cluster, host, protected, _writer = setting
    protected.rehearse("mariadb-galera")
    assert cluster.is_synced(host)
