# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on real hosts, over SSH: the tests of this file are one story, in their order."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools.suite.sizes import NAME, SEED

from ..hosts import Host
from ..lab import Lab
from .control_node import HOOK, POLICY_HEAD, ROLE_PLAY, ROLLOUT, SITE, refusal, status
from .playbooks import Playbooks

NAMES = ("web_0", "web_1", "web_2")
AGAIN = (NAMES[SEED % 3],) if NAME == "small" else NAMES  # where the same once more changes nothing
POLICY = (
    POLICY_HEAD
    + """\
      prepare:
        - {run: [/usr/local/bin/hook]}
        - {unit: drain.service, action: start}
      recover: [{run: [/usr/local/bin/hook]}]
      output: approve
"""
)
TESTS = """\
name: drains
input: {vm: {name: web_0}, event: {Resources: [web_0]}}
section:
  - name: all
    tests:
      - {name: reboot, input: {event: {EventType: Reboot}}, output: approve, rule: drain}
"""
# Outside the runner's sandbox: the runner itself could not write there.
UNIT = "[Service]\nType=oneshot\nExecStart=/usr/bin/touch /root/drained\n"
# What the installed runner is made another one by.
MAKE_OLDER = """\
import zipfile
with zipfile.ZipFile("/opt/forewarn/forewarn.pyz", "a") as runner:
    runner.writestr("older", "")
"""
VARIABLES: dict[str, Any] = {
    "forewarn_serial": "100%",
    "forewarn_policies": ["policies"],
    "forewarn_hooks_write": ["/var/log/hooks"],
    "forewarn_health_seconds": 60,
}


