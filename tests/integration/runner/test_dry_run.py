# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dry run as a process: it keeps its own journal, reports what it would do, does nothing, and can be compared."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.sites.commands import forewarn as forewarn_command
from tools.sites.runner_process import Start, approvals, compiled, program

pytestmark = pytest.mark.emulated(start_delay=120, gone_after=120)

POLICY = """
name: drains
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      output: {output}
      prepare: [{{run: [{hook}]}}, {{run: [{hook}, again]}}]
      recover: [{{run: [{hook}, back]}}]
    - id: freeze
      condition: event.EventType == "Freeze"
      output: approve
"""


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    return program(tmp_path / "hook", f"echo ran >> {tmp_path}/calls")


@pytest.fixture
def artifact(tmp_path: Path, hook: Path) -> Path:
    return compiled(tmp_path, POLICY.format(hook=hook, output="approve"))


class Commands:
    """``forewarn`` as an operator of web_0 types it."""

    def __init__(self, live: Path) -> None:
        self.live = live

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return forewarn_command(*arguments, STATE_DIRECTORY=str(self.live))

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        result = self(*arguments, "--json")
        assert (result.returncode, result.stderr) == (code, "")
        found: dict[str, Any] = json.loads(result.stdout)
        return found


@pytest.fixture
def forewarn(tmp_path: Path) -> Commands:
    return Commands(tmp_path / "state-web_0")


def test_dry_run_reports_intentions_and_does_nothing(
    start: Start, emulator: EmulatorClient, forewarn: Commands, artifact: Path, hook: Path, tmp_path: Path
) -> None:
    runner = start("--artifact", str(artifact), "--dry-run")
    assert runner.wait_for("started")["state"] == str(forewarn.live / "dry-run")
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
    said = runner.wait_for("would-run", event_id=event)
    assert (said["phase"], said["hooks"]) == ("prepare", [f"run {hook}", f"run {hook} again"])
    runner.wait_for("would-approve", event_ids=[event])

    status = forewarn.json("status")
    assert status["runner"]["dry_run"] is True
    assert status["state_directory"] == str(forewarn.live / "dry-run")
    assert status["problems"] == []
    (pending,) = status["events"]
    would = [f"run prepare hook run {hook}", f"run prepare hook run {hook} again", "approve it"]
    assert sorted(pending["would"]) == sorted(would)
    shown = forewarn("status", "--dry-run").stdout
    assert "a dry run: it approves nothing and runs no hooks" in shown
    assert f"would      run prepare hook run {hook}" in shown

    emulator.start(event)
    runner.wait_for("decision", status="Started")
    emulator.finish(event)
    runner.wait_for("event-gone")
    assert runner.wait_for("would-run", phase="recover")["hooks"] == [f"run {hook} back"]
    runner.stop()

    history = forewarn.json("history")
    assert history["dry_run"] is True
    (past,) = history["events"]
    assert (past["approvals"], past["hooks"], past["outcome"]) == (0, [], "finished")
    assert [entry["kind"] for entry in past["entries"] if entry["kind"].startswith("would")].count("would-run") == 2
    text = forewarn("history").stdout
    assert text.startswith("A dry run: nothing was approved, and no hook ran.\n")
    assert f"would now run prepare hook run {hook}, then run {hook} again, but a dry run runs no hooks" in text
    assert approvals(emulator) == []
    assert not (tmp_path / "calls").exists()

    replay = forewarn("policy", "replay", str(artifact.with_suffix(".yml")), "--from", str(forewarn.live / "dry-run"))
    assert replay.returncode == 0
    assert event in replay.stdout


