# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A MariaDB Galera cluster on hosts of a lab, with Debian's unit, directories and socket, and a writer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..hosts import Host

# A row a commit, on one node until a statement fails, and then on the next one.
WRITER = """\
import select, subprocess, sys, time

run, nodes, number, client = sys.argv[1], sys.argv[2:], 0, None
while True:
    number += 1
    if client is None:
        words = [f"--host={nodes[0]}", "--user=writer", "--password=writer", "--connect-timeout=2", "--skip-reconnect"]
        client = subprocess.Popen(["mariadb", *words, "--batch", "--skip-column-names", "--unbuffered", "lab"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        client.stdin.write(f"INSERT INTO t VALUES ({run}, {number}); SELECT {number};\\n")
        client.stdin.flush()
        done = select.select([client.stdout], [], [], 40)[0] and client.stdout.readline().strip() == str(number)
    except OSError:
        done = False
    print("ok" if done else "failed", number, time.time())
    if not done:
        client.kill()
        client.wait()
        client, nodes = None, nodes[1:] + nodes[:1]
    time.sleep(0.02)  # the rate of the load
"""
HOOKS = {
    "Reboot": "galera: {timeout: 1m}",
    "Freeze": "galera: {timeout: 1m}",
    # They fail soon, and are tried again.
    "Preempt": "galera: {timeout: 5s}",
    "Redeploy": "galera: {defaults_file: /etc/mysql/forewarn.cnf, timeout: 5s}",
}
_CONFIGURATION = """\
[mariadbd]
bind-address = 0.0.0.0
skip-name-resolve
innodb_buffer_pool_size = 64M
innodb_log_file_size = 16M
innodb_autoinc_lock_mode = 2
binlog_format = ROW
wsrep_on = ON
wsrep_provider = /usr/lib/galera/libgalera_smm.so
wsrep_provider_options = "gcache.size=64M"
wsrep_cluster_name = lab
wsrep_cluster_address = gcomm://{members}
wsrep_node_name = {name}
wsrep_node_address = {address}
wsrep_sst_method = rsync
"""
_TABLES = """\
CREATE DATABASE lab;
CREATE TABLE lab.t (run INT, n INT, PRIMARY KEY (run, n));
CREATE USER writer@'%' IDENTIFIED BY 'writer';
GRANT SELECT, INSERT ON lab.* TO writer@'%';
CREATE USER monitor@'%' IDENTIFIED BY 'monitor';
"""


class Galera:
    """A cluster of some hosts of a joined lab."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts

    def start(self) -> None:
        """Configure and start it, and wait until all nodes are synced."""
        members = ",".join(host.host_name for host in self.hosts)
        for host in self.hosts:
            text = _CONFIGURATION.format(members=members, name=host.host_name, address=host.peer_address)
            host.write(text, "/etc/mysql/mariadb.conf.d/90-lab.cnf")
            # With a socket of systemd's, the unit cannot find the position from which the node would rejoin.
            host.ssh("systemctl disable --quiet --now mariadb.socket && systemctl enable --quiet mariadb")
        first, *others = self.hosts
        first.ssh("galera_new_cluster")
        self.sql(first, _TABLES)
        for host in others:
            host.ssh("systemctl start mariadb")
        self.wait_until_synced()
        first.write("[client]\nuser=monitor\npassword=monitor\n", "/etc/mysql/forewarn.cnf", 0o600)

    def sql(self, host: Host, statement: str) -> str:
        """Return what a node answers to statements of root."""
        return host.ssh("mariadb --batch --skip-column-names", stdin=statement).stdout.strip()

    def status(self, host: Host) -> dict[str, str]:
        """Return the wsrep status of a node; empty if it does not answer."""
        shown = host.ssh("mariadb --batch --skip-column-names -e \"SHOW STATUS LIKE 'wsrep_%'\"", check=False).stdout
        return dict(line.split("\t") for line in shown.splitlines() if line.count("\t") == 1)

    def wait_until_synced(self) -> None:
        """Wait until each node sees all of them, and is synced."""
        for host in self.hosts:
            host.wait_for(partial(self.is_synced, host))

    def is_ready(self, host: Host) -> bool:
        """Return whether a node serves clients."""
        return self.status(host).get("wsrep_ready") == "ON"

    def rows(self, run: int) -> list[int]:
        """Return the numbers that a run of the writer has left. AssertionError if a node has others."""
        found = [self._rows(host, run) for host in self.hosts]
        assert found[0] == found[1] == found[2]
        return [int(number) for number in found[0]]

    def _rows(self, host: Host, run: int) -> list[str]:
        """Return what a node has of a run; wait for it where it finds only now that the others have excluded it."""
        statement = f"SET SESSION wsrep_sync_wait = 1; SELECT n FROM lab.t WHERE run = {run} ORDER BY n"

        def answered() -> str | None:
            done = host.ssh("mariadb --batch --skip-column-names", stdin=statement, check=False)
            return None if done.returncode else done.stdout

        return host.wait_for(answered).split()

    def is_synced(self, host: Host) -> bool:
        """Return whether a node says that it is synced and sees all nodes."""
        status = self.status(host)
        return (
            status.get("wsrep_local_state_comment") == "Synced"
            and status.get("wsrep_ready") == "ON"
            and status.get("wsrep_cluster_size") == str(len(self.hosts))
        )