@pytest.fixture(scope="module")
def playbooks(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> Playbooks:
    directory = tmp_path_factory.mktemp("control")
    (directory / "policies").mkdir()
    (directory / "policies" / "drains.yml").write_text(POLICY)
    (directory / "policies" / "drains.test.yml").write_text(TESTS)
    for host in lab.hosts:
        host.write(HOOK, "/usr/local/bin/hook", 0o755)
        host.write(UNIT, "/etc/systemd/system/drain.service")
        host.ssh("mkdir -p /var/log/hooks && systemctl daemon-reload")
    return Playbooks(lab, directory, installed_collection)


def doctor(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.ssh("forewarn doctor --json", check=False).stdout)
    return found


def files(host: Host) -> str:
    """Return what the role has written, with times and digests, and the process."""
    find = "find /etc/forewarn /opt/forewarn /etc/systemd/system/forewarn.service -type f -exec sha256sum {} +"
    return host.ssh(f"{find}; systemctl show -p MainPID,ExecMainStartTimestamp forewarn", check=False).stdout


def main_pid(host: Host) -> str:
    return host.properties("forewarn", "MainPID")["MainPID"]


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def test_unsuitable_host_is_refused_with_a_sentence(lab: Lab, playbooks: Playbooks) -> None:
    old, other, ordinary = lab.hosts
    old.write("#!/bin/sh\necho python=3.7\n", "/usr/local/bin/old-python", 0o755)
    other.ssh("mv /run/systemd/system /run/systemd/system.away")  # which says that systemd has booted the machine
    ordinary.ssh("useradd --create-home ordinary && cp -r ~root/.ssh ~ordinary && chown -R ordinary ~ordinary")
    playbooks.variables("web_0", {"forewarn_python": "/usr/local/bin/old-python"})
    playbooks.variables("web_2", {"ansible_user": "ordinary"})
    (playbooks.directory / SITE).write_text(ROLE_PLAY)
    try:
        played = playbooks.play(SITE, {})
    finally:
        other.ssh("mv /run/systemd/system.away /run/systemd/system")
        playbooks.variables("web_0", {})
        playbooks.variables("web_2", {})
    assert {name: played.recap[name]["failed"] for name in NAMES} == dict.fromkeys(NAMES, 1), played.text
    for sentence in (
        "The runner needs Python 3.8 or newer, and /usr/local/bin/old-python is Python 3.7.",
        "this machine was not booted with systemd.",
        "Run the role as root, for example with become.",
    ):
        assert sentence in played.text
    for host in lab.hosts:
        assert host.ssh("ls -d /etc/forewarn /opt/forewarn", check=False).stdout == ""


def test_a_rehearsal_touches_nothing(lab: Lab, playbooks: Playbooks) -> None:
    rehearsed = playbooks.play(ROLLOUT, VARIABLES, "--check", "--diff", "--limit", "web_1")
    assert rehearsed.changed()["web_1"] > 0
    assert "+WantedBy=multi-user.target" in rehearsed.text
    for host in lab.hosts:
        assert host.ssh("ls -d /etc/forewarn /opt/forewarn", check=False).stdout == ""


def test_second_rollout_changes_nothing(lab: Lab, playbooks: Playbooks) -> None:
    assert set(playbooks.play(ROLLOUT, VARIABLES).changed()) == set(NAMES)
    for host in lab.hosts:
        found = status(host)
        assert (found["runner"]["condition"], found["service"]["state"], found["problems"]) == ("running", "ok", [])
        assert found["runner"]["vm"] == host.name
        shown = host.properties("forewarn", "Type", "UnitFileState", "NRestarts")
        kind = "notify-reload" if host.suite == "trixie" else "notify"
        assert shown == {"Type": kind, "UnitFileState": "enabled", "NRestarts": "0"}
    assert playbooks.play(ROLLOUT, VARIABLES, "--diff", "--limit", ",".join(AGAIN)).changed() == dict.fromkeys(AGAIN, 0)


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
    if host.suite == "trixie":  # there the unit is the role's own in every line
        host.reboot()
    lab.emulator.finish(event_id)
    host.wait_for(lambda: "recover Reboot" in host.read("/var/log/hooks/calls"))
    host.wait_for(lambda: not status(host)["events"])


def test_hooks_share_the_units_memory_and_die_alone(lab: Lab) -> None:
    for host in lab.hosts:
        shown = host.properties("forewarn", "MemoryMax", "TasksMax", "OOMPolicy", "OOMScoreAdjust")
        assert shown == {
            "MemoryMax": str(512 * 2**20),
            "TasksMax": "512",
            "OOMPolicy": "continue",
            "OOMScoreAdjust": "-500",
        }
        assert "time-sync.target" in host.properties("forewarn", "After")["After"].split()


def test_an_event_is_decided_drained_approved_and_recovered(lab: Lab, playbooks: Playbooks) -> None:
    for host in lab.hosts:
        live_through_a_reboot(lab, host)


def test_changed_policies_are_a_reload(lab: Lab, playbooks: Playbooks) -> None:
    """The old artifact is kept."""
    before = {host.name: main_pid(host) for host in lab.hosts}
    policy = playbooks.directory / "policies" / "drains.yml"
    policy.write_text(POLICY.replace("brief freeze.", "short freeze."))
    variables = VARIABLES
    playbooks.variables("all", {"forewarn_params": {"tolerable_freeze": 8}})
    playbooks.variables("web_0", {"forewarn_params": {"tolerable_freeze": 7}})
    changed = playbooks.play(ROLLOUT, variables, "--limit", "web_0,web_2").changed()
    assert changed["web_0"] == changed["web_2"] > 0
    for name in ("web_0", "web_2"):
        host = lab.host(name)
        assert main_pid(host) == before[name]
        config = json.loads(host.read("/etc/forewarn/config.json"))
        assert config["params"] == {"tolerable_freeze": 7 if name == "web_0" else 8}
        assert f"policy-{status(host)['runner']['policy'][7:23]}.json" == Path(config["artifact"]).name
        assert len(host.ssh("ls /etc/forewarn/policy-*.json").stdout.split()) == 2


def test_wrong_policies_are_refused_before_any_change(lab: Lab, playbooks: Playbooks) -> None:
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
        played = playbooks.play(ROLLOUT, {**VARIABLES, "forewarn_policies": [directory.name]})
        assert played.code != 0
        assert message in played.text
        assert "Ask the VM" not in played.text
    played = playbooks.play(ROLLOUT, {**VARIABLES, "forewarn_params": {"tolerable_frieze": 7}})
    assert "no policy declares a parameter tolerable_frieze" in played.text
    assert {host.name: files(host) for host in lab.hosts} == before


@pytest.mark.full
def test_policies_from_git_are_updated_and_reverted(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_1")
    home = playbooks.directory / "repository"
    home.mkdir()
    (home / "drains.test.yml").write_text(TESTS)
    git(home, "init", "--quiet", "--initial-branch=main")
    for tag in ("v1", "v2"):
        (home / "drains.yml").write_text(POLICY.replace("brief freeze.", f"brief freeze, {tag}."))
        git(home, "add", ".")
        git(home, "commit", "--quiet", f"--message={tag}")
        git(home, "tag", tag)
    variables = {**VARIABLES, "forewarn_policies": [], "forewarn_policies_git": home.as_uri()}

    def roll_out(ref: str) -> str:
        played = playbooks.play(ROLLOUT, {**variables, "forewarn_policies_ref": ref}, "--limit", "web_1")
        assert played.changed()["web_1"] > 0
        return str(status(host)["runner"]["policy"])

    host.ssh("python3 -", stdin=MAKE_OLDER)
    host.ssh("systemctl restart forewarn")
    damaged = main_pid(host)
    first, process = roll_out("v1"), main_pid(host)
    assert "older" not in host.ssh("python3 -m zipfile --list /opt/forewarn/forewarn.pyz").stdout
    assert main_pid(host) != damaged
    second = roll_out("main")
    assert second != first
    assert status(host)["runner"]["source"]["ref"] == "main"
    assert status(host)["runner"]["source"]["commit"] == git(home, "rev-parse", "main")
    assert roll_out("v1") == first
    assert main_pid(host) == process, "policies are a reload"


def test_failed_rollout_is_reverted_and_stops(lab: Lab, playbooks: Playbooks) -> None:
    before = {host.name: host.read("/etc/forewarn/config.json") for host in lab.hosts}
    others = {host.name: files(host) for host in lab.hosts[1:]}
    variables = {**VARIABLES, "forewarn_endpoint": "http://127.0.0.1:9", "forewarn_health_seconds": 4}
    played = playbooks.play(ROLLOUT, {**variables, "forewarn_serial": [1, "100%"]})
    assert played.code != 0
    assert "The previous files are restored." in played.text
    assert [played.recap[name]["failed"] for name in NAMES] == [1, 0, 0]
    assert {host.name: files(host) for host in lab.hosts[1:]} == others
    assert {host.name: host.read("/etc/forewarn/config.json") for host in lab.hosts} == before
    host = lab.hosts[0]
    host.wait_for(lambda: status(host)["service"]["state"] == "ok")


def test_fleet_is_shown_in_terminal_and_page(lab: Lab, playbooks: Playbooks) -> None:
    event_id = lab.emulator.schedule("Redeploy", ["web_1"])
    lab.host("web_1").wait_for(lambda: status(lab.host("web_1"))["events"])
    played = playbooks.play("forewarn.azure.status", {"forewarn_hosts": "web_0,web_1"})
    assert played.code == 0, played.text
    assert re.search(r"Redeploy in 9 min .*\n +hold: no rule .*\n +web_1 +held", played.text), played.text
    assert "2 hosts, 0 with trouble; 1 event pending" in played.text
    report = playbooks.directory / "fleet.html"
    assert playbooks.play("forewarn.azure.report", {"forewarn_report": str(report)}).code == 0
    content = report.read_text()
    assert event_id in content
    assert "Reboot finished" in content
    assert not re.search(r"(?:src|href)=|https?://|<script", content)
    lab.emulator.cancel(event_id)


def test_the_doctor_finds_what_is_so(lab: Lab) -> None:
    """The clock of a container is the machine's, which nothing in it synchronises."""
    for host in lab.hosts:
        checks = {check["name"]: check for check in doctor(host)["checks"]}
        others = {name: check["state"] for name, check in checks.items() if name not in ("clock", "platform")}
        assert others == dict.fromkeys(others, "ok"), checks
        assert len(others) > 8
    host = lab.hosts[0]
    host.ssh("systemctl disable forewarn; chmod -x /usr/local/bin/hook")
    checks = {check["name"]: check for check in doctor(host)["checks"]}
    host.ssh("systemctl enable forewarn; chmod +x /usr/local/bin/hook")
    assert checks["unit"]["state"] != "ok"
    assert checks["hooks"]["state"] == "trouble"
    assert "/usr/local/bin/hook" in checks["hooks"]["text"]


@pytest.mark.full
def test_dry_run_is_healthy_and_made_live_again(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_1")
    probed = {**VARIABLES, "forewarn_probe_listen": "0.0.0.0:9780"}

    def ask(path: str) -> str:
        """Return the status that is answered at the address that other machines use."""
        url = f"http://{host.address}:9780/{path}"
        script = f"""
import urllib.error, urllib.request
try: print(urllib.request.urlopen("{url}", timeout=10).status)
except urllib.error.HTTPError as error: print(error.code)
"""
        return host.ssh(f"python3 -c '{script}'").stdout.strip()

    live = len(json.loads(host.ssh("forewarn history --json").stdout)["events"])
    played = playbooks.play(ROLLOUT, {**probed, "forewarn_dry_run": True}, "--limit", "web_1")
    assert played.changed()["web_1"] > 0
    assert "This is a dry run: nothing is approved and no hook runs." in played.text
    assert playbooks.play(ROLLOUT, {**probed, "forewarn_dry_run": True}, "--limit", "web_1").changed() == {"web_1": 0}
    found = status(host)
    assert (found["runner"]["dry_run"], found["problems"]) == (True, [])
    assert found["state_directory"] == "/var/lib/forewarn/dry-run"
    assert (ask("healthz"), ask("readyz")) == ("200", "200")

    calls = host.ssh("touch /var/log/hooks/calls; cat /var/log/hooks/calls").stdout
    event_id = lab.emulator.schedule("Reboot", ["web_1"])
    host.wait_for(lambda: status(host)["events"] and status(host)["events"][0]["would"])
    assert "run prepare hook run /usr/local/bin/hook" in status(host)["events"][0]["would"]
    shown = playbooks.play("forewarn.azure.status", {"forewarn_hosts": "web_1"})
    assert re.search(r"web_1 +\S+, dry run", shown.text), shown.text
    lab.emulator.start(event_id)
    host.wait_for(lambda: ask("readyz") == "503")
    lab.emulator.finish(event_id)
    host.wait_for(lambda: ask("readyz") == "200")
    assert host.read("/var/log/hooks/calls") == calls

    unsaid = refusal(playbooks.play(ROLLOUT, VARIABLES, "--limit", "web_1"), "web_1")
    assert "In use is a dry run, and forewarn_dry_run is not set" in unsaid
    wanted = {**VARIABLES, "forewarn_dry_run": False, "forewarn_accept_less": True}  # the probe is gone
    assert playbooks.play(ROLLOUT, wanted, "--limit", "web_1").changed()["web_1"] > 0
    found = status(host)
    assert (found["runner"]["dry_run"], found["state_directory"]) == (False, "/var/lib/forewarn")
    assert len(json.loads(host.ssh("forewarn history --json").stdout)["events"]) == live
    (past,) = json.loads(host.ssh("forewarn history --dry-run --json").stdout)["events"]
    assert (past["event_id"], past["approvals"]) == (event_id, 0)


def test_nothing_is_left_but_the_journal(lab: Lab, playbooks: Playbooks) -> None:
    absent = {"forewarn_state": "absent"}
    before = {host.name: files(host) for host in lab.hosts}
    assert playbooks.play(SITE, absent, "--check", "--limit", "web_1").changed()["web_1"] > 0
    assert {host.name: files(host) for host in lab.hosts} == before
    assert min(playbooks.play(SITE, absent).changed().values()) > 0
    assert playbooks.play(SITE, absent, "--limit", ",".join(AGAIN)).changed() == dict.fromkeys(AGAIN, 0)
    paths = "/etc/forewarn /opt/forewarn /usr/local/bin/forewarn /etc/systemd/system/forewarn.service"
    for host in lab.hosts:
        assert host.ssh(f"ls -d {paths}", check=False).stdout == ""
        assert host.properties("forewarn", "LoadState")["LoadState"] == "not-found"
        assert host.ssh("ls -d /var/lib/forewarn").stdout
    playbooks.play(SITE, {**absent, "forewarn_purge": True}, "--limit", "web_0").changed()
    assert lab.host("web_0").ssh("ls -d /var/lib/forewarn", check=False).stdout == ""
