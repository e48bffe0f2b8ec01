# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn recover`` and a real service: what fails runs again, or is ended, whenever the runner is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.sites.runner_process import DRAINS, Host, Process, Start
from tools.sites.waiting import wait_until

POLICY = DRAINS.replace("recover: [{{run: [{hook}],", "recover: [{{run: [{hook}], retry: never,")
# Recovers as the file ``mode`` says: fails, hangs, or succeeds.
HOOK = """
echo "$FOREWARN_PHASE $FOREWARN_ATTEMPT" >> "${0%/*}/said"
test "$FOREWARN_PHASE" = prepare && exit 0
case "$(cat "${0%/*}/mode")" in
  fail) echo "the load balancer does not answer" >&2; exit 3 ;;
  hang) exec sleep 60 ;;
esac
"""


class RecoverHost(Host):
    """A VM whose recoveries fail, until ``recovery`` says something else."""

    def recovery(self, mode: str) -> None:
        """Let the hook recover from now on as ``mode`` says."""
        (self.directory / "mode").write_text(mode)

    def status(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.forewarn("status", "--json").stdout)
        return data

    def requests(self) -> list[Path]:
        return list((self.state / "recoveries").glob("*.json"))

    def fails_to_recover(self) -> tuple[Process, str]:
        """Let an event end, and its recovery fail for good; return the runner and the event's id."""
        self.recovery("fail")
        runner = self.run()
        runner.wait_for("document")
        event_id = self.emulator.schedule("Reboot", ["web_0"], notice_seconds=300, impact_seconds=0.1)
        wait_until(lambda: self.said() == ["prepare 1", "recover 1"])
        wait_until(lambda: len(self.status()["failing_recoveries"]) == 1, pause=0.05)
        return runner, event_id


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start) -> RecoverHost:
    return RecoverHost(tmp_path, emulator, start, POLICY, HOOK)


@pytest.mark.vm_python
def test_what_was_repaired_runs_again_and_recovers(host: RecoverHost) -> None:
    _runner, event_id = host.fails_to_recover()
    status = host.forewarn("status")
    assert status.returncode == 1
    assert f"forewarn recover {event_id} --again" in status.stdout
    assert "the load balancer does not answer" in status.stdout
    host.recovery("succeed")
    result = host.forewarn("recover", event_id[:8].lower(), "--again", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["result"] == "again"
    record = host.wait_for(event_id, "done")
    assert host.said() == ["prepare 1", "recover 1", "recover 2"]
    assert [entry["kind"] for entry in record["entries"]].count("recovery-again") == 1
    assert host.forewarn("status").returncode == 0
    refusal = host.forewarn("recover", event_id, "--again")
    assert refusal.returncode == 2
    assert "is not being recovered: it is done" in refusal.stderr


def test_recovery_dealt_with_is_closed_with_a_note(host: RecoverHost) -> None:
    _runner, event_id = host.fails_to_recover()
    result = host.forewarn("recover", event_id, "--dealt-with", "put back into the pool by hand")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"dealt with: Reboot {event_id}: ")
    host.wait_for(event_id, "done")
    assert host.said() == ["prepare 1", "recover 1"]
    history = host.forewarn("history", "--event", event_id).stdout
    assert "recovery dealt with by " in history
    assert "put back into the pool by hand" in history
    assert host.status()["problems"] == []


def test_killed_runners_successor_executes_the_request(host: RecoverHost) -> None:
    runner, event_id = host.fails_to_recover()
    host.recovery("hang")
    assert host.forewarn("recover", event_id, "--again").returncode == 0
    wait_until(lambda: host.said()[-1] == "recover 2")
    result = host.forewarn("recover", event_id, "--dealt-with", "put back by hand")
    assert result.returncode == 0
    assert "a recover hook runs now. It is done when that hook has ended." in result.stdout
    runner.stop(signal.SIGKILL)
    assert len(host.requests()) == 1
    host.run()
    record = host.wait_for(event_id, "done")
    assert host.said() == ["prepare 1", "recover 1", "recover 2"], "and nothing was undone twice"
    kinds = [entry["kind"] for entry in record["entries"]]
    assert (kinds.count("recovery-again"), kinds.count("recovery-dealt-with")) == (1, 1)
    assert host.requests() == []
