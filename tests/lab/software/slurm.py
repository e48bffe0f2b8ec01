# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm cluster on hosts of a lab, with the units of Debian: a controller, and nodes that run jobs."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from tools.sites.waiting import PATIENCE_SECONDS

from ..hosts import Host

# A node is down after 10 s of silence, not after Slurm's five minutes.
# A requeued job starts again once its first credential has expired: two minutes by default, which no test waits for.
_CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={controller}
AuthInfo=cred_expire=5
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
SlurmdTimeout=10
SlurmdParameters=config_overrides
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2
NodeName={nodes} CPUs=2
PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
"""
# What a job leaves on the host that it runs on: a line when it begins, and one when it has done all its work.
_JOB = """\
#!/bin/sh
log() {{ echo "$SLURM_JOB_ID $1 $(date +%s.%N)" >> /var/log/jobs; }}
log begin
sleep {seconds}
log end
"""
_LOADER = """\
#!/bin/sh
while [ ! -e /run/enough ]; do
  sbatch --parsable --output=/dev/null /srv/short >> /var/log/submitted 2>> /var/log/refused
  sleep 1
done
"""


class JobHistory(NamedTuple):
    """What became of jobs: how often each has ``begun`` and ``ended``, and the ``longest`` time between, in seconds."""

    submitted: list[str]
    begun: dict[str, int]
    ended: dict[str, int]
    longest: float

    @property
    def interrupted(self) -> list[str]:
        """The jobs that had to begin more than once."""
        return [job for job, count in self.begun.items() if count > 1]


class Cluster:
    """Slurm on hosts that are up: ``controller`` submits the jobs, too."""

    def __init__(self, controller: Host, nodes: list[Host]) -> None:
        self.controller = controller
        self.nodes = nodes

    def start(self) -> None:
        """Write the configuration, and start munge and Slurm."""
        names = ",".join(node.host_name for node in self.nodes)
        text = _CONFIGURATION.format(controller=self.controller.host_name, nodes=names)
        key = os.urandom(128)
        for host in (self.controller, *self.nodes):
            host.write(key, "/etc/munge/munge.key", 0o600)
            host.write(text, "/etc/slurm/slurm.conf")
            # A host of the lab may have both versions of cgroups, of which slurmd would take neither.
            host.write("CgroupPlugin=cgroup/v1\n", "/etc/slurm/cgroup.conf")
            host.write("", "/var/log/jobs")
            host.ssh("chown munge: /etc/munge/munge.key && systemctl enable --quiet --now munge")
        self.controller.ssh(
            "install --directory --owner=slurm /var/lib/slurm/slurmctld && systemctl enable --quiet --now slurmctld"
        )
        for node in self.nodes:
            node.ssh("install --directory /var/lib/slurm/slurmd && systemctl enable --quiet --now slurmd")
        for node in self.nodes:
            self.wait_for_state(node, "IDLE")

    def state(self, node: Host) -> str:
        """Return the state of a node, as scontrol writes it."""
        found = re.search(r" State=(\S+)", self.shown(node))
        return found.group(1) if found else ""

    def registered(self, node: Host) -> str:
        """Return when the slurmd was started that has registered last for a node."""
        return self.shown(node).partition(" SlurmdStartTime=")[2].split(" ")[0]

    def shown(self, node: Host) -> str:
        """Return what scontrol shows of a node."""
        return self.controller.ssh(f"scontrol --oneliner show node {node.host_name}", check=False).stdout

    def wait_for_state(self, node: Host, *states: str, timeout: float = PATIENCE_SECONDS) -> None:
        """Wait until a node is in one of some states."""
        self.controller.wait_for(lambda: self.state(node) in states, timeout)

    def submit(self, seconds: float, *options: str) -> str:
        """Submit a job; return its number."""
        self.controller.write(_JOB.format(seconds=seconds), "/srv/job", 0o755)
        return self.controller.ssh(f"sbatch --parsable --output=/dev/null {' '.join(options)} /srv/job").stdout.strip()

    def job_state(self, job: str) -> str:
        """Return the state of a job and its node: RUNNING n1."""
        return self.controller.ssh(f"squeue --noheader --jobs={job} --format='%T %N'", check=False).stdout.strip()

    def begin_load(self, seconds: float = 3) -> None:
        """Submit a short job a second, until ``end_load``."""
        for host in (self.controller, *self.nodes):
            host.ssh("rm -f /run/enough /var/log/submitted /var/log/refused && : > /var/log/jobs")
        self.controller.write(_JOB.format(seconds=seconds), "/srv/short", 0o755)
        self.controller.write(_LOADER, "/srv/loader", 0o755)
        self.controller.ssh("systemd-run --quiet --collect --unit=loader /srv/loader")

    def end_load(self) -> JobHistory:
        """Submit no more jobs, wait until none is left, and return what became of them."""
        self.controller.ssh("touch /run/enough")
        self.controller.wait_for(
            lambda: self.controller.ssh("systemctl is-active loader", check=False).stdout.strip() != "active"
        )
        self.controller.wait_for(lambda: not self.controller.ssh("squeue --noheader").stdout.strip())
        assert self.controller.read("/var/log/refused") == ""
        return self.worked(self.controller.read("/var/log/submitted").split())

    def worked(self, submitted: list[str]) -> JobHistory:
        """Return what became of jobs, by what they have written on all nodes."""
        begun: dict[str, int] = dict.fromkeys(submitted, 0)
        ended: dict[str, int] = dict.fromkeys(submitted, 0)
        times: dict[str, list[float]] = {job: [] for job in submitted}
        for node in self.nodes:
            for line in node.read("/var/log/jobs").splitlines():
                job, what, time = line.split()
                if job in times:
                    (begun if what == "begin" else ended)[job] += 1
                    times[job].append(float(time))
        return JobHistory(
            submitted, begun, ended, max((max(found) - min(found) for found in times.values() if found), default=0.0)
        )
