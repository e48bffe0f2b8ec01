# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of a joined lab reach each other by name, whatever happens to one of them."""

from __future__ import annotations

import pytest

from .hosts import Host
from .lab import Lab, Start
from .machine import LabError

NAMES = ("web_0", "web_1", "client")


def assert_all_reached(lab: Lab) -> None:
    """Have each host ask each, itself too, for the greeting of its SSH server, under its name."""
    script = """
import socket, sys
for name in sys.argv[1:]:
    with socket.create_connection((name, 22), 10) as connection:
        assert connection.recv(4) == b"SSH-"
        print(name, *connection.getpeername())
"""
    names = " ".join(host.host_name for host in lab.hosts)
    expected = [f"{host.host_name} {host.peer_address} 22" for host in lab.hosts]
    for host in lab.hosts:
        assert host.ssh(f"python3 - {names}", stdin=script).stdout.splitlines() == expected


def sees(host: Host, other: Host) -> bool:
    return host.ssh(f"timeout 2 bash -c ': < /dev/tcp/{other.host_name}/22'", check=False).returncode == 0


def test_joined_hosts_reach_each_other_after_restarts(start_lab: Start) -> None:
    lab = start_lab(dict.fromkeys(NAMES, "bookworm"), joined=True)
    assert len({host.peer_address for host in lab.hosts}) == len(NAMES)
    assert_all_reached(lab)
    lab.host("web_1").reboot()
    assert_all_reached(lab)
    lab.host("web_1").reset()
    assert_all_reached(lab)
    lab.host("web_1").cut_power()
    assert not sees(lab.host("client"), lab.host("web_1"))
    assert sees(lab.host("client"), lab.host("web_0"))


@pytest.mark.full
def test_labs_with_equal_addresses_are_separate(start_lab: Start) -> None:
    one = start_lab({"web_0": "bookworm"}, joined=True).host("web_0")
    other = start_lab({"web_0": "bookworm"}, joined=True).host("web_0")
    assert one.peer_address == other.peer_address
    for host, text in ((one, "one"), (other, "other")):
        host.write(text, "/run/page/index.html")
        host.ssh(
            "systemd-run --quiet --unit=page"
            f" python3 -m http.server --directory /run/page --bind {host.peer_address} 8080"
        )

    def page(host: Host) -> str:
        ask = f"import urllib.request as u; print(u.urlopen('http://{host.host_name}:8080').read().decode())"
        return host.wait_for(lambda: host.ssh(f'python3 -c "{ask}"', check=False).stdout)

    assert page(one) == "one\n"
    assert page(other) == "other\n"


def test_hosts_are_apart_unless_joined(start_lab: Start) -> None:
    host = start_lab({"web_0": "bookworm"}).host("web_0")
    with pytest.raises(LabError, match="start the lab with joined=True"):
        _ = host.peer_address
    assert "eth1" not in host.read("/proc/net/dev")
