# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with the software that hooks are tested against: they boot as bare ones do, and a test starts what it needs."""

from __future__ import annotations

import pytest

from .hosts import Host
from .lab import Start

PROGRAMS = (
    *("haproxy", "nginx", "patroni", "patronictl", "etcd", "slurmctld", "slurmd", "scontrol", "rabbitmqctl"),
    *("mariadbd", "mariadb", "rsync", "pacemakerd", "corosync", "crm_standby", "crm_mon", "crm_resource", "curl"),
)
SERVICES = ("haproxy", "nginx", "munge", "mariadb", "etcd", "rabbitmq-server", "corosync")


def active(host: Host) -> list[str]:
    kinds = "--type=service,socket,timer,path"
    lines = host.ssh(f"systemctl list-units {kinds} --state=active --no-legend --plain").stdout.splitlines()
    return sorted(line.split()[0] for line in lines if not line.startswith("session-"))


@pytest.mark.full
def test_software_is_installed_but_not_started(start_lab: Start) -> None:
    lab = start_lab({"bare": "bookworm", "web_0": "bookworm-software"}, joined=True)
    host = lab.host("web_0")
    assert host.ssh("systemctl is-system-running").stdout == "running\n"
    assert active(host) == active(lab.host("bare"))
    assert host.ssh(f"for p in {' '.join(PROGRAMS)}; do command -v $p > /dev/null || echo $p; done").stdout == ""
    assert host.ssh("ls /etc/postgresql").stdout == ""
    host.ssh("/usr/bin/python3 -c 'import pika, psycopg2'")

    host.ssh(f"systemctl enable --now {' '.join(SERVICES)}")
    host.reboot()
    for service in SERVICES:
        assert host.properties(service, "ActiveState") == {"ActiveState": "active"}, service
