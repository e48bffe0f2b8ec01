# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of kind haproxy and the real one: an application on two VMs, under load, and one of them is rebooted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..hosts import Host
from ..images import SOFTWARE
from ..lab import Lab
from ..software.haproxy import SOCKET, STATS_PORT, HAProxy
from ..software.web import Traffic, failures, install_application, now, summary
from .figures import record
from .whole_event import announce, history, hooks_of, rehearse_shipped, roll_out, wait_for_state

# On the VM itself, by the network; and on the load balancer, which sees the events of the VM, by the socket.
_BY_NETWORK = f"""\
name: web
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      prepare:
        - haproxy: {{socket: "lb:{STATS_PORT}", server: "web/${{vm.name}}", timeout: 1m}}
      output: approve
"""
_BY_SOCKET = f"""\
name: load-balancer
rule:
  match:
    - id: drain
      condition: event.EventType == "Redeploy" && !affects_me
      prepare:
        - haproxy: {{socket: {SOCKET}, server: "web/${{event.Resources[0]}}", timeout: 1m}}
      approver: witness
      output: approve
"""


@pytest.fixture(scope="module")
def lab(lab_machine: None) -> Iterator[Lab]:
    """Return clients, a load balancer and two VMs with an application."""
    names = ("client", "lb", "web_1", "web_2")
    with Lab(dict.fromkeys(names, SOFTWARE), joined=True) as started:
        yield started


@pytest.fixture(scope="module")
def haproxy(lab: Lab) -> HAProxy:
    servers = [lab.host("web_1"), lab.host("web_2")]
    for host in servers:
        install_application(host)
    balancer = HAProxy(lab.host("lb"))
    balancer.install(servers)
    return balancer


