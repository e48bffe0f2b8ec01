# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` on Windows, in the foreground: events, what stands beside it, and what it refuses."""

from __future__ import annotations

import json

import pytest
import requests
from tools.servers.listener_client import free_port
from tools.servers.webhooks import Webhook
from tools.sites.waiting import wait_until
from tools.worlds.windows.vm import ARTIFACT, CONFIG, DATA, STATE, WindowsVm

SAY = r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_EVENT_TYPE% %FOREWARN_ATTEMPT% %~1"
POLICY = """
name: windows
rule:
  match:
    - {id: started, condition: event.EventStatus == "Started", output: hold}
    - id: short-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve
    - id: reboot
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare: [{run: ['C:\\hooks\\drain.cmd', web], timeout: 1m}]
      recover: [{run: ['C:\\hooks\\drain.cmd', web], timeout: 1m}]
    - {id: rest, output: hold}
"""


@pytest.fixture(autouse=True)
def installed(vm: WindowsVm) -> None:
    vm.hook("drain", SAY)
    vm.policy(POLICY)


def test_short_freeze_is_approved(vm: WindowsVm) -> None:
    runner = vm.start()
    event = vm.emulator.schedule("Freeze", ["web_0"], duration_seconds=5, notice_seconds=600, impact_seconds=0)
    runner.wait_for("approved", event_ids=[event])
    assert vm.approvals() == [[event]]
    vm.wait_until_over()


def test_reboot_is_prepared_approved_and_recovered(vm: WindowsVm) -> None:
    runner = vm.start()
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    runner.wait_for("approved", event_ids=[event])
    assert vm.said() == ["prepare Reboot 1 web"]
    vm.wait_until_over()
    assert vm.said() == ["prepare Reboot 1 web", "recover Reboot 1 web"]
    assert vm.approvals() == [[event]]
    history = vm.history()[event]
    assert (history["outcome"], history["approvals"]) == ("finished", 1)


def test_second_runner_is_refused(vm: WindowsVm) -> None:
    """By the lock of the directory, and, with a directory of its own, by the machine's."""
    vm.start().wait_for("started")
    for state, says in ((STATE, f"{STATE} is in use by"), (rf"{DATA}\other", "both would run the hooks")):
        again = vm.forewarn("run", "--artifact", ARTIFACT, "--state", state)
        assert again.returncode != 0
        assert "another runner" in again.stderr
        assert says in again.stderr


def test_commands_work_beside_a_runner(vm: WindowsVm) -> None:
    runner = vm.start()
    event = vm.emulator.schedule("Terminate", ["web_0"], notice_seconds=600)
    runner.wait_for("decision", event_id=event)
    assert [listed["event"]["EventId"] for listed in vm.json("status")["events"]] == [event]
    assert list(vm.history()) == [event]
    assert event in vm.forewarn("events").stdout
    doctor = {check["name"]: check["state"] for check in json.loads(vm.forewarn("doctor", "--json").stdout)["checks"]}
    assert (doctor["disk"], doctor["journal"], doctor["service"]) == ("ok", "ok", "ok")
    assert vm.forewarn("recover").returncode == 0


def test_metrics_probe_and_webhooks_work(vm: WindowsVm) -> None:
    file = rf"{DATA}\forewarn.prom"
    metrics, probe = (f"127.0.0.1:{free_port()}" for _listener in range(2))
    with Webhook() as webhook:
        prepare = rf"[{{http: '{webhook.url}'}}, {{probe: {{wait: 1s}}}}, {{run: ['C:\hooks\drain.cmd', web]}}]"
        vm.policy(POLICY.replace(r"prepare: [{run: ['C:\hooks\drain.cmd', web], timeout: 1m}]", f"prepare: {prepare}"))
        listen = ("--metrics-listen", metrics, "--probe-listen", probe, "--metrics-file", file)
        runner = vm.start(*listen)
        runner.wait_for("document")
        assert requests.get(f"http://{probe}/readyz", timeout=10).status_code == 200
        event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300)
        runner.wait_for("approved", event_ids=[event])
        assert json.loads(webhook.requests[0].body)["event"]["EventId"] == event
    assert requests.get(f"http://{probe}/readyz", timeout=10).status_code == 503
    assert requests.get(f"http://{metrics}/healthz", timeout=10).status_code == 200
    served = requests.get(f"http://{metrics}/metrics", timeout=10).text
    assert "forewarn_approvals" in served
    wait_until(lambda: names_of(vm.wine.path(file).read_text("utf-8")) == names_of(served))


def names_of(metrics: str) -> set[str]:
    return {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}


def test_drill_is_prepared_and_recovered(vm: WindowsVm) -> None:
    runner = vm.start()
    runner.wait_for("started")
    drill = vm.forewarn("drill", "--type", "Reboot", "--duration", "1s")
    assert drill.returncode == 0, drill
    wait_until(lambda: len(vm.said()) == 2)
    assert vm.said() == ["prepare Reboot 1 web", "recover Reboot 1 web"]
    assert vm.approvals() == []


def test_check_config_names_what_is_wrong(vm: WindowsVm) -> None:
    vm.configure()
    right = vm.bundle("run", "--check-config", "--config", CONFIG)
    assert right.returncode == 0, right
    vm.configure(artifact=rf"{DATA}\policies\none.json")
    wrong = vm.bundle("run", "--check-config", "--config", CONFIG)
    assert wrong.returncode != 0
    assert "none.json" in wrong.stderr


@pytest.mark.parametrize("name", ["it's für Ärzte", "日本語 (neu)"])
def test_paths_may_have_any_name(vm: WindowsVm, name: str) -> None:
    directory = rf"C:\hooks\{name}"
    vm.wine.path(directory).mkdir(mode=0o755)
    hook = vm.hook(rf"{name}\drain", SAY)
    artifact = rf"{directory}\policy.json"
    vm.policy(POLICY.replace(r"C:\hooks\drain.cmd", hook.replace("'", "''")), artifact)
    runner = vm.start("--state", rf"{directory}\state", artifact=artifact)
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    runner.wait_for("approved", event_ids=[event])
    assert vm.said() == ["prepare Reboot 1 web"]
