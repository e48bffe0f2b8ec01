# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill through a real service: its hooks run, nothing is sent, a restart goes on with it, a real event ends it."""

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
        - {{run: [{hook}], timeout: 10s}}
    - id: rest
      output: hold
"""
HOOK = """#!/bin/sh
echo "$FOREWARN_PHASE $FOREWARN_DRILL $FOREWARN_EVENT_ID" >> {calls}
"""


class World:
    """The emulated service, a state directory, and runners one after another."""

    def __init__(self, directory: Path, server: EmulatorServer, emulator: EmulatorClient) -> None:
        self.emulator = emulator
        self.state = directory / "state"
        self.calls = directory / "calls"
        hook = directory / "hook"
        hook.write_text(HOOK.format(calls=self.calls))
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

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "forewarn.cli.main", *arguments]

    def start(self) -> None:
        """Start a runner; return once it has polled."""
        polls = len(self.emulator.requests())
        command = self.command("run", "--artifact", str(self._artifact), "--vm-name", "web_0")
        self._process = subprocess.Popen(command, env=self._environ, stdout=subprocess.DEVNULL)
        wait_until(lambda: len(self.emulator.requests()) > polls)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)
            self._process = None

    def forewarn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments)
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=30, check=False)

    def drill(self, *arguments: str) -> str:
        """Hand a drill over, patiently: the runner may have just started. Return its id."""
        result = None

        def done() -> bool:
            nonlocal result
            result = self.forewarn("drill", "--json", *arguments)
            return result.returncode == 0

        wait_until(done)
        assert result is not None
        return str(json.loads(result.stdout)["id"])

    def records(self) -> dict[str, dict[str, Any]]:
        """Return what history says of each event, by its id."""
        result = self.forewarn("history", "--json")
        if result.returncode:
            return {}
        return {event["event"]["EventId"]: event for event in json.loads(result.stdout)["events"]}

    def wait_for(self, event_id: str, state: str) -> dict[str, Any]:
        wait_until(lambda: self.records().get(event_id, {}).get("state") == state)
        return self.records()[event_id]

    def ran(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def posts(self) -> list[Any]:
        return [entry for entry in self.emulator.requests() if entry["method"] == "POST"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    tmp_path.chmod(0o700)
    settings = Settings(start_delay=0.2, gone_after=1)
    with EmulatorServer(vms=["web_0", "web_1"], settings=settings) as server, EmulatorClient(server.url) as emulator:
        found = World(tmp_path, server, emulator)
        yield found
        found.stop(signal.SIGKILL)


def test_a_drill_is_prepared_pretended_started_ended_and_recovered(world: World) -> None:
    world.start()
    event_id = world.drill("--type", "Reboot", "--notice", "5m", "--duration", "2s")
    record = world.wait_for(event_id, "done")
    assert world.ran() == [f"prepare 1 {event_id}", f"recover 1 {event_id}"]
    assert record["drill"] is True
    assert record["approvals"] == 1
    assert record["outcome"] == "finished"
    assert world.posts() == []
    assert list((world.state / "drills").iterdir()) == []


def test_a_drill_that_is_held_starts_when_its_notice_is_over(world: World) -> None:
    world.start()
    event_id = world.drill("--type", "Freeze", "--notice", "2s", "--duration", "1s")
    record = world.wait_for(event_id, "done")
    assert (record["approvals"], record["outcome"]) == (0, "finished")
    assert world.ran() == []
    assert world.posts() == []


def test_killed_in_the_middle_the_next_runner_goes_on(world: World) -> None:
    world.start()
    event_id = world.drill("--type", "Reboot", "--notice", "5m", "--duration", "4s")
    world.wait_for(event_id, "started")
    world.stop(signal.SIGKILL)
    refusal = world.forewarn("drill", "--type", "Reboot")
    assert refusal.returncode == 2
    assert "no runner works on" in refusal.stderr
    world.start()
    world.wait_for(event_id, "done")
    assert world.ran() == [f"prepare 1 {event_id}", f"recover 1 {event_id}"]
    assert world.posts() == []


def test_a_real_event_ends_it_and_is_approved(world: World) -> None:
    world.start()
    event_id = world.drill("--type", "Freeze", "--notice", "5m")
    world.wait_for(event_id, "held")
    real = world.emulator.schedule("Reboot", ["web_0"], notice_seconds=300, gone_after_seconds=60)
    record = world.wait_for(event_id, "cancelled")
    assert record["outcome"] == "cancelled"
    wait_until(lambda: [entry["event_ids"] for entry in world.posts()] == [[real]])
    refusal = world.forewarn("drill", "--type", "Reboot")
    assert refusal.returncode == 2
    assert f"would end the drill at once: {real}" in refusal.stderr


def test_a_drill_can_be_cancelled_and_is_recovered(world: World) -> None:
    world.start()
    event_id = world.drill("--type", "Reboot", "--notice", "5m", "--duration", "5m")
    world.wait_for(event_id, "started")
    assert world.forewarn("drill", "--cancel", event_id).returncode == 0
    world.wait_for(event_id, "done")
    assert world.ran()[-1] == f"recover 1 {event_id}"
    assert world.posts() == []
