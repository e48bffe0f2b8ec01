# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller of Slurm says of a node and of its jobs (scontrol(1), squeue(1))."""

from __future__ import annotations

import re
from typing import NamedTuple

from .work import HookFailedError, NotYetError, Work

# What asking again does not change. All else may pass: a controller that fails over, a munged that is not up yet.
_FINAL = re.compile("not found|invalid node name|permission denied|invalid user", re.IGNORECASE)
_STATE = re.compile(r"\sState=(\S+)")
_REASON = re.compile(r"\sReason=(.*) \[[^]\s]*@[^]\s]*\]")
_ALLOCATED = re.compile(r"\sCPUAlloc=[1-9]")
_SLURMD = re.compile(r"\sSlurmdStartTime=(\S+)")
# States in which work runs, or in which the controller does not know: of the others there are more in each version.
_WORKS = ("ALLOCATED", "ALLOC", "MIXED", "COMPLETING", "DRAINING", "FAILING", "UNKNOWN")


class SlurmNode(NamedTuple):
    """What the controller knows of a node. ``slurmd``: when that was started. ``allocated``: whether a CPU is."""

    state: str
    reason: str
    slurmd: str
    allocated: bool

    def has(self, *flags: str) -> bool:
        """Return whether one of some words is in the state, such as MAINT+DRAIN."""
        return not set(flags).isdisjoint(re.findall("[A-Z_]+", self.state))

    @property
    def draining(self) -> bool:
        """Whether Slurm starts no further job there."""
        return self.has("DRAIN", "DRAINING", "DRAINED")

    @property
    def works(self) -> bool:
        """Whether something runs there, as far as the controller knows."""
        return self.allocated or self.has(*_WORKS)

    @property
    def answers(self) -> bool:
        """Whether its slurmd answers the controller."""
        return "*" not in self.state and not self.has("NOT_RESPONDING")


def node_name(work: Work) -> str:
    """Return the option, or else the one node that slurm.conf has on this host."""
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
    """Return the state of each job on a node, by its id. Raises as ``ask``."""
    lines = ask(work, "squeue", "--noheader", f"--nodelist={name}", "--format=%A %T").splitlines()
    return dict(line.split()[:2] for line in lines if line.strip())


def read_node(work: Work, name: str) -> SlurmNode:
    """Return what the controller knows of a node now. Raises HookFailedError, NotYetError if it may answer later."""
    text = ask(work, "scontrol", "--oneliner", "show", "node", name)
    state, reason, slurmd = (pattern.search(text) for pattern in (_STATE, _REASON, _SLURMD))
    if state is None:
        raise NotYetError(f"scontrol shows no state of {name}: {text.strip()[:200]}")
    started = slurmd.group(1) if slurmd else ""
    return SlurmNode(state.group(1), reason.group(1) if reason else "", started, _ALLOCATED.search(text) is not None)


def ask(work: Work, *words: str) -> str:
    """Return what a program of Slurm writes. Raises HookFailedError, or NotYetError where waiting may help."""
    done = work.run(*words, check=False)
    if done.code == 0:
        return done.output
    raise (HookFailedError if _FINAL.search(done.said) else NotYetError)(f"{words[0]} failed: {done.said}")