@pytest.mark.vm_python
def test_dry_run_is_compared_with_a_live_run(
    start: Start, emulator: EmulatorClient, forewarn: Commands, artifact: Path, hook: Path, tmp_path: Path
) -> None:
    careful = compiled(tmp_path, POLICY.format(hook=hook, output="hold"), "careful")
    live = start("--artifact", str(artifact))
    live.wait_for("document")
    dry = start("--artifact", str(careful), "--dry-run")
    dry.wait_for("document")
    freeze = emulator.schedule("Freeze", ["web_0"], notice_seconds=900, duration_seconds=5)
    live.wait_for("approved", event_ids=[freeze])
    dry.wait_for("decision", event_id=freeze)
    assert forewarn.json("status")["runner"]["dry_run"] is False, "the live one is the one that is meant"
    assert forewarn.json("status", "--dry-run")["runner"]["dry_run"] is True
    assert forewarn("drill", "--type", "Freeze", "--dry-run").returncode == 2, "a real event is listed"
    reboot = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
    live.wait_for("hook-started", event_id=reboot)
    dry.wait_for("would-run", event_id=reboot)
    for runner in (live, dry):
        runner.stop()

    compared = forewarn.json("history", "--compare", code=1)
    by_id = {row["event_id"]: row for row in compared["events"]}
    assert list(by_id) == [freeze, reboot]
    assert by_id[freeze]["verdict"] == "same"
    assert by_id[reboot]["verdict"] == "different"
    sides = {side["name"]: side for side in by_id[reboot]["sides"]}
    assert (sides["live"]["output"], sides["dry run"]["output"]) == ("approve", "hold")
    text = forewarn("history", "--compare").stdout
    assert re.search(r"^  dry run  hold, by drains, rule drain: .*; would have prepared it by run ", text, re.MULTILINE)
    assert text.endswith("2 events: 1 the same, 1 different, 0 decided by one alone.\n")
    other_way = forewarn.json("history", "--dry-run", "--compare", str(forewarn.live), code=1)
    assert [row["verdict"] for row in other_way["events"]] == ["same", "different"]


def test_event_decided_by_one_run_is_no_difference(
    start: Start, emulator: EmulatorClient, forewarn: Commands, artifact: Path
) -> None:
    live = start("--artifact", str(artifact))
    live.wait_for("document")
    event = emulator.schedule("Freeze", ["web_0"], notice_seconds=900, duration_seconds=5)
    live.wait_for("approved", event_ids=[event])
    emulator.start(event)
    live.wait_for("decision", event_id=event, status="Started")
    start("--artifact", str(artifact), "--dry-run").wait_for("decision", event_id=event)
    (row,) = forewarn.json("history", "--compare")["events"]
    assert row["verdict"] == "one-alone"
    assert "dry run  saw it only when it had started" in forewarn("history", "--compare").stdout


def test_drill_in_a_dry_run_runs_no_hook(
    start: Start, forewarn: Commands, artifact: Path, hook: Path, emulator: EmulatorClient, tmp_path: Path
) -> None:
    runner = start("--artifact", str(artifact), "--dry-run")
    runner.wait_for("identity")
    handed = forewarn("drill", "--type", "Reboot", "--notice", "1s", "--duration", "1s", "--json")
    assert handed.returncode == 0
    assert "no hook will run" in handed.stderr
    event = json.loads(handed.stdout)["id"]
    assert runner.wait_for("would-run", event_id=event)["drill"] is True
    runner.wait_for("event-gone", event_id=event)
    assert runner.wait_for("would-run", event_id=event, phase="recover")["hooks"] == [f"run {hook} back"]
    assert approvals(emulator) == []
    assert not (tmp_path / "calls").exists()


def test_from_the_one_to_the_other_and_back(
    start: Start, emulator: EmulatorClient, forewarn: Commands, artifact: Path, tmp_path: Path
) -> None:
    """A dry run neither forgets nor recovers what a live runner has to recover."""
    for arguments in (["--dry-run"], []):
        runner = start("--artifact", str(artifact), *arguments)
        runner.wait_for("document")
        if arguments:
            runner.stop()
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
    runner.wait_for("state", to="prepared")
    runner.stop()
    dry = start("--artifact", str(artifact), "--dry-run")
    dry.wait_for("would-run", event_id=event)
    status = forewarn.json("status", code=1)
    assert status["state_directory"] == str(forewarn.live), "where something is left to be finished"
    assert "a dry run is at work: forewarn status --dry-run" in status["problems"][0]
    emulator.cancel(event)
    dry.wait_for("event-gone", event_id=event)
    dry.stop()
    calls = (tmp_path / "calls").read_text()
    live = start("--artifact", str(artifact))
    assert live.wait_for("resumed")["event_id"] == event
    live.wait_for("hook-ended", phase="recover")
    assert (tmp_path / "calls").read_text() == calls + "ran\n"
