# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A damaged journal on Windows is noticed, and what it may have known is not done again."""

from __future__ import annotations

import signal

import pytest
from tools.sites.waiting import wait_until
from tools.worlds.windows.vm import WindowsVm

POLICY = r"""
name: windows
rule:
  match:
    - id: reboot
      condition: event.EventType == "Reboot" && affects_me && event.EventStatus == "Scheduled"
      output: approve
      prepare: [{run: ['C:\hooks\drain.cmd']}]
      recover: [{run: ['C:\hooks\drain.cmd']}]
    - {id: rest, output: hold}
"""


@pytest.fixture
def event(vm: WindowsVm) -> str:
    """Return an event that was approved by a runner that is dead."""
    vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%")
    vm.policy(POLICY)
    runner = vm.start()
    approved: str = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300)
    runner.wait_for("approved", event_ids=[approved])
    wait_until(lambda: vm.records()[0].approvals, pause=0.05)
    runner.stop(signal.SIGKILL)
    return approved


def test_overwritten_journal_is_set_aside_and_reported(vm: WindowsVm, event: str) -> None:
    (vm.state / "journal.db").write_bytes(b"damaged " * 4096)
    (vm.state / "journal.db-wal").unlink()
    runner = vm.start()
    trouble = runner.wait_for("journal-trouble", level="error")
    assert "journal" in trouble["reason"]
    runner.wait_for("decision", event_id=event)
    assert vm.said() == ["prepare"]
    assert len(vm.approvals()) == 1, "nobody knows any more whether it was approved"


def test_missing_write_ahead_log_is_noticed(vm: WindowsVm, event: str) -> None:
    (vm.state / "journal.db-wal").unlink()
    runner = vm.start()
    damaged = runner.wait_for("record-damaged", level="error")
    assert damaged["reason"]
    runner.wait_for("decision", event_id=event)
    assert (vm.said(), len(vm.approvals())) == (["prepare"], 1)


def test_untouched_journal_goes_on(vm: WindowsVm, event: str) -> None:
    vm.start().wait_for("resumed", event_id=event, state="approved")
    vm.emulator.start(event)
    vm.wait_until_over()
    assert (vm.said(), len(vm.approvals())) == (["prepare", "recover"], 1)
