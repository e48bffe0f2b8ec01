# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Pacemaker cluster on hosts of a lab, with Debian's units: a service that moves, and a client that uses it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ..hosts import Host

_PORT = 8080
_CLIENT = Path(__file__).with_name("pacemaker_client.py")
_COROSYNC = """\
totem {{
  version: 2
  cluster_name: lab
  transport: knet
}}
quorum {{
  provider: corosync_votequorum
}}
logging {{
  to_syslog: yes
}}
nodelist {{
{nodes}}}
"""
_COROSYNC_NODE = """\
  node {{
    ring0_addr: {address}
    name: {name}
    nodeid: {number}
  }}
"""
_RESOURCE = """
<primitive id="web" class="systemd" type="web">
  <operations>
    <op id="web-monitor" name="monitor" interval="5s" timeout="20s"/>
  </operations>
</primitive>
"""
# The service, which runs on one node at a time.
_SERVICE = f"[Service]\nExecStart=/usr/bin/python3 -m http.server --directory=/srv {_PORT}\n"


class Requests(NamedTuple):
    """Requests that were ``answered`` and ``failed``, and the longest pause between answers."""

    answered: int
    failed: int
    pause_seconds: float


class Cluster:
    """Pacemaker on hosts that are up; ``client`` sends requests to the service."""

    def __init__(self, client: Host, nodes: list[Host]) -> None:
        self.client = client
        self.nodes = nodes

    def start(self) -> None:
        """Start Corosync and Pacemaker, and add the resource."""
        nodes = "".join(
            _COROSYNC_NODE.format(address=node.peer_address, name=node.host_name, number=number)
            for number, node in enumerate(self.nodes, 1)
        )
        for node in self.nodes:
            node.write(_COROSYNC.format(nodes=nodes), "/etc/corosync/corosync.conf")
            node.write(_SERVICE, "/etc/systemd/system/web.service")
            node.ssh("systemctl enable --quiet --now corosync pacemaker")
        first = self.nodes[0]
        for node in self.nodes:
            first.wait_for(partial(self._is_online, first, node))
        # No fencing: there is nothing here that could end a host.
        first.ssh("crm_attribute --type crm_config --name stonith-enabled --update false")
        first.ssh("crm_attribute --type rsc_defaults --name resource-stickiness --update 100")
        first.ssh("cibadmin --create --scope resources --xml-pipe", stdin=_RESOURCE)
        self.client.copy(_CLIENT, "/srv/client.py")

    def shown(self, asked: Host) -> ElementTree.Element:
        """Return what crm_mon shows on a host."""
        shown = asked.ssh("crm_mon --one-shot --output-as=xml", check=False).stdout
        return ElementTree.fromstring(shown or "<nothing/>")

    def _is_online(self, seen_by: Host, node: Host) -> bool:
        return self.node(seen_by, node).get("online") == "true"

    def node(self, asked: Host, node: Host) -> dict[str, str]:
        """Return what crm_mon on a host shows of a node; empty if it does not answer."""
        found = self.shown(asked).find(f"./nodes/node[@name='{node.host_name}']")
        return {} if found is None else dict(found.attrib)

    def place(self, node: Host) -> None:
        """Let the service be on a node."""
        node.wait_for(
            lambda: any(map(self.has_service, self.nodes))
        )  # while it starts, it is where it may not be moved to
        if not self.has_service(node):
            node.ssh(f"crm_resource --move --resource web --node {node.host_name}")
            self.wait_for_service(node)
            node.ssh("crm_resource --clear --resource web")

    def wait_for_service(self, node: Host) -> None:
        """Wait until the service is on a node."""
        node.wait_for(lambda: self.has_service(node))

    def has_service(self, node: Host) -> bool:
        """Return whether the service is on a node."""
        return node.properties("web", "ActiveState")["ActiveState"] == "active"

    def begin_requests(self, name: str) -> None:
        """Send requests to the service, wherever it is, until ``end_requests``."""
        urls = " ".join(f"http://{node.host_name}:{_PORT}/" for node in self.nodes)
        self.client.ssh(
            f"rm -f /run/enough && systemd-run --quiet --unit=client-{name} "
            f"/usr/bin/python3 /srv/client.py /srv/{name} {urls}"
        )
        self.client.wait_for(lambda: self.client.ssh("test -e /srv/" + name, check=False).returncode == 0)

    def end_requests(self, name: str) -> Requests:
        """Return what the client has seen so far."""
        self.client.ssh("touch /run/enough")
        done = f"systemctl is-active client-{name}"
        self.client.wait_for(lambda: self.client.ssh(done, check=False).returncode != 0)
        values: dict[str, Any] = json.loads(self.client.read(f"/srv/{name}"))
        return Requests(**values)
