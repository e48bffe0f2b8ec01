# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of nodes of a MariaDB Galera cluster, read by MariaDB's client."""

from __future__ import annotations

from collections.abc import Mapping

from .common.work import HookFailedError, Work

_SYNCED = "Synced"
_STATUS = "SHOW GLOBAL STATUS LIKE 'wsrep%'"


class Node:
    """The status of a node, and its view of the cluster.

    ``addresses`` are HOST:PORT of the nodes that publish theirs.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.state = values.get("wsrep_local_state_comment", "not a node of a cluster")
        self.is_primary = values.get("wsrep_cluster_status") == "Primary"
        self.is_synced = self.state == _SYNCED and values.get("wsrep_ready") == "ON" and self.is_primary
        self.size = int(values.get("wsrep_cluster_size") or 0)
        self.addresses = [item for item in values.get("wsrep_incoming_addresses", "").split(",") if ":" in item]


def read_node(work: Work, address: str | None = None) -> Node:
    """Return the status of the node on this VM, or of the one at HOST:PORT. Raises HookFailedError."""
    rows = (line.split("\t") for line in query(work, _STATUS, address).splitlines())
    return Node({row[0].lower(): row[1] for row in rows if len(row) == 2})


def query(work: Work, statement: str, address: str | None = None) -> str:
    """Return the rows of a statement on this VM's server, or on the one at HOST:PORT. Raises HookFailedError."""
    file = work.options.get("defaults_file")
    if file is not None:
        _hide_passwords(work, str(file))
    words = ["mariadb", *([] if file is None else [f"--defaults-extra-file={file}"])]
    if address is not None:
        host, _colon, port = address.rpartition(":")
        words += [f"--host={host.strip('[]')}", *([f"--port={port}"] if port.strip("0") else [])]
    done = work.run(
        *words, "--batch", "--skip-column-names", "--connect-timeout=5", f"--execute={statement}", check=False
    )
    if done.code != 0:
        raise HookFailedError(f"MariaDB does not answer: {done.message}")
    return done.output


def _hide_passwords(work: Work, path: str) -> None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - without pathlib, as everything that runs at each event
            lines = [line.partition(b"=") for line in file]
    except OSError:  # the client says so
        return
    for name, _equals, value in lines:
        if name.strip().lower() == b"password" and value.strip():
            work.hide_secret(value.strip().strip(b"'\""))


def reason_to_stay(work: Work) -> str:
    """Return why the cluster needs this node now, or an empty text."""
    least = int(work.options["remaining"])
    try:
        node = read_node(work)
        if not node.is_primary:
            return "this node is not in the primary component of a cluster, so no other node may have its data"
        if not node.is_synced:
            return f"this node is {node.state}"
        others = _others(work, node)
    except HookFailedError as error:
        return str(error)
    if others >= least:
        return ""
    return f"{others} other node{' is' if others == 1 else 's are'} synced, and {least} must remain"


def _others(work: Work, node: Node) -> int:
    """Return how many other nodes are synced; without a user for them, how many this node counts in the cluster."""
    if "defaults_file" not in work.options:
        return node.size - 1
    return max(0, sum(_is_synced(work, address) for address in node.addresses) - 1)  # this node is one of them


def _is_synced(work: Work, address: str) -> bool:
    try:
        return read_node(work, address).is_synced
    except HookFailedError as error:
        work.say(f"{address}: {error}")
        return False
