# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm: drains a compute node, until its jobs have ended or are queued again (scontrol(1), squeue(1))."""

from __future__ import annotations

from collections.abc import Mapping

from ..system.clock import boot_id
from .common.declaration import CHOICE, NETWORK, TEXT, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import Work
from .slurm_node import node_name, read_jobs, read_node, run_slurm

_WAIT, _REQUEUE = "wait", "requeue"
# Slurm keeps the reason with the drain: it tells ours from that of a person, whatever has restarted in between.
_OURS = "Forewarn: "
_EVERY = 1.0  # seconds: one controller answers for thousands of nodes


def _prepare(work: Work) -> str:
    name = node_name(work)
    if not read_node(work, name).is_draining:  # a drain of somebody else keeps its reason
        reason = f"{_OURS}{work.event.get('EventType')} event {work.event.get('EventId')}"
        run_slurm(work, "scontrol", "update", f"nodename={name}", "state=drain", f"reason={reason}")
    for job in _to_requeue(work, read_jobs(work, name)):
        work.notes[job] = work.run("scontrol", "requeue", job, check=False).errors.strip()
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    name = node_name(work)
    node = read_node(work, name)
    work.remember(boot=boot_id(), slurmd=node.slurmd)
    if not node.is_draining:
        return absent(f"{name} is {node.state}, and not drained")
    jobs = read_jobs(work, name)
    if _to_requeue(work, jobs):
        return absent(f"there are jobs to queue again on {name}")
    if jobs:
        why = {job: f" ({work.notes[job]})" for job in jobs if work.notes.get(job)}
        shown = [f"{job} {state}{why.get(job, '')}" for job, state in jobs.items()]
        return incomplete(f"{len(jobs)} job{'' if len(jobs) == 1 else 's'} on {name}: {', '.join(shown[:5])}")
    node = read_node(work, name)  # again, and last: that there is no job means little where Slurm may start one
    if not node.is_draining:
        return absent(f"{name} is {node.state}, and not drained")
    # Where the last job has only just ended, its epilog still runs.
    return incomplete(f"{name} is {node.state}") if node.is_busy else complete(f"{name} is drained")


def _to_requeue(work: Work, jobs: Mapping[str, str]) -> list[str]:
    """Return the jobs to requeue, each once in a run: ``work.notes`` has Slurm's answers."""
    wanted = work.options["jobs"] == _REQUEUE
    return [job for job, state in jobs.items() if wanted and state != "COMPLETING" and job not in work.notes]


def _recover(work: Work) -> str:
    run_slurm(work, "scontrol", "update", f"nodename={node_name(work)}", "state=resume")
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    """Check that the node takes jobs; a node that this hook has drained must be resumed."""
    name = node_name(work)
    node = read_node(work, name)
    if node.is_draining:
        if not node.reason.startswith(_OURS):
            return complete(f"{name} is {node.state}, for: {node.reason}. It stays so")
        rebooted = work.memory.get("boot") not in (None, boot_id())
        # Until its slurmd has come back from a reboot, jobs that are sent there fail.
        if not node.is_responding or (rebooted and node.slurmd == work.memory.get("slurmd")):
            hint = "its slurmd has not registered again: see systemctl status slurmd"
            return incomplete(f"{name} is {node.state}, and {hint}")
        return absent(f"{name} is drained")
    if work.memory and (not node.is_responding or node.has("DOWN", "FAIL", "UNKNOWN")):
        return incomplete(f"{name} is {node.state}, for: {node.reason or 'no reason'}")
    return complete(f"{name} is {node.state}")


KIND = HookKind(
    name="slurm",
    summary="Drains a compute node of Slurm, and waits until its jobs have ended or are queued again.",
    prepares="It drains the node: Slurm starts no further job there. The reason names the event, for sinfo -R.",
    recovers="It resumes the node, once its slurmd has registered again after a reboot.",
    effect="It waits until the node is drained and nothing runs there, and after the event until the node takes jobs.",
    repeatable=(
        "A drained node is only waited for. What was drained for another reason than Forewarn's stays drained. A node"
        " that somebody resumes meanwhile is drained again."
    ),
    requirements="A job that was queued again starts after the cred_expire of Slurm's AuthInfo: two minutes.",
    tried_with="Slurm 22.05: jobs under a drain, a requeue and a power cut",
    options=(
        Option(
            *("node", TEXT, "The node, by Slurm's name. Left out: the one that slurm.conf has on this host."),
            example="${vm.name}",
            pattern=r"(?![Aa][Ll][Ll]$)[\w.-]+",
            wording="the name of one node",
        ),
        Option(
            *(
                "jobs",
                CHOICE,
                "wait: jobs end by themselves. requeue: those that can start again elsewhere.",
            ),
            example=_REQUEUE,
            default=_WAIT,
            choices=(_WAIT, _REQUEUE),
        ),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    poll_seconds=_EVERY,
    needs=lambda _options: Requirements(programs=("scontrol", "squeue"), sandbox=(NETWORK,)),
)
