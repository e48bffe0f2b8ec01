# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm with the kind of hook slurm: what becomes of jobs when a node is rebooted, with a warning and without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ..hosts import Host
from ..software.slurm import Cluster, JobHistory
from .cluster_setting import Setting, protected_cluster
from .figures import record
from .whole_event import history, power_cut

_HOOKS = {"Reboot": "slurm: {timeout: 2m}", "Redeploy": "slurm: {node: n1, jobs: requeue, timeout: 2m}"}


@pytest.fixture(scope="module")
def setting(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting[Cluster]]:
    directory = tmp_path_factory.mktemp("control")
    with protected_cluster(Cluster, ("login", "n1", "n2"), _HOOKS, directory, installed_collection) as started:
        started.protected.moving = frozenset({"unix /var/lib/slurm/slurmd/n#_#.#"})  # of a job, which ends
        yield started


def wait_for_job(cluster: Cluster, node: Host) -> None:
    """Wait until a job runs on a node."""
    running = f"squeue --noheader --nodelist={node.host_name} --states=running"
    cluster.controller.wait_for(lambda: cluster.controller.ssh(running).stdout.strip())


def wait_until_running(cluster: Cluster, job: str) -> None:
    """Wait until a job runs on n1."""
    cluster.controller.wait_for(lambda: cluster.job_state(job) == "RUNNING n1")


class Orderly(NamedTuple):
    """A reboot by an event: what became of the jobs, and the seconds until the node was drained."""

    worked: JobHistory
    seconds: float


@pytest.fixture(scope="module")
def orderly(setting: Setting[Cluster]) -> Orderly:
    """Reboot a node by an event, under load."""
    cluster, node = setting.cluster, setting.node
    cluster.begin_load()
    wait_for_job(cluster, node)
    seconds = setting.protected.reboot()
    assert cluster.state(node) in ("IDLE", "MIXED", "ALLOCATED")
    wait_for_job(cluster, node)
    return Orderly(cluster.end_load(), seconds)


def test_jobs_end_before_the_reboot(orderly: Orderly) -> None:
    worked = orderly.worked
    assert set(worked.begun.values()) == set(worked.ended.values()) == {1}
    record("slurm", "forewarn", {**figures(worked), "seconds_to_drained": round(orderly.seconds, 1)})


@pytest.mark.full
def test_without_a_warning_jobs_are_interrupted(setting: Setting[Cluster], orderly: Orderly) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.begin_load()
    wait_for_job(cluster, node)
    # A VM takes longer to boot than a host of the lab, and Slurm has time to notice.
    power_cut(node, lambda: cluster.controller.wait_for(lambda: "DOWN" in cluster.state(node)))
    # By default, Slurm does not trust a node that was down: somebody has to come and resume it.
    cluster.wait_for_state(node, "DOWN")
    cluster.controller.ssh(f"scontrol update nodename={node.host_name} state=resume")
    wait_for_job(cluster, node)
    cut = cluster.end_load()
    assert cut.interrupted
    assert orderly.worked.longest < cut.longest
    record("slurm", "unannounced", figures(cut))


def figures(worked: JobHistory) -> dict[str, float]:
    return {
        "jobs": len(worked.submitted),
        "jobs_interrupted": len(worked.interrupted),
        "longest_job_seconds": round(worked.longest, 1),
    }


