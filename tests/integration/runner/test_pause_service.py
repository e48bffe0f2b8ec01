# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn pause`` and ``forewarn resume`` with a real service, judged by what arrives there."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import approval_pause as command
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.runner.hooks.recovery_requests import requesting_user
from tools.sites.runner_process import DRAINS, Host, Start
from tools.sites.waiting import wait_until

HOOK = """
echo "$FOREWARN_PHASE" >> "${0%/*}/said"
"""


class PausedHost(Host):
    """A VM whose operator pauses approvals."""

    def ask(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Run a command, and return its JSON."""
        done = self.forewarn(*arguments, "--json")
        assert (done.returncode, done.stderr) == (code, "")
        data: dict[str, Any] = json.loads(done.stdout)
        return data

    def polls(self) -> int:
        return sum(entry["method"] == "GET" for entry in self.emulator.requests())

    def polled(self, times: int = 3) -> None:
        """Wait until the runner has polled that often."""
        wanted = self.polls() + times
        wait_until(lambda: self.polls() >= wanted)


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start) -> PausedHost:
    return PausedHost(tmp_path, emulator, start, DRAINS, HOOK)


@pytest.mark.vm_python
def test_what_was_confirmed_holds_until_it_is_resumed(host: PausedHost, server: EmulatorServer) -> None:
    runner = host.run()
    runner.wait_for("document")
    assert host.forewarn("status").stdout.count("paused") == 0
    said = host.ask("pause", "--for", "2h", "--reason", "release 4.2")
    assert (said["result"], said["replaced"], said["pause"]["reason"]) == ("confirmed", False, "release 4.2")
    event = host.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0.1)
    wait_until(lambda: host.said() == ["prepare"])  # drains go on
    host.polled()
    assert host.approvals() == []
    status = host.forewarn("status")
    assert "paused   approvals are paused until " in status.stdout
    assert "waits for  the end of the pause: approvals are paused until " in status.stdout
    assert host.ask("status")["pause"]["reason"] == "release 4.2"

    refused = host.forewarn("approve", event, "--endpoint", server.vm_endpoint("web_0"))
    assert refused.returncode == 2
    assert "release 4.2. Nothing was approved." in refused.stderr
    assert host.approvals() == []

    runner.stop(signal.SIGKILL)
    second = host.run()
    second.wait_for("started")
    host.polled()
    assert host.approvals() == [], "it survives a crash"
    said = host.ask("pause", "--for", "1h", "--reason", "once more")
    assert said["replaced"]
    assert host.ask("resume")["result"] == "confirmed"
    wait_until(lambda: host.approvals() == [[event]])
    assert host.ask("resume")["result"] == "not-paused"
    told = host.forewarn("history")
    assert "release 4.2" in told.stdout
    assert f"the pause of approvals is over by {requesting_user(os.environ)}" in told.stdout


@pytest.mark.vm_python
def test_pause_without_a_runner_holds_and_expires(host: PausedHost) -> None:
    first = host.run()
    first.wait_for("document")
    first.stop()
    said = host.ask("pause", "--for", "5s", "--reason", "a release")
    assert said["result"] == "no-runner"
    event = host.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0.1)
    runner = host.run()
    runner.wait_for("paused")
    wait_until(lambda: host.said() == ["prepare"])
    assert host.approvals() == []
    runner.wait_for("resumed")
    wait_until(lambda: host.approvals() == [[event]])


def test_hanging_runner_may_still_send_an_approval(host: PausedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approval may be under way in it, and leaves when it goes on."""
    runner = host.run()
    runner.wait_for("document")
    runner.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 0.3)
    try:
        done = host.forewarn("pause", "--for", "2h", "--reason", "a release")
        assert done.returncode == 1
        assert "An approval may be under way" in done.stdout
    finally:
        runner.process.send_signal(signal.SIGCONT)
