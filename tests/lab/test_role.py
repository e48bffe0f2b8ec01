# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on real hosts, over SSH: the tests of this file are one story, in their order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .hosts import Host
from .lab import Lab
from .playbooks import Playbooks

ROLLOUT = "forewarn.azure.rollout"
NAMES = ("web_0", "web_1", "web_2")
POLICY = """\
name: drains
description: Drains before anything but a brief freeze.
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: brief
      condition: event.EventType == "Freeze" && event.DurationInSeconds in [5] && params.tolerable_freeze > 5
      output: approve
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      prepare:
        - {run: [/usr/local/bin/hook]}
        - {unit: drain.service, action: start}
      recover: [{run: [/usr/local/bin/hook]}]
      output: approve
"""
TESTS = """\
name: drains
input: {vm: {name: web_0}, event: {Resources: [web_0]}}
section:
  - name: all
    tests:
      - {name: reboot, input: {event: {EventType: Reboot}}, output: approve, rule: drain}
"""
HOOK = '#!/bin/sh\necho "$FOREWARN_PHASE $FOREWARN_EVENT_TYPE" >> /var/log/hooks/calls\n'
# Outside the runner's sandbox: the runner itself could not write there.
UNIT = "[Service]\nType=oneshot\nExecStart=/usr/bin/touch /root/drained\n"
VARIABLES: dict[str, Any] = {
    "forewarn_serial": "100%",
    "runner_policies": ["policies"],
    "runner_hooks_write": ["/var/log/hooks"],
    "runner_health_seconds": 60,
}


@pytest.fixture(scope="module")
def playbooks(lab: Lab, tmp_path_factory: pytest.TempPathFactory, collections_path: Path) -> Playbooks:
    directory = tmp_path_factory.mktemp("control")
    (directory / "policies").mkdir()
    (directory / "policies" / "drains.yml").write_text(POLICY)
    (directory / "policies" / "drains.test.yml").write_text(TESTS)
    for host in lab.hosts:
        host.write(HOOK, "/usr/local/bin/hook", 0o755)
        host.write(UNIT, "/etc/systemd/system/drain.service")
        host.ssh("mkdir -p /var/log/hooks && systemctl daemon-reload")
    return Playbooks(lab, directory, collections_path)


def status(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.ssh("forewarn status --json", check=False).stdout)
    return found


def files(host: Host) -> str:
    """Return what the role has written, with times and digests, and the process."""
    find = "find /etc/forewarn /opt/forewarn /etc/systemd/system/forewarn.service -type f -exec sha256sum {} +"
    return host.ssh(f"{find}; systemctl show -p MainPID,ExecMainStartTimestamp forewarn", check=False).stdout


def main_pid(host: Host) -> str:
    return host.properties("forewarn", "MainPID")["MainPID"]


def test_a_rehearsal_touches_nothing(lab: Lab, playbooks: Playbooks) -> None:
    assert min(playbooks.play(ROLLOUT, VARIABLES, "--check", "--diff").changed().values()) > 0
    for host in lab.hosts:
        assert host.ssh("ls -d /etc/forewarn /opt/forewarn", check=False).stdout == ""


def test_it_works_when_the_playbook_has_ended_and_a_second_run_changes_nothing(lab: Lab, playbooks: Playbooks) -> None:
    assert set(playbooks.play(ROLLOUT, VARIABLES).changed()) == set(NAMES)
    for host in lab.hosts:
        found = status(host)
        assert (found["runner"]["condition"], found["service"]["state"], found["problems"]) == ("running", "ok", [])
        assert found["runner"]["vm"] == host.name
        shown = host.properties("forewarn", "Type", "UnitFileState", "NRestarts")
        kind = "notify-reload" if host.suite == "trixie" else "notify"
        assert shown == {"Type": kind, "UnitFileState": "enabled", "NRestarts": "0"}
    assert playbooks.play(ROLLOUT, VARIABLES, "--diff").changed() == dict.fromkeys(NAMES, 0)