@pytest.mark.full
def test_drain_takes_as_long_as_scontrol(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.wait_for_state(node, "IDLE")
    began = time.monotonic()
    node.ssh('scontrol update nodename=n1 state=drain reason=test && [ -z "$(squeue --noheader --nodelist=n1)" ]')
    by_hand = time.monotonic() - began
    node.ssh("scontrol update nodename=n1 state=resume")
    event_id = setting.protected.announce()
    setting.protected.wait_for_start(event_id)
    prepared = history(node, event_id)["hooks"][0]
    setting.protected.wait_for_recovery(event_id)
    record("slurm", "detection to drained", {"by_hand": round(by_hand, 2), "forewarn": prepared["seconds"]})


@pytest.mark.full
def test_long_jobs_are_requeued_and_others_awaited(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.wait_for_state(node, "IDLE")
    long = cluster.submit(600, "--nodelist=n1")
    stubborn = cluster.submit(8, "--nodelist=n1", "--no-requeue")
    for job in (long, stubborn):
        wait_until_running(cluster, job)
    event_id = setting.protected.announce("Redeploy")
    node.wait_for(lambda: "Forewarn: Redeploy event" in cluster.shown(node))
    assert event_id in cluster.shown(node)
    setting.protected.wait_for_start(event_id)
    assert cluster.job_state(stubborn) == ""
    assert cluster.state(node) == "IDLE+DRAIN"
    node.reboot()
    setting.protected.wait_for_recovery(event_id)
    cluster.controller.wait_for(lambda: cluster.job_state(long).startswith("RUNNING"))
    worked = cluster.worked([long, stubborn])
    assert worked.ended == {long: 0, stubborn: 1}
    assert worked.begun == {long: 2, stubborn: 1}
    cluster.controller.ssh(f"scancel {long}")
    cluster.controller.wait_for(lambda: not cluster.job_state(long))


def test_what_a_person_has_drained_stays_drained(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.controller.ssh("scontrol update nodename=n1 state=drain reason='disk [sda] is bad'")
    before = cluster.registered(node)
    setting.protected.reboot()
    cluster.controller.wait_for(lambda: cluster.registered(node) != before)
    assert "DRAIN" in cluster.state(node)
    assert "Reason=disk [sda] is bad" in cluster.shown(node)
    cluster.controller.ssh("scontrol update nodename=n1 state=resume")


@pytest.mark.full
def test_killed_runner_drains_again(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.wait_for_state(node, "IDLE")
    job = cluster.submit(6, "--nodelist=n1")
    wait_until_running(cluster, job)
    event_id = setting.protected.announce()
    cluster.wait_for_state(node, "MIXED+DRAIN", "ALLOCATED+DRAIN")
    node.ssh("systemctl kill --signal=KILL forewarn")
    setting.protected.wait_for_start(event_id)
    assert cluster.worked([job]).ended == {job: 1}
    assert setting.protected.wait_for_recovery(event_id)["hooks"][0]["attempts"] == 2
    cluster.wait_for_state(node, "IDLE")


@pytest.mark.full
def test_node_resumed_by_an_operator_is_drained_again(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    cluster.wait_for_state(node, "IDLE")
    job = cluster.submit(6, "--nodelist=n1")
    wait_until_running(cluster, job)
    event_id = setting.protected.announce()
    cluster.wait_for_state(node, "MIXED+DRAIN", "ALLOCATED+DRAIN")
    cluster.controller.ssh("scontrol update nodename=n1 state=resume")
    setting.protected.wait_for_start(event_id)
    assert cluster.state(node) == "IDLE+DRAIN"
    assert cluster.worked([job]).ended == {job: 1}
    setting.protected.wait_for_recovery(event_id)
    cluster.wait_for_state(node, "IDLE")


@pytest.mark.full
def test_node_returns_after_the_controller_was_away(setting: Setting[Cluster]) -> None:
    cluster, node = setting.cluster, setting.node
    event_id = setting.protected.announce()
    setting.protected.wait_for_start(event_id)
    cluster.controller.ssh("systemctl stop slurmctld")
    node.reboot()
    setting.protected.finish(event_id)
    started = f"journalctl -u forewarn --grep='hook-started event_id={event_id} phase=recover'"
    node.wait_for(lambda: node.ssh(started, check=False).returncode == 0)
    cluster.controller.ssh("systemctl start slurmctld")
    setting.protected.wait_for_recovery(event_id)
    cluster.wait_for_state(node, "IDLE")


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(setting: Setting[Cluster]) -> None:
    setting.protected.rehearse("slurm-node")
    assert "DRAIN" not in setting.cluster.state(setting.node)
