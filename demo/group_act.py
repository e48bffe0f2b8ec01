# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An act of the second demo: hosts that wait for each other, by three nodes of etcd on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lab.hosts import Host
from lab.lab import Lab
from lab.role.playbooks import Playbooks
from narration import Narrator
from tools.servers.etcd_server import PASSWORD, USER, EtcdCluster, Member, etcd_cluster

ROLLOUT = "forewarn.azure.rollout"
# The first host is drained in a moment, the others are not.
DRAIN = '#!/bin/sh\n[ "$FOREWARN_VM_NAME" = web_0 ] || sleep 4\n'
Judge = Callable[[str, Host, str, str], None]


class GroupAct:
    """``judge`` notes what was to be, and what is."""

    def __init__(self, lab: Lab, playbooks: Playbooks, narrator: Narrator, judge: Judge) -> None:
        self._lab = lab
        self._playbooks = playbooks
        self._narrator = narrator
        self._judge = judge

    def play(self) -> None:
        """Play the act."""
        self._narrator.act(
            "A group",
            "The hosts get a store in which they meet: etcd, on three nodes. Of an event of two hosts the last that",
            "is drained approves for both. Of two events only one may disturb a host at a time. Then etcd loses its",
            "leader.",
        )
        directory = self._playbooks.directory / "etcd"
        directory.mkdir()
        with _cluster(directory, self._lab) as cluster:
            if not self._roll_out(cluster, directory):
                return
            self._together()
            self._one_by_one(cluster)

    def _roll_out(self, cluster: EtcdCluster, directory: Path) -> bool:
        for host in self._lab.hosts:
            host.write(DRAIN, "/usr/local/bin/drain", 0o755)
            urls = [f"https://{host.place.gateway}:{member.address.port}" for member in cluster.members]
            store = {"etcd": urls, "user": USER, "password": {"credential": "etcd"}}
            self._playbooks.variables(host.name, {"forewarn_group_store": store})
        files = {"ca_file": "ca.crt", "certificate_file": "client.crt", "key_file": "client.key"}
        variables = {
            "forewarn_policies": ["group"],
            "forewarn_serial": ["100%"],
            "forewarn_group": "web",
            "forewarn_group_files": {name: str(directory / file) for name, file in files.items()},
            "forewarn_group_create": True,
            "forewarn_credentials": {"etcd": PASSWORD},
        }
        self._narrator.say("operator", f"$ ansible-playbook {ROLLOUT} -i inventory -e @group.yml", "bold")
        played = self._playbooks.play(ROLLOUT, variables)
        for host in self._lab.hosts:
            said = "done" if played.code == 0 else f"exit code {played.code}: {played.text[-2000:]}"
            self._judge("rollout of a group", host, "done", said)
        return played.code == 0

    def _together(self) -> None:
        """Let two hosts prepare for one event."""
        first, second, _third = self._lab.hosts
        event = self._schedule("Redeploy", first, second)
        first.wait_for(lambda: f"waits for {second.name}" in self._reason(first, event))
        self._narrator.say(first.name, f"is drained, and held: {self._reason(first, event)}", "yellow")
        by = self._approved_by(second, event)
        said = "approved together" if by == second.name else f"approved by {by}"
        self._judge("one event, two hosts", second, "approved together", said)
        self._finish(event, first, second)

    def _one_by_one(self, cluster: EtcdCluster) -> None:
        """Let two events need the only slot, while etcd elects another leader."""
        first, _second, third = self._lab.hosts
        event = self._schedule("Reboot", first)
        first.wait_for(lambda: self._lab.emulator.event(event)["approvals"])
        other = self._schedule("Reboot", third)
        third.wait_for(lambda: "waits for a slot" in self._reason(third, other))
        self._narrator.say(third.name, self._reason(third, other), "yellow")
        self._judge("two events, one slot", third, "active", self._web(third))
        leader = cluster.leader()
        leader.kill()
        self._narrator.say("etcd", f"its leader, {leader.name}, is killed", "red")
        self._finish(event, first)
        by = self._approved_by(third, other)
        self._judge("etcd without its leader", third, f"approved by {third.name}", f"approved by {by}")
        self._finish(other, third)

    def _schedule(self, kind: str, *hosts: Host) -> str:
        names = [host.name for host in hosts]
        event = self._lab.emulator.schedule(kind, names)
        self._narrator.say("Azure", f"schedules a {kind} of {' and '.join(names)}", "cyan")
        return event

    def _approved_by(self, host: Host, event: str) -> str:
        found: list[dict[str, Any]] = host.wait_for(lambda: self._lab.emulator.event(event)["approvals"], 60)
        self._narrator.say("Azure", f"starts it, with the approval of {found[0]['vm']}", "cyan")
        return str(found[0]["vm"])

    def _finish(self, event: str, *hosts: Host) -> None:
        hosts[0].wait_for(lambda: self._lab.emulator.event(event)["status"] == "Started")
        self._lab.emulator.finish(event)
        for host in hosts:
            host.wait_for(partial(self._works, host))

    def _reason(self, host: Host, event: str) -> str:
        report = json.loads(host.ssh("forewarn status --json", check=False).stdout or "{}")
        found = [each for each in report.get("events", []) if each["event"]["EventId"] == event]
        return str(found[0]["decision"]["eligibility_reason"]) if found and found[0]["decision"] else ""

    def _works(self, host: Host) -> bool:
        return self._web(host) == "active"

    def _web(self, host: Host) -> str:
        return host.properties("web", "ActiveState")["ActiveState"]


@contextmanager
def _cluster(directory: Path, lab: Lab) -> Iterator[EtcdCluster]:
    """Run three nodes that the hosts reach at their gateways."""
    hosts = [host.place.gateway for host in lab.hosts]
    members = [Member(f"etcd-{number}", directory, also=hosts) for number in (1, 2, 3)]
    with etcd_cluster(directory, 3, members=members) as cluster:
        yield cluster
