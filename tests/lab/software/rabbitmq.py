# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A RabbitMQ cluster on hosts of a lab, with Debian's unit, and clients on a further host."""

from __future__ import annotations

import json
import secrets
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..hosts import Host

_CLIENT = Path(__file__).with_name("rabbitmq_client.py")
# One scheduler a node: several nodes share the processors of this machine, and busy waiting is for those who have many.
_ENVIRONMENT = 'SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none"\n'


class Traffic(NamedTuple):
    """What clients have seen: messages that were ``confirmed``, of which some were ``lost`` or came ``twice``.

    The pauses are the longest times without a confirm, and without a message, in seconds.
    """

    confirmed: int
    lost: int
    twice: int
    publisher_pause_seconds: float
    consumer_pause_seconds: float


class Cluster:
    """RabbitMQ on hosts that are up, ``client`` has a publisher and a consumer."""

    def __init__(self, client: Host, nodes: list[Host]) -> None:
        self.client = client
        self.nodes = nodes

    def start(self) -> None:
        """Start the nodes, the first one alone: the others join it."""
        cookie = secrets.token_hex(20)
        lines = ["cluster_formation.peer_discovery_backend = classic_config", "loopback_users = none"]
        for number, node in enumerate(self.nodes, 1):
            lines.append(f"cluster_formation.classic_config.nodes.{number} = rabbit@{node.host_name}")
        for node in self.nodes:
            node.write("\n".join(lines) + "\n", "/etc/rabbitmq/rabbitmq.conf")
            node.write(_ENVIRONMENT, "/etc/rabbitmq/rabbitmq-env.conf")
            own = "chown rabbitmq: /var/lib/rabbitmq/.erlang.cookie"
            node.write(cookie, "/var/lib/rabbitmq/.erlang.cookie", 0o400)
            node.ssh(f"{own} && systemctl enable --quiet --now rabbitmq-server")
        self.client.copy(_CLIENT, "/srv/client.py")

    def diagnose(self, node: Host, *words: str) -> Any:
        """Return what rabbitmq-diagnostics says in JSON."""
        return json.loads(node.ssh(f"rabbitmq-diagnostics --silent {' '.join(words)} --formatter json").stdout)

    def in_maintenance(self, node: Host) -> bool:
        """Return whether a node that is up is in maintenance mode."""
        return bool(self.diagnose(node, "status")["is_under_maintenance"])

    def wait_for_quorum(self) -> None:
        """Wait until every quorum queue has a member to spare."""
        command = "rabbitmq-upgrade await_online_quorum_plus_one --timeout 20"
        self.nodes[-1].wait_for(lambda: self.nodes[-1].ssh(command, check=False).returncode == 0, 180)

    def stop_member(self, node: Host, queue: str) -> None:
        """Stop the member of a quorum queue on a node, as a drain does."""
        node.ssh(f"rabbitmqctl eval 'ra:stop_server(quorum_queues, {{list_to_atom(\"%2F_{queue}\"), node()}}).'")

    def begin_traffic(self, queue: str) -> None:
        """Publish and consume until ``end_traffic``: at the first node, which leads the queue, while it answers.

        Returns once each node has the queue on its disk. RabbitMQ writes its directory of members some time after a
        queue was declared; a node that loses power before that forgets its member, and the queue then has no leader.
        """
        names = ",".join(node.host_name for node in self.nodes)
        self.client.ssh(
            "rm -f /run/enough /run/flows && "
            f"systemd-run --quiet --unit=client-{queue} /usr/bin/python3 /srv/client.py {names} {queue} /srv/{queue}"
        )
        self.client.wait_for(lambda: self.client.ssh("test -e /run/flows", check=False).returncode == 0)
        written = f"grep --quiet --text '%2F_{queue}' /var/lib/rabbitmq/mnesia/*/quorum/*/names.dets"
        for node in self.nodes:
            node.wait_for(partial(self._succeeds, node, written))

    @staticmethod
    def _succeeds(node: Host, command: str) -> bool:
        return node.ssh(command, check=False).returncode == 0

    def end_traffic(self, queue: str) -> Traffic:
        """Publish no more, wait until all is consumed, and return what was seen."""
        self.client.ssh("touch /run/enough")
        shown = f"cat /srv/{queue}"
        return Traffic(**json.loads(self.client.wait_for(lambda: self.client.ssh(shown, check=False).stdout)))
