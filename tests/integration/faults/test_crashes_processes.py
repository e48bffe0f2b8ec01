# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` is killed, and started again: judged by what its hooks wrote, by the service, and by its history."""

from __future__ import annotations

import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.errors import InputError
from forewarn.runner.event_record import EventRecord
from forewarn.runner.journal.reader import JournalReader
from tools.sites.runner_process import DRAINS, Host, Start
from tools.sites.waiting import wait_until
from tools.suite.sizes import SIZE, seeds

pytestmark = pytest.mark.emulated(gone_after=2.5)

# Writes down what it does, and waits for a file that lets it succeed; not for ever, should the test have failed.
# Nobody reads its output once the runner was killed: the shell's note that SIGTERM ended sleep would end it.
HOOK = """
cd "${0%/*}" || exit 1
exec > output 2>&1
say() { echo "$FOREWARN_PHASE $FOREWARN_ATTEMPT $1" >> said; }
trap 'say ended; exit 1' TERM
say begins
for _ in $(/usr/bin/seq 600); do
  if [ -e may-$FOREWARN_PHASE ]; then say succeeds; exit 0; fi
  /bin/sleep 0.05
done
exit 1
"""


class Vm(Host):
    """A VM on which runners are killed; its service lists one event."""

    def allow(self, phase: str) -> None:
        (self.directory / f"may-{phase}").touch()

    def gets(self) -> int:
        return sum(entry["method"] == "GET" for entry in self.emulator.requests())

    def records(self) -> list[EventRecord]:
        """Return what the journal has on the disk now."""
        try:
            return [EventRecord.of(row) for row in JournalReader(str(self.state)).records()]
        except InputError:  # there is no journal yet
            return []

    def runs(self, phase: str) -> bool:
        """Return whether a hook's process is in the journal, so that the next runner can end it."""
        return any(run.pid is not None for record in self.records() for run in record.plan.of_phase(phase))

    def is_over(self) -> bool:
        return [record.state in ("done", "cancelled") for record in self.records()] == [True]

    def only_event(self) -> dict[str, Any]:
        """Return what ``forewarn history`` reports of the event."""
        (event,) = self.history().values()
        return event


def attempts(history: dict[str, Any], kind: str) -> list[str]:
    """Return the hooks in the history, in the words that the hook writes."""
    fields = [entry["fields"] for entry in history["entries"] if entry["kind"] == kind]
    return [f"{field['phase']} {field['attempt']}" for field in fields]


def grown_or_over(vm: Vm, enough: int) -> bool:
    return entries(vm) >= enough or vm.is_over()


@pytest.fixture
def vm(tmp_path: Path, emulator: EmulatorClient, start: Start) -> Vm:
    return Vm(tmp_path, emulator, start, DRAINS, HOOK)


@pytest.mark.vm_python
def test_in_the_middle_of_a_drain(vm: Vm) -> None:
    first = vm.run()
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    wait_until(lambda: vm.runs("prepare"))
    wait_until(lambda: vm.said() == ["prepare 1 begins"])
    first.stop(signal.SIGKILL)

    second = vm.run()
    wait_until(lambda: "prepare 2 begins" in vm.said())
    assert vm.said() == ["prepare 1 begins", "prepare 1 ended", "prepare 2 begins"]
    assert len(vm.approvals()) == 0
    vm.allow("prepare")
    vm.allow("recover")
    second.wait_for("approved")
    wait_until(vm.is_over)
    assert vm.said()[3:] == ["prepare 2 succeeds", "recover 1 begins", "recover 1 succeeds"]
    assert len(vm.approvals()) == 1
    history = vm.only_event()
    assert (history["outcome"], history["approvals"]) == ("finished", 1)
    assert attempts(history, "hook-started") == ["prepare 1", "prepare 2", "recover 1"]
    assert attempts(history, "hook-ended") == ["prepare 2", "recover 1"]
    assert "hook-left-over" in [entry["kind"] for entry in history["entries"]]


@pytest.mark.parametrize("moment", ["the service has it", "the log has it"])
def test_right_after_the_approval(vm: Vm, moment: str) -> None:
    vm.allow("prepare")
    vm.allow("recover")
    first = vm.run()
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300, impact_seconds=0)
    if moment == "the log has it":
        first.wait_for("approved")
    else:
        wait_until(lambda: len(vm.approvals()) == 1, pause=0.001)
    first.stop(signal.SIGKILL)
    (record,) = vm.records()

    vm.run().wait_for("resumed", state="approved" if record.approvals else "prepared")
    seen = vm.gets()
    wait_until(lambda: vm.gets() >= seen + 3)
    assert len(vm.approvals()) == (1 if record.approvals else 2), "only what is not known to be taken is sent again"
    vm.emulator.start(event)
    wait_until(vm.is_over)
    assert vm.said() == ["prepare 1 begins", "prepare 1 succeeds", "recover 1 begins", "recover 1 succeeds"]
    history = vm.only_event()
    assert (history["outcome"], history["approvals"]) == ("finished", 1)


@pytest.mark.parametrize("seed", seeds(SIZE.killed_runners))
def test_killed_runners_repeat_no_finished_hook(vm: Vm, seed: int) -> None:
    """A runner is killed again and again, each time as soon as the journal has grown."""
    chance = random.Random(seed)
    vm.allow("prepare")
    vm.allow("recover")
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    for _ in range(7):
        grown = entries(vm) + chance.randint(2, 7)
        runner = vm.run()
        wait_until(partial(grown_or_over, vm, grown), pause=0.002)
        runner.stop(signal.SIGKILL)
    vm.run()
    wait_until(vm.is_over)
    history = vm.only_event()
    kinds = [entry["kind"] for entry in history["entries"]]
    prepared = next(entry for entry in history["entries"] if entry["kind"] == "hook-ended")
    assert (prepared["fields"]["phase"], prepared["fields"]["result"]) == ("prepare", "succeeded")
    assert kinds.index("approval-sending") > kinds.index("hook-ended")
    started, ended = attempts(history, "hook-started"), attempts(history, "hook-ended")
    assert started == sorted(set(started)), "each attempt has a number of its own, and prepare comes before recover"
    assert [name.split()[0] for name in ended] == ["prepare", "recover"], "what is known to have ended runs no more"
    assert 1 <= len(vm.approvals()) <= kinds.count("approval-sending")


def entries(vm: Vm) -> int:
    """Return how many entries the journal has."""
    try:
        return sum(1 for _ in JournalReader(str(vm.state)).entries())
    except InputError:
        return 0