@pytest.fixture(scope="module", autouse=True)
def on_vm(lab: Lab, haproxy: HAProxy, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> None:
    """Roll out with the role, whose sandbox opens no further than the kind says."""
    roll_out(lab, tmp_path_factory.mktemp("web_1"), installed_collection, _BY_NETWORK, ["web_1"])


@pytest.fixture(scope="module")
def on_balancer(lab: Lab, on_vm: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> None:
    """Likewise, with access to the socket."""
    roll_out(lab, tmp_path_factory.mktemp("lb"), installed_collection, _BY_SOCKET, ["lb"])


@pytest.fixture
def traffic(lab: Lab, haproxy: HAProxy) -> Iterator[Traffic]:
    clients = Traffic(lab.host("client"), "lb")
    yield clients
    clients.stop()


def wait_until_prepared(host: Host, event_id: str) -> None:
    host.wait_for(lambda: ("prepare", "haproxy", "succeeded") in hooks_of(history(host, event_id) or {"hooks": ()}))


def reboot_by_event(lab: Lab, runner: str, event_type: str) -> dict[str, Any]:
    """Let an event reboot web_1, which the runner of a host prepares and recovers; return what that has recorded."""
    vm = lab.host("web_1")
    event_id = announce(lab, vm, event_type)
    wait_until_prepared(lab.host(runner), event_id)
    if runner == "lb":  # as a witness it approves within a minute, for which the platform does not wait here
        lab.emulator.start(event_id)
    started(lab, event_id)
    vm.reboot()
    wait_for_state(lab.host(runner), event_id, "started")
    return finish(lab, runner, event_id)


def started(lab: Lab, event_id: str) -> None:
    lab.host("web_1").wait_for(lambda: lab.emulator.event(event_id)["status"] == "Started")


def finish(lab: Lab, runner: str, event_id: str) -> dict[str, Any]:
    """End an event, which has started or soon will, and wait until a runner has recovered; return its history."""
    started(lab, event_id)
    lab.emulator.finish(event_id)
    return wait_for_state(lab.host(runner), event_id, "done")


def test_drained_reboot_fails_no_request(lab: Lab, haproxy: HAProxy, traffic: Traffic) -> None:
    nothing_fails(lab, haproxy, traffic, "web_1", "Reboot", "forewarn, by the network")


@pytest.mark.full
def test_load_balancer_drain_fails_no_request(lab: Lab, haproxy: HAProxy, on_balancer: None, traffic: Traffic) -> None:
    nothing_fails(lab, haproxy, traffic, "lb", "Redeploy", "forewarn, by the socket")


def nothing_fails(lab: Lab, haproxy: HAProxy, traffic: Traffic, runner: str, event_type: str, case: str) -> None:
    """Let an event reboot web_1 under load. AssertionError if a request fails."""
    traffic.start()
    by_hand = haproxy.drain_by_hand("web_1")
    entry = reboot_by_event(lab, runner, event_type)
    assert haproxy.status("web_1") == "UP"
    traffic.wait_for("web-1", now(lab.host("lb")))
    requests = traffic.stop()
    after = next(
        step["seconds_since_first_seen"]
        for step in entry["entries"]
        if step["kind"] == "hook-ended" and step["fields"]["phase"] == "prepare"
    )
    figures = {"seen_to_drained_seconds": round(after, 2), "drained_by_hand_seconds": round(by_hand, 2)}
    record("haproxy", case, {**summary(requests), **figures})
    assert after < by_hand + 5
    assert failures(requests) == []
    assert len(requests) > 100


@pytest.mark.full
def test_unannounced_reboot_fails_requests(lab: Lab, haproxy: HAProxy, traffic: Traffic) -> None:
    vm = lab.host("web_1")
    traffic.start()
    vm.cut_off()
    haproxy.host.wait_for(lambda: haproxy.status("web_1").startswith("DOWN"))
    vm.place.plug(True)
    vm.start()
    haproxy.wait_for_up("web_1")
    traffic.wait_for("web-1", now(lab.host("lb")))
    requests = traffic.stop()
    record("haproxy", "unannounced", summary(requests))
    assert failures(requests)


@pytest.mark.parametrize("state", [pytest.param("maint", marks=pytest.mark.full), "drain"])
def test_server_disabled_before_the_event_stays_disabled(lab: Lab, haproxy: HAProxy, state: str) -> None:
    haproxy.set("web_1", state)
    before = haproxy.admin_state("web_1")
    reboot_by_event(lab, "web_1", "Reboot")
    assert haproxy.admin_state("web_1") == before
    haproxy.set("web_1", "ready")
    haproxy.wait_for_up("web_1")


@pytest.mark.full
def test_server_disabled_during_the_event_stays_disabled(lab: Lab, haproxy: HAProxy) -> None:
    event_id = announce(lab, lab.host("web_1"))
    wait_until_prepared(lab.host("web_1"), event_id)
    haproxy.set("web_1", "maint")
    finish(lab, "web_1", event_id)
    assert haproxy.admin_state("web_1") == 1
    haproxy.set("web_1", "ready")
    haproxy.wait_for_up("web_1")


@pytest.mark.full
def test_haproxy_reload_does_not_end_a_drain(lab: Lab, haproxy: HAProxy) -> None:
    client = lab.host("client")
    one, other = "curl --silent --max-time 60 lb:8080/?seconds=20", "systemd-run --quiet --collect --unit"
    for number in (1, 2):  # one for each server
        client.ssh(f"{other} long{number} {one}")
    haproxy.host.wait_for(lambda: haproxy.sessions("web_1") == 1)
    event_id = announce(lab, lab.host("web_1"))
    haproxy.host.wait_for(lambda: haproxy.admin_state("web_1") == 8)
    assert lab.emulator.event(event_id)["status"] == "Scheduled"
    haproxy.host.ssh("systemctl reload haproxy")
    wait_until_prepared(lab.host("web_1"), event_id)
    assert haproxy.admin_state("web_1") == 8
    finish(lab, "web_1", event_id)
    haproxy.wait_for_up("web_1")


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(
    lab: Lab, haproxy: HAProxy, tmp_path: Path, installed_collection: Path
) -> None:
    variables = {"forewarn_params": {"haproxy": f"lb:{STATS_PORT}", "backend": "web"}}
    rehearse_shipped(lab, lab.host("web_1"), tmp_path, installed_collection, "haproxy-backend", variables)
    assert haproxy.status("web_1") == "UP"


def test_a_server_that_the_configuration_disables_stays_disabled(lab: Lab, haproxy: HAProxy) -> None:
    """A drain would enable it, and its checks: found by trying."""
    haproxy.configure([lab.host("web_1"), lab.host("web_2")], "disabled")
    before = haproxy.admin_state("web_1")
    event_id = announce(lab, lab.host("web_1"))
    wait_until_prepared(lab.host("web_1"), event_id)
    finish(lab, "web_1", event_id)
    assert haproxy.admin_state("web_1") == before == 5
