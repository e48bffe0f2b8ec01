# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` beside a real runner and the emulator, from forewarn.pyz, by each Python that is here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli.doctor import command as doctor
from forewarn.cli.doctor import service
from forewarn.cli.doctor.check import OK, TROUBLE, WARNING, Check
from forewarn.cli.output.console import Console
from forewarn.cli.output.page import Page
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.commands import run_program
from tools.sites.pythons import SUPPORTED, python
from tools.sites.runner_process import Process, Start, compiled
from tools.sites.waiting import wait_until
from tools.worlds.fake_machines import UNIT, FakeMachine

pytestmark = pytest.mark.versions

POLICY = "name: watch\nrule: {match: [{id: all, output: hold, notify: [{run: ['true']}]}]}\n"


@pytest.fixture
def config(tmp_path: Path, server: EmulatorServer) -> Path:
    compiled(tmp_path, POLICY)
    path = tmp_path / "config.json"
    state = str(tmp_path / "state-web_0")
    content = {"artifact": "policy.json", "endpoint": server.vm_endpoint("web_0"), "state": state}
    path.write_text(json.dumps(content))
    return path


def running(start: Start, config: Path) -> Process:
    """Start the runner of that configuration, and wait until it knows its name and has written that."""
    runner = start("--config", str(config))
    runner.wait_for("identity")
    runner.wait_for("document")
    state = config.parent / "state-web_0" / "heartbeat"
    wait_until(lambda: b'"vm":"web_0"' in state.read_bytes().replace(b" ", b""))
    return runner


def in_words(
    pyz: Path, version: str, config: Path, *arguments: str, endpoint: str = "http://127.0.0.1:9"
) -> subprocess.CompletedProcess[str]:
    command = [python(version), "-I", "-S", "-W", "error", str(pyz), "doctor", "--config", str(config), *arguments]
    return run_program(*command, env={"PATH": os.environ["PATH"], "FOREWARN_ENDPOINT": endpoint})


# What only some of the versions between break is rare, and costs a runner each.
@pytest.mark.parametrize(
    "version",
    [SUPPORTED[0], *(pytest.param(each, marks=pytest.mark.full) for each in SUPPORTED[1:-1]), SUPPORTED[-1]],
)
def test_beside_a_real_runner(start: Start, config: Path, pyz: Path, version: str, emulator: EmulatorClient) -> None:
    running(start, config)
    emulator.schedule("Reboot", ["web_0", "web_1"])
    done = in_words(pyz, version, config, "--json")
    report = json.loads(done.stdout)
    assert (report["forewarn"], done.stderr) == ({"schema": "doctor", "version": 1}, "")
    found: dict[str, Any] = {check["name"]: check for check in report["checks"]}
    for name in ("python", "config", "policy", "hooks", "runner", "journal", "service", "name"):
        assert found[name]["state"] == OK, found[name]
    assert found["name"]["text"] == "web_0, affected by 1 of 1 listed events"
    assert found["policy"]["text"].startswith("watch; sha256:")
    assert found["platform"]["state"] == "not checked"
    assert report["trouble"] == sum(check["state"] == TROUBLE for check in report["checks"])
    assert done.returncode == (1 if report["trouble"] else 0)


def test_after_the_runner_has_ended(start: Start, config: Path, pyz: Path) -> None:
    running(start, config).stop()
    done = in_words(pyz, SUPPORTED[0], config)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("trouble      runner    not running: stopped by SIGTERM")]
    assert lines[lines.index(line) + 1].startswith(" " * 23 + "Read its log: journalctl -u forewarn.service")
    assert "\033" not in done.stdout
    assert lines[-1].count(",") == 3


def test_nothing_is_rolled_out(tmp_path: Path, pyz: Path, server: EmulatorServer) -> None:
    # A service that knows no such VM says so at once; one that is not there is waited for.
    nobody = server.vm_endpoint("web_0").replace("web_0", "nobody")
    command = (SUPPORTED[0], tmp_path / "config.json", "--state", str(tmp_path / "state"), "--json")
    done = in_words(pyz, *command, endpoint=nobody)
    assert done.returncode == 1
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["config"]["state"] == found["runner"]["state"] == found["service"]["state"] == TROUBLE
    assert all(found[name]["hint"] for name in ("config", "runner", "service"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"artifact": "policy.json",', "config.json:1:"),
        ('{"artifact": "nothing.json"}', "nothing.json: No such file"),
        ('{"artefact": "policy.json"}', "there is no option 'artefact'"),
    ],
)
def test_a_configuration_that_the_service_would_refuse(
    config: Path, pyz: Path, server: EmulatorServer, content: str, said: str
) -> None:
    config.write_text(content)
    done = in_words(pyz, SUPPORTED[0], config, "--json", endpoint=server.vm_endpoint("web_0"))
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "config"]
    assert (done.returncode, check["state"]) == (1, TROUBLE)
    assert said in check["text"]


def test_bad_usage(pyz: Path, config: Path) -> None:
    assert in_words(pyz, SUPPORTED[0], config, "--all").returncode == 2


# On a machine that has everything


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    built = FakeMachine(tmp_path / "root")
    # The clock of the fake unit is of a machine that has been up for longer.
    built.units[UNIT]["ActiveEnterTimestampMonotonic"] = "1"
    monkeypatch.setattr(doctor, "Machine", lambda: built)
    monkeypatch.setattr(service, "_PAUSE_SECONDS", 0.0)
    return built


def test_all_is_well(
    start: Start,
    config: Path,
    machine: FakeMachine,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running(start, config)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["doctor", "--config", str(config)]) == 0
    text = capsys.readouterr().out
    assert "\033[32mok           unit" in text
    assert "12 ok, 0 warning, 0 trouble, 1 not checked" in text


def test_warnings_are_no_trouble(
    start: Start, config: Path, machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    running(start, config)
    machine.units[UNIT]["NeedDaemonReload"] = "yes"
    assert cli.main(["doctor", "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == 1
    machine.units[UNIT]["UnitFileState"] = "disabled"
    assert cli.main(["doctor", "--config", str(config), "--json"]) == 1


def test_no_request_where_this_may_not_be_azure(
    config: Path, machine: FakeMachine, emulator: EmulatorClient, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(config.read_text())
    del content["endpoint"]
    config.write_text(json.dumps(content))
    assert cli.main(["doctor", "--config", str(config), "--json"]) == 1
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert found["platform"]["state"] == TROUBLE
    assert found["service"]["state"] == found["name"]["state"] == "not checked"
    assert emulator.requests() == []


def test_foreign_text_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.show(Page(Console(sys.stdout)), [Check("x", WARNING, "a\nok  y\033[2J", "b\nc")])
    assert capsys.readouterr().out.splitlines()[:2] == [
        "warning      x  a\\nok  y\\x1b[2J",
        " " * 16 + "b\\nc",
    ]
