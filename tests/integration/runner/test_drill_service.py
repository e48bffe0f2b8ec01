# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill through a real service: its hooks run, nothing is sent, a restart resumes it, a real event ends it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.sites.runner_process import DRAINS, Host, Process, Start
from tools.sites.waiting import wait_until

HOOK = 'echo "$FOREWARN_PHASE $FOREWARN_DRILL $FOREWARN_EVENT_ID" >> "${0%/*}/said"'


class DrillHost(Host):
    """A VM on which drills are held."""

    def run(self) -> Process:
        """Start a runner; return it once it has polled."""
        runner = super().run()
        runner.wait_for("document")
        return runner

    def drill(self, *arguments: str) -> str:
        """Hand a drill over, with patience: the runner may have just started. Return its id."""
        result = wait_until(
            lambda: (done := self.forewarn("drill", "--json", *arguments)).returncode == 0 and done, pause=0.05
        )
        assert result
        return str(json.loads(result.stdout)["id"])


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start) -> DrillHost:
    return DrillHost(tmp_path, emulator, start, DRAINS, HOOK)


def test_drill_runs_from_preparation_to_recovery(host: DrillHost) -> None:
    host.run()
    event_id = host.drill("--type", "Reboot", "--notice", "5m", "--duration", "1s")
    record = host.wait_for(event_id, "done")
    assert host.said() == [f"prepare 1 {event_id}", f"recover 1 {event_id}"]
    assert record["drill"] is True
    assert record["approvals"] == 1
    assert record["outcome"] == "finished"
    assert host.approvals() == []
    assert list((host.state / "drills").iterdir()) == []


@pytest.mark.vm_python
def test_killed_runner_resumes_the_drill(host: DrillHost) -> None:
    runner = host.run()
    event_id = host.drill("--type", "Reboot", "--notice", "5m", "--duration", "4s")
    host.wait_for(event_id, "started")
    runner.stop(signal.SIGKILL)
    refusal = host.forewarn("drill", "--type", "Reboot")
    assert refusal.returncode == 2
    assert "no runner works on" in refusal.stderr
    host.run()
    host.wait_for(event_id, "done")
    assert host.said() == [f"prepare 1 {event_id}", f"recover 1 {event_id}"]
    assert host.approvals() == []


def test_a_real_event_ends_it_and_is_approved(host: DrillHost) -> None:
    host.run()
    event_id = host.drill("--type", "Freeze", "--notice", "5m")
    host.wait_for(event_id, "held")
    real = host.emulator.schedule("Reboot", ["web_0"], notice_seconds=300, gone_after_seconds=60)
    record = host.wait_for(event_id, "cancelled")
    assert record["outcome"] == "cancelled"
    wait_until(lambda: host.approvals() == [[real]])
    refusal = host.forewarn("drill", "--type", "Reboot")
    assert refusal.returncode == 2
    assert f"would end the drill at once: {real}" in refusal.stderr
