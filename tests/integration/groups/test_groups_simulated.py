# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real runners of a group in virtual time, with faults of the service, the store, hooks and VMs: deterministic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forewarn.policy.decision import Decision
from forewarn.runner.groups import (
    cached_document,
    documents,
    intent,
    lineage,
    member,
    obligations,
    semaphore,
    store_tasks,
)
from forewarn.runner.groups.barrier import Barrier
from forewarn.runner.groups.coordinator import Coordinator
from forewarn.runner.groups.intent import Need
from forewarn.runner.groups.semaphore import RELEASE
from forewarn.runner.groups.settings import GroupSettings
from forewarn.runner.groups.store import StoreFault
from tools.suite.sizes import SIZE, seeds
from tools.worlds.group_scenario import Scenario
from tools.worlds.group_world import GROUP
from tools.worlds.timed_runner import memory

Defect = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture
def directory() -> Iterator[Path]:
    with memory() as made:
        yield made


@pytest.mark.parametrize("seed", seeds(SIZE.group_stories))
def test_whatever_fails_no_promise_is_broken(seed: int, directory: Path) -> None:
    assert Scenario(seed, directory, 3 + seed % 6, faults=True).play() == []


@pytest.mark.parametrize("seed", seeds(max(1, SIZE.group_stories // 4)))
def test_if_nothing_fails_every_event_is_approved(seed: int, directory: Path) -> None:
    assert Scenario(seed, directory, 3 + seed % 6, faults=False).play() == []


@pytest.mark.full
@pytest.mark.parametrize("seed", seeds(max(1, SIZE.group_stories // 12)))
def test_the_same_holds_for_fifty_vms(seed: int, directory: Path) -> None:
    assert Scenario(seed, directory, 50, faults=True).play() == []


def no_slots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "no_slot", lambda *_arguments, **_options: None)


def no_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cached_document, "why_not_ready", lambda *_arguments: None)


def stale_readiness(patch: pytest.MonkeyPatch) -> None:
    """What was said of another content counts."""
    patch.setattr(
        Barrier, "missing", lambda self, _content, names: [name for name in names if name not in self.members]
    )
    patch.setattr(Barrier, "closed_for", lambda self, _content: self.closed)


def free_when_gone(patch: pytest.MonkeyPatch) -> None:
    """A slot is given back when the event has left the list, before the recovery."""
    patch.setattr(store_tasks, "RECOVER", RELEASE)


def free_at_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_resume", _free_all)


def _free_all(self: Coordinator) -> None:
    found = obligations.read(self._directory)
    key = documents.semaphore_key(GROUP)
    with contextlib.suppress(StoreFault):
        version = self._store.read(key)
        if found is not None and version.value is not None:
            document = semaphore.decode(version.value)
            self._store.swap(
                key, semaphore.encode(semaphore.force_release(document, found.vm, "", "", "")), version.version
            )


def forced_approves(patch: pytest.MonkeyPatch) -> None:
    """What was prepared without a slot is approved."""
    patch.setattr(semaphore.Slot, "granted", True)


def for_itself_only(patch: pytest.MonkeyPatch) -> None:
    """A VM takes its own slot, not those of all VMs of the event."""
    real = intent.need_of

    def need_of(decision: Decision, vm_name: str, settings: GroupSettings) -> Need | None:
        need = real(decision, vm_name, settings)
        return None if need is None else need._replace(names=(vm_name.lower(),), impossible="")

    patch.setattr(member, "need_of", need_of)


def forgets_what_it_owes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "write", lambda *_arguments: None)


def prepares_while_ready(patch: pytest.MonkeyPatch) -> None:
    """A VM prepares again though others may still see it as ready: for an event that changes, and changes back.

    That nobody trusts an answer that is older than what it has seen hides this, so the others remember nothing.
    """
    patch.setattr(Coordinator, "may_say_ready", lambda *_arguments: False)
    patch.setattr(lineage.LineageMemory, "read", lambda _memory, value, _where: lineage.lineage_of(value))


# Of each defect, a story that shows it: seed and VMs. A change of the runner makes other stories of them, so that the
# search goes on if need be.
DEFECTS: dict[Defect, tuple[int, int]] = {
    no_slots: (3, 3),
    no_barrier: (3, 3),
    stale_readiness: (11, 3),
    free_when_gone: (22, 3),
    free_at_restart: (0, 3),
    forced_approves: (4, 3),
    for_itself_only: (14, 3),
    forgets_what_it_owes: (11, 3),
    prepares_while_ready: (20002, 7),  # an event that changes while a VM is cut off, and changes back, is rare
}
STORIES = tuple((seed, 3 + seed % 3) for seed in range(40))


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
@pytest.mark.in_turn(4)
def test_a_runner_with_a_defect_is_found(defect: Defect) -> None:
    for seed, vms in (DEFECTS[defect], *STORIES):
        with memory() as directory, pytest.MonkeyPatch.context() as patch:
            defect(patch)
            if Scenario(seed, directory, vms, faults=True).play():
                return
    pytest.fail(f"{1 + len(STORIES)} stories were played, and the judge has found nothing")


@pytest.mark.in_turn(4)
def test_many_events_at_once_in_a_large_group(directory: Path) -> None:
    """Only the VMs of events ask the store."""
    scenario = Scenario(1, directory, SIZE.group_members, faults=False, seconds=0.0)
    events = min(20, SIZE.group_members // 3)
    busy = scenario.large(events=events)
    assert scenario.play() == []
    asking = {vm for _at, vm in scenario.world.requests}
    requests = len(scenario.world.requests)
    print(f"{len(busy)} VMs of {SIZE.group_members} in {events} events: {requests} requests to the store")
    assert asking <= busy
