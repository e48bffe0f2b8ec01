# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind of hook patroni makes of clusters in trouble, and of those with more security."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .patroni_setting import MEMBERS, Setting, protected_patroni


@pytest.fixture(scope="module")
def setting(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting]:
    with protected_patroni(tmp_path_factory.mktemp("control"), installed_collection) as started:
        yield started


def test_it_fails_in_a_paused_cluster_and_goes_on_when_the_pause_ends(setting: Setting) -> None:
    cluster, host, protected, writer = setting
    cluster.make_primary(host)
    writer.start(*MEMBERS)
    cluster.control("pause --wait lab")
    event_id = protected.announce()
    protected.wait_for_reason(event_id, "n1 is the primary of a paused cluster, in which somebody works")
    cluster.control("resume --wait lab")
    protected.wait_for_start(event_id)
    assert cluster.leader() != "n1"
    protected.wait_for_recovery(event_id)
    setting.written()


def test_it_waits_for_a_member_that_can_take_over(setting: Setting) -> None:
    cluster, host, protected, writer = setting
    cluster.make_primary(host)
    writer.start(*MEMBERS)
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
    setting.written()


def test_a_failover_in_progress_is_waited_for(setting: Setting) -> None:
    """Whichever of the two that are left becomes the primary, in the end it is not the one that will be rebooted."""
    cluster, _host, protected, writer = setting
    second = cluster.hosts[1]
    cluster.make_primary(second)
    writer.start(*MEMBERS)
    second.cut_power()
    event_id = protected.announce()
    protected.wait_for_start(event_id)
    assert cluster.leader() == "n3"
    second.start()
    protected.wait_for_recovery(event_id)
    cluster.wait_until_streaming()
    setting.written()


def test_a_synchronous_cluster_whose_api_has_a_password_and_certificates(setting: Setting) -> None:
    cluster, host, protected, writer = setting
    cluster.make_primary(host)
    cluster.secure()
    cluster.control("edit-config --force --set synchronous_mode=true lab")
    cluster.hosts[0].wait_for(cluster.synchronous, 60)
    writer.start(*MEMBERS)
    event_id = protected.announce("Reboot")
    protected.wait_for_reason(event_id, "Patroni does not answer")
    protected.cancel(event_id)
    standby = cluster.synchronous()
    event_id = protected.announce("Redeploy")
    protected.wait_for_start(event_id)
    assert cluster.leader() == standby
    host.reboot()
    protected.wait_for_recovery(event_id)
    setting.written()
