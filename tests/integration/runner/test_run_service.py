# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` as a service: reload, shadow, metrics."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.policy.artifact import with_source
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.telemetry import heartbeat
from tools.servers.listener_client import free_port
from tools.sites.commands import forewarn_on_vm
from tools.sites.quick_vm import TIMES
from tools.sites.runner_process import Process, Start, approvals, compiled, program
from tools.sites.waiting import wait_until

FREEZE = """
name: freezes
params:
  - {name: tolerable, type: int, default: 9}
rule:
  match:
    - id: brief
      condition: >-
        event.EventType == "Freeze" && event.DurationInSeconds >= 0
        && event.DurationInSeconds < params.tolerable
      output: approve
"""
HOLD = FREEZE.replace("output: approve", "output: hold")


def reload(runner: Process, name: str, count: int = 1) -> dict[str, Any]:
    runner.process.send_signal(signal.SIGHUP)
    return runner.wait_for(name, count=count)


def line(directory: Path) -> Mapping[str, Any]:
    """Return the runner's next heartbeat."""
    path = str(directory / "state-web_0")
    before = heartbeat.read(path)
    wait_until(lambda: heartbeat.read(path) != before)
    beat = heartbeat.read(path)
    assert beat
    return beat.fields


@pytest.mark.vm_python
def test_reload_applies_good_policies_and_keeps_last_good(
    start: Start, emulator: EmulatorClient, tmp_path: Path
) -> None:
    """A policy that cannot be loaded changes nothing."""
    artifact = compiled(tmp_path, HOLD)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"artifact": "policy.json"}))
    runner = start("--config", str(config))
    emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    held = runner.wait_for("decision")
    assert held["output"] == "hold"
    good = artifact.read_bytes()

    artifact.write_bytes(good.replace(b"hold", b"approve"))
    failed = reload(runner, "reload-failed")
    assert "digest" in failed["reason"]
    assert "goes on with what it had" in failed["hint"]
    assert "digest" in line(tmp_path)["reload_problem"]
    config.write_text('{"artifact": "policy.json",')
    assert "config.json:1" in reload(runner, "reload-failed", 2)["reason"]
    assert approvals(emulator) == []

    compiled(tmp_path, FREEZE)
    config.write_text(json.dumps({"artifact": "policy.json", "params": {"tolerable": 5}, "interval": 1.5}))
    reload(runner, "reloaded")
    assert line(tmp_path).items() >= {"reload_problem": None, "interval_seconds": 1.5 / TIMES}.items()
    assert "no rule" in runner.wait_for("decision", count=2)["reason"]
    assert approvals(emulator) == [], "a freeze of 5 s is not shorter than 5 s"
    config.write_text(json.dumps({"artifact": "policy.json", "params": {"tolerable": 6}}))
    reload(runner, "reloaded", 2)
    runner.wait_for("approved")
    assert len(approvals(emulator)) == 1


def test_a_shadow_decides_beside_and_never_acts(start: Start, emulator: EmulatorClient, tmp_path: Path) -> None:
    live = compiled(tmp_path, HOLD, "live")
    shadow = compiled(tmp_path, FREEZE, "shadow")
    runner = start("--artifact", str(live), "--shadow", str(shadow))
    event = emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    disagreement = runner.wait_for("shadow")
    assert (disagreement["live"], disagreement["other"]) == ("hold", "approve")
    assert "brief" in disagreement["reason"]
    runner.process.send_signal(signal.SIGTERM)
    assert runner.end() == (0, "")
    assert approvals(emulator) == []
    (kept,) = JournalReader(str(tmp_path / "state-web_0")).entries(kinds=["shadow"])
    assert kept.fields["event_id"] == event
    assert len([line for line in runner.lines if line["line"] == "shadow"]) == 1


