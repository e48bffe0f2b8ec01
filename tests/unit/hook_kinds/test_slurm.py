# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind slurm: the states of a node, which each version of Slurm writes in another way."""

from __future__ import annotations

from itertools import combinations

import pytest
from forewarn.hook_kinds.common.work import NotReadyError, ProgramResult, Work
from forewarn.hook_kinds.slurm_node import SlurmNode, read_node

# scontrol(1), of 17.11 to 24.11: up to 20.11 MAINT and RESERVED stand for IDLE.
IDLE = ("IDLE", "MAINT", "RESERVED", "PLANNED", "DOWN", "DOWN*", "IDLE*", "FUTURE", "MAINT*", "SOMETHING_NEW")
BUSY = ("ALLOCATED", "MIXED", "ALLOCATED*", "MIXED+COMPLETING", "IDLE+COMPLETING", "UNKNOWN", "MAINT+COMPLETING")
FLAGS = ("CLOUD", "MAINTENANCE", "NOT_RESPONDING", "RESERVED", "POWERED_DOWN", "INVALID_REG")


def node(state: str, monkeypatch: pytest.MonkeyPatch, more: str = "CPUAlloc=0 CPUTot=4") -> SlurmNode:
    text = f"NodeName=n1 Arch=x86_64 {more}\n   State={state} ThreadsPerCore=2 Reason=Drain it [root@2026-01-01]\n"
    monkeypatch.setattr(Work, "run", lambda *_words, **_options: ProgramResult(0, text, ""))
    return read_node(Work({}, {}, 9.0), "n1")


def test_node_works_only_in_busy_states(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in range(3):
        for flags in combinations(FLAGS, count):
            for drain in ((), ("DRAIN",)):
                for state in (*IDLE, *BUSY):
                    found = node("+".join((state, *flags, *drain)), monkeypatch)
                    assert (found.is_draining, found.is_busy) == (bool(drain), state in BUSY), found.state


def test_node_with_allocated_cpus_works_in_any_state(monkeypatch: pytest.MonkeyPatch) -> None:
    assert node("IDLE+DRAIN", monkeypatch, "CPUAlloc=2 CPUTot=4").is_busy
    assert not node("IDLE+DRAIN", monkeypatch, "CoresPerSocket=2").is_busy


def test_a_node_without_a_state_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "run", lambda *_words, **_options: ProgramResult(0, "slurm_load_node", ""))
    with pytest.raises(NotReadyError, match="scontrol shows no state of n1: slurm_load_node"):
        read_node(Work({}, {}, 9.0), "n1")
