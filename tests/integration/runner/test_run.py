# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` as a process, against the emulator."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.commands import forewarn_on_vm, run_program
from tools.sites.runner_process import Start, approvals, compiled
from tools.sites.waiting import wait_until

POLICY = """
name: web-tier
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: brief-freeze
      condition: >-
        event.EventType == "Freeze" && event.DurationInSeconds >= 0
        && event.DurationInSeconds < params.tolerable_freeze
      output: approve
"""
HOOKS = """
name: drains
rule:
  match:
    - output: approve
      prepare:
        - {run: [/usr/local/bin/drain]}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "web-tier.yml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def artifact(policy: Path, tmp_path: Path) -> Path:
    return compiled(tmp_path, POLICY)


@pytest.mark.vm_python
def test_brief_freeze_is_approved_and_followed_to_end(start: Start, emulator: EmulatorClient, artifact: Path) -> None:
    runner = start("--artifact", str(artifact), quick=False)  # one that polls as often as it does by itself
    assert runner.wait_for("started")["interval_seconds"] == 1
    assert runner.wait_for("identity")["vm"] == "web_0"
    runner.wait_for("document")
    scheduled = time.monotonic()
    event_id = emulator.schedule(
        "Freeze", ["web_0", "web_1"], duration_seconds=5, impact_seconds=0.5, gone_after_seconds=600
    )
    runner.wait_for("approved", event_ids=[event_id])
    assert time.monotonic() - scheduled < 15, "very loose, for a busy machine; a benchmark measures it"
    decision = runner.wait_for("decision", event_id=event_id)
    assert decision["rule"] == "brief-freeze"
    assert decision["values"]["event.DurationInSeconds"] == "5"
    runner.wait_for("decision", event_id=event_id, status="Started")
    emulator.finish(event_id)
    runner.wait_for("event-gone", event_id=event_id, outcome="finished")
    assert runner.stop() == (0, "")
    assert approvals(emulator) == [[event_id]]
    assert runner.lines[-1]["line"] == "stopped"


def test_once_from_policy_files_with_a_parameter(start: Start, emulator: EmulatorClient, policy: Path) -> None:
    emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    stricter = start("--policy", str(policy), "--once", "--param", "tolerable_freeze=5")
    assert stricter.end() == (0, "")
    assert approvals(emulator) == []
    usual = start("--policy", str(policy.parent), "--once")
    assert usual.end() == (0, "")
    assert len(approvals(emulator)) == 1
    assert [line["line"] for line in usual.lines] == ["started", "identity", "document", "decision", "approved"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_once_though_nobody_answers(artifact: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = ["run", "--once", "--artifact", str(artifact), "--endpoint", endpoint]
        process = subprocess.Popen(
            [sys.executable, "-m", "forewarn.cli.main", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        with process, silent.accept()[0]:  # the request is in flight
            process.send_signal(signal.SIGHUP)  # there is nothing to reload
            process.send_signal(number)
            error = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 3
    assert f"Ended by {number.name} before the service had answered." in error


def test_a_name_given_is_this_vm_s_name(start: Start, emulator: EmulatorClient, artifact: Path) -> None:
    emulator.schedule("Freeze", ["web_1"], duration_seconds=5)
    runner = start("--artifact", str(artifact), "--once", "--vm-name", "WEB_1")
    assert runner.end() == (0, "")
    assert len(approvals(emulator)) == 1


@pytest.mark.vm_python
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_waits_for_neither_tick_nor_response(
    start: Start, emulator: EmulatorClient, artifact: Path, number: signal.Signals
) -> None:
    emulator.inject_fault("latency", latency_seconds=20, requests="get")
    runner = start("--artifact", str(artifact))
    runner.wait_for("started")
    wait_until(emulator.requests)
    sent = time.monotonic()
    assert runner.stop(number) == (0, "")
    assert time.monotonic() - sent < 10  # neither the answer nor the next poll was due by then
    assert runner.lines[-1] == {**runner.lines[-1], "line": "stopped", "signal": number.name}


def test_an_idle_runner_stops_at_once(start: Start, artifact: Path) -> None:
    runner = start("--artifact", str(artifact), "--interval", "60s", quick=False)
    runner.wait_for("document")
    sent = time.monotonic()
    assert runner.stop() == (0, "")
    assert time.monotonic() - sent < 10  # neither the answer nor the next poll was due by then


def test_once_has_no_time_for_hooks_and_holds(start: Start, emulator: EmulatorClient, tmp_path: Path) -> None:
    (tmp_path / "drains.yml").write_text(HOOKS)
    emulator.schedule("Reboot", ["web_0"])
    runner = start("--policy", str(tmp_path / "drains.yml"), "--once")
    assert runner.end() == (0, "")
    assert runner.wait_for("decision")["eligibility"] == "needs-runner"
    assert approvals(emulator) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Either --policy or --artifact is needed"),
        (("--artifact", "missing.json"), "missing.json: No such file or directory"),
        (("--artifact", "ARTIFACT", "--param", "tolerable_freeze"), "there is no '='"),
        (("--artifact", "ARTIFACT", "--param", "tolerable=3"), "tolerable_freeze"),
        (("--artifact", "ARTIFACT", "--param", "tolerable_freeze=soon"), "tolerable_freeze=soon"),
        (("--artifact", "ARTIFACT", "--api-version", "2019-08-01"), "compiled for api-version 2020-07-01"),
        (("--artifact", "ARTIFACT", "--interval", "0.5s"), "between 1s"),
        (("--artifact", "ARTIFACT", "--interval", "1h"), "between 1s"),
        (("--artifact", "ARTIFACT", "--vm-name", " "), "--vm-name is empty"),
        (("--artifact", "ARTIFACT", "--endpoint", "https://127.0.0.1"), "http only"),
        (("--artifact", "POLICY"), "web-tier.yml"),
        (("--policy", "ARTIFACT_DIR/none"), "none"),
    ],
)
def test_bad_usage_exits_with_2_and_an_explanation(
    artifact: Path, policy: Path, arguments: tuple[str, ...], said: str
) -> None:
    places = {"ARTIFACT_DIR/none": str(artifact.parent / "none"), "ARTIFACT": str(artifact), "POLICY": str(policy)}
    done = forewarn_on_vm("run", *[places.get(argument, argument) for argument in arguments], "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_damaged_artifact_is_not_run(start: Start, artifact: Path) -> None:
    artifact.write_text(artifact.read_text().replace('"approve"', '"hold"'))
    code, error = start("--artifact", str(artifact)).end()
    assert code == 2
    assert str(artifact) in error
    assert "digest" in error


def test_an_artifact_needs_the_standard_library_alone(
    server: EmulatorServer, artifact: Path, policy: Path, package: Path
) -> None:
    """A Python without site-packages runs an artifact; for policy files it says what to do."""

    def run(option: str, path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-m", "forewarn.cli.main", "run", option, path, "--once"]
        environ = {"PYTHONPATH": str(package.parent), "FOREWARN_ENDPOINT": server.url}
        return run_program(*command, env=environ)

    done = run("--artifact", artifact)
    assert (done.returncode, done.stderr) == (0, "")
    refused = run("--policy", policy)
    assert refused.returncode == 2
    assert "--artifact" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_configuration_file_supplies_missing_options(
    start: Start, emulator: EmulatorClient, artifact: Path, tmp_path: Path
) -> None:
    """Paths are relative to the file; a parameter of the command line overrides the file's."""
    config = tmp_path / "etc" / "run.json"
    config.parent.mkdir()
    content = {
        "artifact": f"../{artifact.name}",
        "params": {"tolerable_freeze": 3},
        "dry_run": True,
        "vm_name": "web_0",
    }
    config.write_text(json.dumps(content))
    emulator.schedule("Freeze", "web_0", duration_seconds=5)
    held = start("--config", str(config), "--once")
    assert held.wait_for("decision")["eligibility"] == "refused-by-policy"
    assert held.end()[0] == 0
    would = start("--config", str(config), "--once", "--param", "tolerable_freeze=9")
    assert would.wait_for("would-approve")
    assert would.end()[0] == 0
    assert approvals(emulator) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"artifact": ', "run.json:1:14: Expecting value"),
        ('{"artefact": "policy.json"}', "there is no option 'artefact'"),
        ('{"dry_run": "yes"}', 'dry_run is "yes", not true or false'),
        ('{"artifact": "policy.json", "interval": 0.1}', "the interval is not between 1s"),
        ("[]", "not a JSON object"),
        ("{}", "Either --policy or --artifact is needed"),
        ('{"artifact": ""}', "artifact is empty, not a path"),
        ('{"policy": ["a.yml", ""]}', "policy is not a list of paths"),
        ('{"artifact": "a.json", "state": ""}', "state is empty, not a path"),
    ],
)
def test_a_wrong_configuration_file_says_where_and_what(tmp_path: Path, content: str, said: str) -> None:
    config = tmp_path / "run.json"
    config.write_text(content)
    done = forewarn_on_vm("run", "--config", config, "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
