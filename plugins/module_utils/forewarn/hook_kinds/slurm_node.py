# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node and its jobs as Slurm's controller knows them (scontrol(1), squeue(1))."""

from __future__ import annotations

import re
from typing import NamedTuple

from .common.work import HookFailedError, NotReadyError, Work

# What asking again does not change. All else may pass: a controller that fails over, a munged that is not up yet.
_FINAL = re.compile("not found|invalid node name|permission denied|invalid user", re.IGNORECASE)
_STATE = re.compile(r"\sState=(\S+)")
_REASON = re.compile(r"\sReason=(.*) \[[^]\s]*@[^]\s]*\]")
_ALLOCATED = re.compile(r"\sCPUAlloc=[1-9]")
_SLURMD = re.compile(r"\sSlurmdStartTime=(\S+)")
# States in which work runs, or in which the controller does not know: of the others there are more in each version.
_BUSY = ("ALLOCATED", "ALLOC", "MIXED", "COMPLETING", "DRAINING", "FAILING", "UNKNOWN")


class SlurmNode(NamedTuple):
    """What the controller knows of a node.

    ``slurmd`` is the start time of its slurmd; ``allocated``: a CPU is in use.
    """

    state: str
    reason: str
    slurmd: str
    allocated: bool

    def has(self, *flags: str) -> bool:
        """Return whether the state, such as MAINT+DRAIN, has one of these flags."""
        return not set(flags).isdisjoint(re.findall("[A-Z_]+", self.state))

    @property
    def is_draining(self) -> bool:
        """Whether Slurm starts no further job on the node."""
        return self.has("DRAIN", "DRAINING", "DRAINED")

    @property
    def is_busy(self) -> bool:
        """Whether a job runs on the node, or may run, as far as the controller knows."""
        return self.allocated or self.has(*_BUSY)

    @property
    def is_responding(self) -> bool:
        """Whether its slurmd answers the controller."""
        return "*" not in self.state and not self.has("NOT_RESPONDING")


def node_name(work: Work) -> str:
    """Return the option ``node``, or else the node of this host in slurm.conf. Raises HookFailedError without one."""
    if "node" in work.options:
        return str(work.options["node"])
    if "name" not in work.notes:
        names = work.run("scontrol", "show", "aliases").output.split()
        if len(names) != 1:
            found = f"{len(names)} nodes ({' '.join(names)})" if names else "no node"
            raise HookFailedError(f"slurm.conf has {found} on this host: set the option node")
        work.notes["name"] = names[0]
    return str(work.notes["name"])


def read_jobs(work: Work, name: str) -> dict[str, str]:
    """Return the state of each job on a node, by its id. Raises as ``run_slurm``."""
    lines = run_slurm(work, "squeue", "--noheader", f"--nodelist={name}", "--format=%A %T").splitlines()
    return dict(line.split()[:2] for line in lines if line.strip())


def read_node(work: Work, name: str) -> SlurmNode:
    """Return what the controller knows of a node now. Raises HookFailedError, NotReadyError if it may answer later."""
    text = run_slurm(work, "scontrol", "--oneliner", "show", "node", name)
    state, reason, slurmd = (pattern.search(text) for pattern in (_STATE, _REASON, _SLURMD))
    if state is None:
        raise NotReadyError(f"scontrol shows no state of {name}: {text.strip()[:200]}")
    started = slurmd.group(1) if slurmd else ""
    return SlurmNode(state.group(1), reason.group(1) if reason else "", started, _ALLOCATED.search(text) is not None)


def run_slurm(work: Work, *words: str) -> str:
    """Return what a program of Slurm writes. Raises HookFailedError, or NotReadyError where waiting may help."""
    done = work.run(*words, check=False)
    if done.code == 0:
        return done.output
    raise (HookFailedError if _FINAL.search(done.message) else NotReadyError)(f"{words[0]} failed: {done.message}")
