# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn recover`` and a real service: what fails runs again, or is ended, whenever the runner is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policyfile import compile_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from tools.waiting import wait_until

POLICY = """
name: drains
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare:
        - {{run: [{hook}], timeout: 10s}}
      recover:
        - {{run: [{hook}], timeout: 60s, retry: never}}
    - id: rest
      output: hold
"""
# Recovers as the file ``mode`` says: fails, hangs, or succeeds.
HOOK = """#!/bin/sh
echo "$FOREWARN_PHASE $FOREWARN_ATTEMPT" >> {calls}
test "$FOREWARN_PHASE" = prepare && exit 0
case "$(cat {mode})" in
  fail) echo "the load balancer does not answer" >&2; exit 3 ;;
  hang) exec sleep 60 ;;
esac
"""


class World:
    """The emulated service, a state directory, and runners one after another."""

    def __init__(self, directory: Path, server: EmulatorServer, emulator: EmulatorClient) -> None:
        self.emulator = emulator
        self.state = directory / "state"
        self._calls = directory / "calls"
        self._mode = directory / "mode"
        self.recovery("fail")
        hook = directory / "hook"
        hook.write_text(HOOK.format(calls=self._calls, mode=self._mode))
        hook.chmod(0o755)
        source = directory / "drains.yml"
        source.write_text(POLICY.format(hook=hook))
        self._artifact = directory / "policy.json"
        self._artifact.write_text(json.dumps(compile_policies([source]).artifact))
        self._environ = {
            **os.environ,
            "FOREWARN_ENDPOINT": server.vm_endpoint("web_0"),
            "STATE_DIRECTORY": str(self.state),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def recovery(self, mode: str) -> None:
        """Let the hook recover from now on as ``mode`` says."""
        self._mode.write_text(mode)

    def start(self) -> None:
        """Start a runner; return once it has polled."""
        polls = len(self.emulator.requests())
        command = [sys.executable, "-m", "forewarn.cli.main", "run", "--artifact", str(self._artifact)]
        self._process = subprocess.Popen([*command, "--vm-name", "web_0"], env=self._environ, stdout=subprocess.DEVNULL)
        wait_until(lambda: len(self.emulator.requests()) > polls)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def forewarn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "forewarn.cli.main", *arguments]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=30, check=False)

    def status(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.forewarn("status", "--json").stdout)
        return data

    def record(self, event_id: str) -> dict[str, Any]:
        result = self.forewarn("history", "--event", event_id, "--json")
        (found,) = json.loads(result.stdout)["events"]
        return dict(found)

    def wait_for(self, event_id: str, state: str) -> dict[str, Any]:
        wait_until(lambda: self.record(event_id)["state"] == state)
        return self.record(event_id)

    def ran(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def requests(self) -> list[Path]:
        return list((self.state / "recoveries").glob("*.json"))

    def fails_to_recover(self) -> str:
        """Let an event come and go, and its recovery fail for good; return the event's id."""
        self.start()
        event_id = self.emulator.schedule("Reboot", ["web_0"], notice_seconds=300, gone_after_seconds=1)
        wait_until(lambda: self.ran() == ["prepare 1", "recover 1"])
        wait_until(lambda: len(self.status()["failing_recoveries"]) == 1)
        return event_id


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    tmp_path.chmod(0o700)
    settings = Settings(start_delay=0.2, gone_after=1)
    with EmulatorServer(vms=["web_0", "web_1"], settings=settings) as server, EmulatorClient(server.url) as emulator:
        found = World(tmp_path, server, emulator)
        yield found
        found.kill()


def test_what_was_repaired_runs_again_and_recovers(world: World) -> None:
    event_id = world.fails_to_recover()
    status = world.forewarn("status")
    assert status.returncode == 1
    assert f"forewarn recover {event_id} --again" in status.stdout
    assert "the load balancer does not answer" in status.stdout
    world.recovery("succeed")
    result = world.forewarn("recover", event_id[:8].lower(), "--again", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["result"] == "again"
    record = world.wait_for(event_id, "done")
    assert world.ran() == ["prepare 1", "recover 1", "recover 2"]
    assert [entry["kind"] for entry in record["entries"]].count("recovery-again") == 1
    assert world.forewarn("status").returncode == 0
    refusal = world.forewarn("recover", event_id, "--again")
    assert refusal.returncode == 2
    assert "is not being recovered: it is done" in refusal.stderr


def test_what_was_dealt_with_is_over_with_a_note(world: World) -> None:
    event_id = world.fails_to_recover()
    result = world.forewarn("recover", event_id, "--dealt-with", "put back into the pool by hand")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"dealt with: Reboot {event_id}: ")
    world.wait_for(event_id, "done")
    assert world.ran() == ["prepare 1", "recover 1"]
    told = world.forewarn("history", "--event", event_id).stdout
    assert "recovery dealt with by " in told
    assert "put back into the pool by hand" in told
    assert world.status()["problems"] == []


def test_a_request_outlives_a_runner_that_was_killed(world: World) -> None:
    event_id = world.fails_to_recover()
    world.kill()
    result = world.forewarn("recover", event_id, "--dealt-with", "put back by hand")
    assert result.returncode == 0
    assert "no runner works on" in result.stdout
    assert "It is done when a runner starts." in result.stdout
    assert len(world.requests()) == 1
    world.start()
    world.wait_for(event_id, "done")
    assert world.ran() == ["prepare 1", "recover 1"]
    assert world.requests() == []


def test_killed_between_the_request_and_the_end_of_the_hook_it_is_done_by_the_next(world: World) -> None:
    event_id = world.fails_to_recover()
    world.recovery("hang")
    assert world.forewarn("recover", event_id, "--again").returncode == 0
    wait_until(lambda: world.ran()[-1] == "recover 2")
    result = world.forewarn("recover", event_id, "--dealt-with", "put back by hand")
    assert result.returncode == 0
    assert "a recover hook runs now. It is done when that hook has ended." in result.stdout
    world.kill()
    assert len(world.requests()) == 1
    world.start()
    record = world.wait_for(event_id, "done")
    assert world.ran() == ["prepare 1", "recover 1", "recover 2"], "and nothing was undone twice"
    kinds = [entry["kind"] for entry in record["entries"]]
    assert (kinds.count("recovery-again"), kinds.count("recovery-dealt-with")) == (1, 1)
    assert world.requests() == []


def test_a_file_that_is_no_request_ends_nothing(world: World) -> None:
    event_id = world.fails_to_recover()
    assert world.forewarn("recover", event_id, "--again").returncode == 0
    wait_until(lambda: world.ran()[-1] == "recover 2")
    (world.state / "recoveries" / "recover-000000000000.json").write_text("{")
    wait_until(lambda: world.requests() == [])
    assert (world.state / "recoveries" / "recover-000000000000.json.refused").exists()
    assert world.forewarn("recover", event_id, "--dealt-with", "put back by hand").returncode == 0
    world.wait_for(event_id, "done")
    assert "a request to recover was refused (recover-000000000000)" in world.forewarn("history").stdout