def test_the_sandbox_is_tight(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    for host in lab.hosts:
        text = host.ssh("systemd-analyze security --no-pager forewarn").stdout
        match = re.search(r"Overall exposure level for forewarn.service: ([\d.]+)", text)
        assert match, text
        with capsys.disabled():
            print(f"\nsystemd-analyze security, {host.suite}: {match[1]}")
        assert float(match[1]) <= 2.5


def live_through_a_reboot(lab: Lab, host: Host) -> None:
    event_id = lab.emulator.schedule("Reboot", [host.name])
    host.wait_for(lambda: lab.emulator.event(event_id)["status"] == "Started")
    assert host.read("/var/log/hooks/calls") == "prepare Reboot\n"
    assert host.ssh("ls /root/drained").stdout
    lab.emulator.finish(event_id)
    host.wait_for(lambda: "recover Reboot" in host.read("/var/log/hooks/calls"))
    host.wait_for(lambda: not status(host)["events"])


def test_an_event_is_decided_drained_approved_and_recovered(lab: Lab, playbooks: Playbooks) -> None:
    for host in lab.hosts:
        live_through_a_reboot(lab, host)


def test_other_policies_and_parameters_are_a_reload_and_the_old_artifact_is_kept(
    lab: Lab, playbooks: Playbooks
) -> None:
    before = {host.name: main_pid(host) for host in lab.hosts}
    policy = playbooks.directory / "policies" / "drains.yml"
    policy.write_text(POLICY.replace("brief freeze.", "short freeze."))
    variables = {**VARIABLES, "runner_params": {"tolerable_freeze": 7}}
    assert playbooks.play(ROLLOUT, variables, "--limit", "web_0,web_2").changed() == {"web_0": 3, "web_2": 3}
    for name in ("web_0", "web_2"):
        host = lab.host(name)
        assert main_pid(host) == before[name]
        config = json.loads(host.read("/etc/forewarn/config.json"))
        assert config["params"] == {"tolerable_freeze": 7}
        assert status(host)["runner"]["policy"].partition(":")[2].startswith(config["artifact"][7:-5])
        assert len(host.ssh("ls /etc/forewarn/policy-*.json").stdout.split()) == 2


def test_policies_that_are_wrong_are_refused_and_no_host_is_touched(lab: Lab, playbooks: Playbooks) -> None:
    before = {host.name: files(host) for host in lab.hosts}
    wrong = {
        "broken.yml": (POLICY.replace("event.EventType", "event.EvntType"), TESTS, "event has no field EvntType"),
        "untrue.yml": (POLICY, TESTS.replace("output: approve", "output: hold"), "expected  hold"),
    }
    for name, (policy, tests, message) in wrong.items():
        directory = playbooks.directory / f"wrong-{name}"
        directory.mkdir()
        (directory / "drains.yml").write_text(policy)
        (directory / "drains.test.yml").write_text(tests)
        played = playbooks.play(ROLLOUT, {**VARIABLES, "runner_policies": [directory.name]})
        assert played.code != 0
        assert message in played.text
        assert "Look at the VM" not in played.text
    played = playbooks.play(ROLLOUT, {**VARIABLES, "runner_params": {"tolerable_frieze": 7}})
    assert "no policy declares a parameter tolerable_frieze" in played.text
    assert {host.name: files(host) for host in lab.hosts} == before


def test_what_does_not_work_is_taken_back(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_2")
    before = host.read("/etc/forewarn/config.json")
    variables = {**VARIABLES, "runner_endpoint": "http://127.0.0.1:9", "runner_health_seconds": 6}
    played = playbooks.play(ROLLOUT, variables, "--limit", "web_2")
    assert played.code != 0
    assert "What was there before is back." in played.text
    assert host.read("/etc/forewarn/config.json") == before
    host.wait_for(lambda: status(host)["service"]["state"] == "ok")


def test_the_fleet_is_shown_in_the_terminal_and_on_a_page(lab: Lab, playbooks: Playbooks) -> None:
    event_id = lab.emulator.schedule("Redeploy", ["web_1"])
    lab.host("web_1").wait_for(lambda: status(lab.host("web_1"))["events"])
    played = playbooks.play("forewarn.azure.status", {"forewarn_hosts": "web_0,web_1"})
    assert re.search(r"web_1 +running +ok +[0-9a-f]{12} +Redeploy held, in 9 min", played.text), played.text
    assert "2 hosts, 0 with trouble; 1 event pending" in played.text
    report = playbooks.directory / "fleet.html"
    assert playbooks.play("forewarn.azure.report", {"forewarn_report": str(report)}).code == 0
    content = report.read_text()
    assert event_id in content
    assert "Reboot finished" in content
    assert not re.search(r"(?:src|href)=|https?://|<script", content)
    lab.emulator.cancel(event_id)


def test_nothing_is_left_but_the_journal(lab: Lab, playbooks: Playbooks) -> None:
    (playbooks.directory / "remove.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  roles: [forewarn.azure.runner]\n"
    )
    absent = {"runner_state": "absent"}
    assert min(playbooks.play("remove.yml", absent).changed().values()) > 0
    assert playbooks.play("remove.yml", absent).changed() == dict.fromkeys(NAMES, 0)
    paths = "/etc/forewarn /opt/forewarn /usr/local/bin/forewarn /etc/systemd/system/forewarn.service"
    for host in lab.hosts:
        assert host.ssh(f"ls -d {paths}", check=False).stdout == ""
        assert host.properties("forewarn", "LoadState")["LoadState"] == "not-found"
        assert host.ssh("ls -d /var/lib/forewarn").stdout
    playbooks.play("remove.yml", {**absent, "runner_purge": True}).changed()
    for host in lab.hosts:
        assert host.ssh("ls -d /var/lib/forewarn", check=False).stdout == ""
