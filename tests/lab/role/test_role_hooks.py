# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels with the policies to real hosts: hooks, secrets, directories; the way back; a drill; the removal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tools.suite.sizes import NAME

from ..hosts import Host
from ..lab import Lab
from ..sizes import FEW_HOSTS
from .control_node import HOOK, POLICY, ROLLOUT, SITE, VARIABLES, control_node, refusal, status
from .playbooks import Playbooks

pytestmark = pytest.mark.in_turn(4, together=True)
LAB_HOSTS = FEW_HOSTS
CALLS = "/var/log/hooks/calls"
SHOW = "cat /etc/forewarn/config.json; readlink /opt/forewarn/hooks; cat /opt/forewarn/hooks/*"


@pytest.fixture(scope="module")
def playbooks(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> Playbooks:
    books = control_node(lab, tmp_path_factory.mktemp("control"), installed_collection)
    for host in lab.hosts:
        host.ssh("useradd --system app")
    writable = [{"path": "/var/log/hooks", "owner": "root", "mode": "0750"}, {"path": "/srv/app/state", "owner": "app"}]
    books.play(ROLLOUT, {**with_secret("first hunter2"), "forewarn_hooks_write": writable}).changed()
    return books


def with_secret(secret: str) -> dict[str, Any]:
    return {**VARIABLES, "forewarn_credentials": {"token": secret, "other.name": 'it\'s "other"'}}


def drill(playbooks: Playbooks, host: Host) -> str:
    """Rehearse a reboot, and return what the playbook told."""
    quick = {"forewarn_hosts": host.name, "forewarn_drill_notice": "20s", "forewarn_drill_duration": "1s"}
    played = playbooks.play("forewarn.azure.drill", quick)
    assert played.code == 0, played.text[-6000:]
    return played.text


def main_pid(host: Host) -> str:
    return host.properties("forewarn", "MainPID")["MainPID"]


def check_secret(lab: Lab, secret: str) -> None:
    for host in lab.hosts:
        given = "/run/credentials/forewarn.service"
        assert host.ssh(f"cat {given}/token").stdout == secret
        assert host.ssh(f"cat {given}/other.name").stdout == 'it\'s "other"'
        kept = host.ssh("stat -c '%n %a %U' /etc/forewarn/credentials /etc/forewarn/credentials/*").stdout
        assert re.findall(r" (\d+) (\w+)$", kept, re.MULTILINE)[0] == ("700", "root")
        plain = "hunter2" in host.ssh("cat /etc/forewarn/credentials/*").stdout
        unit = host.read("/etc/systemd/system/forewarn.service")
        assert plain is ("LoadCredentialEncrypted=" not in unit)
        assert "hunter2" not in unit
        print(f"{host.suite}: credentials are {'not ' if plain else ''}encrypted")


def test_changed_secret_is_a_credential_and_a_restart(lab: Lab, playbooks: Playbooks) -> None:
    check_secret(lab, "first hunter2")
    processes = {host.name: main_pid(host) for host in lab.hosts}
    played = playbooks.play(SITE, with_secret("second hunter2"), "-vv", "--diff")
    assert played.code == 0, played.text[-3000:]
    assert "hunter2" not in played.text
    check_secret(lab, "second hunter2")
    for host in lab.hosts:
        assert main_pid(host) != processes[host.name]


@pytest.mark.full  # at size small, test_role_cores sees that
def test_the_same_secret_again_changes_nothing(playbooks: Playbooks) -> None:
    assert playbooks.play(SITE, with_secret("second hunter2")).changed() == dict.fromkeys(LAB_HOSTS, 0)


def test_directories_keep_owners_and_unused_credentials_disappear(lab: Lab, playbooks: Playbooks) -> None:
    for host in lab.hosts:
        shown = host.ssh("stat -c '%n %U %G %a' /var/log/hooks /srv/app/state").stdout.splitlines()
        assert shown == ["/var/log/hooks root root 750", "/srv/app/state app root 755"]
        # What exists stays as it is, unless an owner or a mode is asked for.
        host.ssh("chown app /var/log/hooks")
    playbooks.play(SITE, VARIABLES).changed()
    for host in lab.hosts:
        assert host.ssh("stat -c %U /var/log/hooks").stdout == "app\n"
        host.ssh("chown root /var/log/hooks")
        assert host.ssh("ls -A /etc/forewarn/credentials").stdout == ""
        assert host.ssh("ls /run/credentials/forewarn.service/token", check=False).stdout == ""


def test_drill_on_one_host_is_reported(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.hosts[-1]
    text = drill(playbooks, host)
    assert "prepare hook run /opt/forewarn/hooks/drain: succeeded" in text
    assert "recover hook run /opt/forewarn/hooks/drain: succeeded" in text
    assert "The event would have been approved, and 2 hooks ran without a failure." in text
    assert host.read(CALLS) == "prepare Reboot\nrecover Reboot\n"
    assert [request for request in lab.emulator.requests() if request["method"] == "POST"] == []


def test_approvals_are_paused_on_hosts_and_resumed(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.hosts[-1]
    where = {"forewarn_hosts": host.name}
    missing = playbooks.play("forewarn.azure.pause", {**where, "forewarn_pause_for": "2h"})
    assert refusal(missing, host.name).startswith("forewarn_pause_reason is missing")
    asked = {**where, "forewarn_pause_for": "2h", "forewarn_pause_reason": "release 4.2; 'quoted'"}
    paused = playbooks.play("forewarn.azure.pause", asked)
    assert paused.code == 0, paused.text[-3000:]
    assert "paused: until " in paused.text
    event = lab.emulator.schedule("Reboot", [host.name], notice_seconds=600)
    host.wait_for(lambda: "waits for  the end of the pause" in host.ssh("forewarn status", check=False).stdout)
    host.ssh("systemctl kill -s KILL forewarn")
    host.wait_for(lambda: host.properties("forewarn", "ActiveState")["ActiveState"] == "active")
    shown = playbooks.play("forewarn.azure.status", {})
    assert "APPROVALS PAUSED on 1 host" in shown.text
    assert f"release 4.2; 'quoted': {host.name}" in shown.text
    assert [request for request in lab.emulator.requests() if request["method"] == "POST"] == []
    asked["forewarn_pause_for"] = "soon"
    assert "'soon' is not a duration" in refusal(playbooks.play("forewarn.azure.pause", asked), host.name)
    assert playbooks.play("forewarn.azure.resume", where).changed()[host.name] == 1
    host.wait_for(lambda: lab.emulator.event(event)["status"] == "Started")
    lab.emulator.finish(event)
    host.wait_for(lambda: not status(host)["events"])
    assert playbooks.play("forewarn.azure.resume", where).changed()[host.name] == 0


@pytest.mark.full
def test_drill_is_for_one_running_host(lab: Lab, playbooks: Playbooks) -> None:
    played = playbooks.play("forewarn.azure.drill", {})
    assert refusal(played, "web_0").startswith("A drill takes a host out of service, so it is for one host at a time")
    host = lab.host("web_1")
    host.ssh("systemctl stop forewarn")
    message = refusal(playbooks.play("forewarn.azure.drill", {"forewarn_hosts": "web_1"}), "web_1")
    host.ssh("systemctl start forewarn")
    assert message.startswith("The drill was not handed over. ")
    assert "runner" in message


@pytest.fixture(scope="module")
def other_hooks(playbooks: Playbooks) -> dict[str, Any]:
    """Return the variables of a policy with one hook more, written beside the others."""
    (playbooks.directory / "more" / "lib").mkdir(parents=True)
    (playbooks.directory / "more" / "undrain").write_text(HOOK.replace("echo ", "echo new "))
    (playbooks.directory / "more" / "undrain").chmod(0o755)
    (playbooks.directory / "more" / "lib" / "names").write_text("not a program\n")
    (playbooks.directory / "newer").mkdir()
    newer = POLICY.replace("hooks/drain]}]\n      output", "hooks/undrain]}]\n      output")
    (playbooks.directory / "newer" / "drains.yml").write_text(newer)
    return {**VARIABLES, "forewarn_policies": ["newer"], "forewarn_hooks": ["hooks/drain", "more"]}


@pytest.mark.full
def test_a_rehearsal_shows_other_hooks(lab: Lab, playbooks: Playbooks, other_hooks: dict[str, Any]) -> None:
    host = lab.host("web_0")
    before = host.ssh(SHOW).stdout
    checked = playbooks.play(SITE, other_hooks, "--limit", "web_0", "--check", "--diff")
    assert checked.code == 0, checked.text[-3000:]
    assert "-      recover: [{run: [/opt/forewarn/hooks/drain]}]" in checked.text
    assert "+      recover: [{run: [/opt/forewarn/hooks/undrain]}]" in checked.text
    assert host.ssh(SHOW).stdout == before


def test_hooks_change_with_policies_and_are_reverted(
    lab: Lab, playbooks: Playbooks, other_hooks: dict[str, Any]
) -> None:
    host = lab.host("web_0")
    before = host.ssh(SHOW).stdout
    process = main_pid(host)
    assert playbooks.play(SITE, other_hooks, "--limit", "web_0").changed()["web_0"] > 0
    listed = host.ssh("cd /opt/forewarn/hooks/ && find . -type f -printf '%P %m %u\n' | sort").stdout
    assert listed == "drain 755 root\nlib/names 644 root\nundrain 755 root\n"
    drill(playbooks, host)
    assert host.read(CALLS).splitlines()[-2:] == ["prepare Reboot", "new recover Reboot"]

    for _ in range(1 if NAME == "small" else 2):  # again is the same
        back = playbooks.play(SITE, {**other_hooks, "forewarn_policy_version": "previous"}, "--limit", "web_0")
        assert back.code == 0, back.text[-3000:]
        assert host.ssh(SHOW).stdout == before
    assert status(host)["problems"] == []
    drill(playbooks, host)
    assert host.read(CALLS).splitlines()[-2:] == ["prepare Reboot", "recover Reboot"]
    assert main_pid(host) == process, "policies and hooks are a reload"


@pytest.mark.full
def test_first_policy_has_no_previous_version(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.host("web_2")
    before = host.ssh("cat /etc/forewarn/config.json").stdout
    played = playbooks.play(SITE, {**VARIABLES, "forewarn_policy_version": "previous"}, "--limit", "web_2")
    assert refusal(played, "web_2").startswith("There is no previous policy on this VM")
    assert host.ssh("cat /etc/forewarn/config.json").stdout == before
    assert status(host)["problems"] == []


def test_prepared_host_keeps_its_runner(lab: Lab, playbooks: Playbooks) -> None:
    host = lab.hosts[-1]
    event_id = lab.emulator.schedule("Reboot", [host.name])
    host.wait_for(lambda: lab.emulator.event(event_id)["status"] == "Started")
    message = refusal(playbooks.play("forewarn.azure.remove", {"forewarn_hosts": host.name}), host.name)
    assert message.startswith("This host was prepared for an event that has not ended, by run /opt/forewarn/hooks/")
    lab.emulator.finish(event_id)
    host.wait_for(lambda: not status(host)["events"])
    played = playbooks.play("forewarn.azure.remove", {})
    assert played.code == 0, played.text[-3000:]
    paths = "/etc/forewarn /opt/forewarn /usr/local/bin/forewarn /etc/systemd/system/forewarn.service"
    for each in lab.hosts:
        assert each.ssh(f"ls -d {paths}", check=False).stdout == ""
        assert each.ssh("ls -d /var/lib/forewarn").stdout