@pytest.mark.vm_python
def test_metrics_by_file_and_by_listener(start: Start, emulator: EmulatorClient, tmp_path: Path) -> None:
    textfile = tmp_path / "forewarn.prom"
    artifact = compiled(tmp_path, FREEZE)
    listen = f"127.0.0.1:{free_port()}"
    runner = start("--artifact", str(artifact), "--metrics-file", str(textfile), "--metrics-listen", listen)
    emulator.schedule("Freeze", ["web_0"], duration_seconds=5, impact_seconds=0.1)
    runner.wait_for("approved")
    runner.wait_for("event-gone")

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://{listen}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def names(exposition: str) -> set[str]:
        return set(re.findall(r"^# TYPE (\S+)", exposition, re.MULTILINE))

    assert get("/healthz").startswith("ok: the service answered")
    scraped = get("/metrics")
    assert re.search(r'^forewarn_approvals_total{result="taken"} 1$', scraped, re.MULTILINE)
    assert re.search(r"^forewarn_last_good_poll_age_seconds \d", scraped, re.MULTILINE)
    # The file is written a moment after the listener's answer.
    wait_until(lambda: names(textfile.read_text()) == names(get("/metrics")), what="the file has other metrics")
    assert textfile.stat().st_mode & 0o777 == 0o644


@pytest.mark.root(reason="other users run policies of their own, which they may share")
def test_policy_file_writable_by_others_is_refused(start: Start, tmp_path: Path) -> None:
    compiled(tmp_path, FREEZE)
    source = tmp_path / "policy.yml"
    source.chmod(0o666)
    code, error = start("--policy", str(source)).end()
    assert (code, "policy.yml" in error, "writable" in error) == (2, True, True)


def test_status_compares_loaded_and_installed_state(start: Start, tmp_path: Path) -> None:
    """``forewarn status`` of a real runner: what it lacks, what it has loaded, and what a restart would find."""
    tmp_path.chmod(0o700)
    hook = tmp_path / "drain"
    policy = f"name: drains\nrule:\n  match:\n    - {{id: all, output: hold, notify: [{{run: [{hook}]}}]}}\n"
    source = {"repository": None, "ref": "main", "commit": "c" * 40, "paths": ["drains.yml"], "modified": False}
    artifact = compiled(tmp_path, policy)
    artifact.write_bytes(with_source(artifact.read_bytes(), source))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"artifact": "policy.json", "interval": 1}))
    runner = start("--config", str(config))
    runner.wait_for("document")
    state = str(tmp_path / "state-web_0")

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(forewarn_on_vm("status", "--json", STATE_DIRECTORY=state).stdout)
        return found

    wait_until(lambda: status()["service"]["state"] == "ok", pause=0.05)
    report = status()
    lacks = f"rule all of policy drains: there is no program {hook}"
    assert report["problems"] == [f"a hook lacks what it needs: {lacks}"]
    assert (report["runner"]["missing"], report["runner"]["policies"]) == ([lacks], ["drains"])
    assert report["runner"]["source"] == source
    loaded = report["runner"]["config"]
    assert loaded == f"sha256:{hashlib.sha256(config.read_bytes()).hexdigest()}"
    program(hook, "true")
    config.write_text(json.dumps({"artifact": "policy.json", "interval": 2}))
    (_lacks, differs) = sorted(status()["problems"])
    assert differs.startswith(f"the configuration {config} has changed since the runner loaded it")
    reload(runner, "reloaded")
    assert runner.wait_for("hook-available")["reason"] == f"no longer: {lacks}"
    wait_until(lambda: status()["runner"]["config"] != loaded, pause=0.05)
    report = status()
    assert (report["problems"], report["runner"]["missing"], report["runner"]["interval_seconds"]) == (
        [],
        [],
        2 / TIMES,
    )
    artifact.write_bytes(with_source(artifact.read_bytes(), {**source, "ref": "v2"}))
    reload(runner, "reloaded", count=2)
    wait_until(lambda: status()["runner"]["source"]["ref"] == "v2", pause=0.05)
    assert status()["problems"] == []
    config.write_text(json.dumps({"artifact": "policy.json", "interval": 500}))
    (would_not,) = status()["problems"]
    assert would_not.startswith("the runner would not start again: the interval is not")
