# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of kind probe and real load balancers that ask /readyz: an application on two VMs, and one is rebooted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..hosts import Host
from ..images import SOFTWARE
from ..lab import Lab
from ..software.haproxy import HAProxy
from ..software.nginx import LISTEN_PORT, Nginx
from ..software.web import PORT, Traffic, failures, install_application, now, summary
from .figures import record
from .whole_event import reboot_by_azure, rehearse_shipped, roll_out

_PROBE_PORT = 9780
# Two failures a second apart, and the longest request: this is what a wait has to be chosen for.
_POLICY = """\
name: web
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      prepare:
        - probe: {wait: 5s}
      output: approve
"""
_CHECKS = f"""\
  option httpchk GET /readyz
  default-server check port {_PROBE_PORT} inter 1s fall 2 rise 2
"""
IsUp = Callable[[], bool]


@pytest.fixture(scope="module")
def lab(lab_machine: None) -> Iterator[Lab]:
    """Return clients, a host for the load balancers, and two VMs with an application."""
    names = ("client", "lb", "web_1", "web_2")
    with Lab(dict.fromkeys(names, SOFTWARE), joined=True) as started:
        yield started


@pytest.fixture(scope="module")
def servers(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> list[Host]:
    """Return VMs with an application, and with the runner, whose sandbox opens no further than the role does."""
    hosts = [lab.host("web_1"), lab.host("web_2")]
    for host in hosts:
        install_application(host)
    variables = {"forewarn_probe_listen": f"0.0.0.0:{_PROBE_PORT}"}
    names = [host.name for host in hosts]
    roll_out(lab, tmp_path_factory.mktemp("control"), installed_collection, _POLICY, names, variables)
    return hosts


@pytest.fixture(scope="module")
def balancers(lab: Lab, servers: list[Host]) -> dict[str, IsUp]:
    """Return what says whether a load balancer uses web_1."""
    haproxy, nginx = HAProxy(lab.host("lb")), Nginx(lab.host("lb"))
    haproxy.install(servers, _CHECKS)
    nginx.install(servers, _PROBE_PORT)
    return {"haproxy": lambda: haproxy.status("web_1") == "UP", "nginx": lambda: nginx.is_up(servers[0])}


@pytest.fixture
def traffic(lab: Lab, balancer: str) -> Iterator[Traffic]:
    clients = Traffic(lab.host("client"), "lb", {"haproxy": PORT, "nginx": LISTEN_PORT}[balancer])
    yield clients
    clients.stop()


@pytest.mark.parametrize("balancer", [pytest.param("haproxy", marks=pytest.mark.full), "nginx"])
def test_reboot_by_azure_fails_no_request(
    lab: Lab, balancers: dict[str, IsUp], traffic: Traffic, balancer: str
) -> None:
    vm, is_up = lab.host("web_1"), balancers[balancer]
    traffic.start()
    used: list[bool] = []
    entry = reboot_by_azure(lab, vm, before=lambda: used.append(is_up()))
    assert used == [False]
    vm.wait_for(is_up)
    traffic.wait_for("web-1", now(vm))
    requests = traffic.stop()
    drained = next(hook["seconds"] for hook in entry["hooks"] if hook["phase"] == "prepare")
    record("probe", f"forewarn, {balancer}", {**summary(requests), "prepared_seconds": round(drained, 2)})
    assert failures(requests) == []
    assert len(requests) > 100


@pytest.mark.full
@pytest.mark.parametrize("balancer", ["haproxy", "nginx"])
def test_unannounced_reboot_fails_requests(
    lab: Lab, balancers: dict[str, IsUp], traffic: Traffic, balancer: str
) -> None:
    vm, is_up = lab.host("web_1"), balancers[balancer]
    traffic.start()
    vm.cut_off()
    lab.host("lb").wait_for(lambda: not is_up())
    vm.place.plug(True)
    vm.start()
    lab.host("lb").wait_for(is_up)
    traffic.wait_for("web-1", now(vm))
    requests = traffic.stop()
    record("probe", f"unannounced, {balancer}", summary(requests))
    assert failures(requests)


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(
    lab: Lab, servers: list[Host], tmp_path: Path, installed_collection: Path
) -> None:
    variables = {"forewarn_probe_listen": f"0.0.0.0:{_PROBE_PORT}"}
    rehearse_shipped(lab, servers[0], tmp_path, installed_collection, "web-tier", variables)
