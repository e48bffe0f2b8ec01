# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm: drains a compute node, until its jobs have ended or are queued again (scontrol(1), squeue(1))."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from .declaration import CHOICE, NETWORK, TEXT, HookKind, Option, Requirements
from .work import HookFailedError, NotYetError, Work

_WAIT, _REQUEUE = "wait", "requeue"
# Slurm keeps the reason with the drain: it tells ours from that of a person, whatever has restarted in between.
_OURS = "Forewarn: "
_EVERY = 1.0  # seconds: one controller answers for thousands of nodes
# What asking again does not change. All else may pass: a controller that fails over, a munged that is not up yet.
_FINAL = re.compile("not found|invalid node name|permission denied|invalid user", re.IGNORECASE)
_STATE = re.compile(r"\sState=(\S+)")
_REASON = re.compile(r"\sReason=(.*) \[[^]\s]*@[^]\s]*\]")
_SLURMD = re.compile(r"\sSlurmdStartTime=(\S+)")


class _Node(NamedTuple):
    """What the controller knows of a node. ``slurmd`` is when its slurmd was started."""

    state: str
    reason: str
    slurmd: str

    def has(self, *flags: str) -> bool:
        return not set(flags).isdisjoint(re.findall("[A-Z_]+", self.state))

    @property
    def answers(self) -> bool:
        return "*" not in self.state and not self.has("NOT_RESPONDING")


def _prepare(work: Work) -> None:
    name = _name(work)
    work.wait(lambda: _not_draining(work, name), _EVERY)
    refused: dict[str, str] = {}
    work.wait(lambda: _busy(work, name, refused), _EVERY)
    work.say(f"{name} is drained")


def _recover(work: Work) -> None:
    name = _name(work)
    work.wait(lambda: _out_of_service(work, name), _EVERY)
    node = _node(work, name)
    why = f", for: {node.reason}. It stays so" if node.has("DRAIN") else ""
    work.say(f"{name} is {node.state}{why}")


def _not_draining(work: Work, name: str) -> str:
    node = _node(work, name)
    work.remember(boot=_boot(), slurmd=node.slurmd)
    if not node.has("DRAIN"):
        reason = f"{_OURS}{work.event.get('EventType')} event {work.event.get('EventId')}"
        _ask(work, "scontrol", "update", f"nodename={name}", "state=drain", f"reason={reason}")
    return ""


def _busy(work: Work, name: str, refused: dict[str, str]) -> str:
    """Return what still runs on a node; each job that can be queued again is, once. ``refused``: job -> why."""
    lines = _ask(work, "squeue", "--noheader", f"--nodelist={name}", "--format=%A %T").splitlines()
    jobs = dict(line.split()[:2] for line in lines if line.strip())
    for job, state in jobs.items() if work.options["jobs"] == _REQUEUE else ():
        if state != "COMPLETING" and job not in refused:
            refused[job] = work.run("scontrol", "requeue", job, check=False).errors.strip()
    if jobs:
        shown = [f"{job} {state}{f' ({refused[job]})' if refused.get(job) else ''}" for job, state in jobs.items()]
        return f"{len(jobs)} job{'' if len(jobs) == 1 else 's'} on {name}: {', '.join(shown[:5])}"
    node = _node(work, name)
    # Where the last job has only just ended, its epilog still runs.
    return "" if node.has("IDLE", "DOWN") and not node.has("COMPLETING") else f"{name} is {node.state}"


def _out_of_service(work: Work, name: str) -> str:
    """Return why a node takes no jobs; what this hook has drained is resumed."""
    node = _node(work, name)
    if node.has("DRAIN"):
        if not node.reason.startswith(_OURS):
            return ""
        rebooted = work.memory.get("boot") not in (None, _boot())
        # Until its slurmd has come back from a reboot, jobs that are sent there fail.
        if not node.answers or (rebooted and node.slurmd == work.memory.get("slurmd")):
            return f"{name} is {node.state}, and its slurmd has not registered again: see systemctl status slurmd"
        _ask(work, "scontrol", "update", f"nodename={name}", "state=resume")
        return f"{name} is being resumed"
    good = not work.memory or (node.answers and not node.has("DOWN", "FAIL", "UNKNOWN"))
    return "" if good else f"{name} is {node.state}, for: {node.reason or 'no reason'}"


def _name(work: Work) -> str:
    """Return the option, or else the one node that slurm.conf has on this host."""
    if "node" in work.options:
        return str(work.options["node"])
    names = work.run("scontrol", "show", "aliases").output.split()
    if len(names) != 1:
        found = f"{len(names)} nodes ({' '.join(names)})" if names else "no node"
        raise HookFailedError(f"slurm.conf has {found} on this host: set the option node")
    return names[0]


def _node(work: Work, name: str) -> _Node:
    text = _ask(work, "scontrol", "--oneliner", "show", "node", name)
    state, reason, slurmd = (pattern.search(text) for pattern in (_STATE, _REASON, _SLURMD))
    if state is None:
        raise NotYetError(f"scontrol shows no state of {name}: {text.strip()[:200]}")
    return _Node(state.group(1), reason.group(1) if reason else "", slurmd.group(1) if slurmd else "")


def _ask(work: Work, *words: str) -> str:
    done = work.run(*words, check=False)
    if done.code == 0:
        return done.output
    raise (HookFailedError if _FINAL.search(done.said) else NotYetError)(f"{words[0]} failed: {done.said}")


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


KIND = HookKind(
    name="slurm",
    summary="Drains a compute node of Slurm, and waits until its jobs have ended or are queued again.",
    prepares="It drains the node: Slurm starts no further job there. The reason names the event, for sinfo -R.",
    recovers="It resumes the node, once its slurmd has registered again after a reboot.",
    effect="It waits until no job is left and the node is idle, and after the event until the node takes jobs.",
    repeatable="A drained node is only waited for. What was drained for another reason than Forewarn's stays drained.",
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
    recover=_recover,
    needs=lambda _options: Requirements(programs=("scontrol", "squeue"), sandbox=(NETWORK,)),
)
