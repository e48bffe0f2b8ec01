# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Patroni cluster on hosts of a lab, with Debian's units and directories: PostgreSQL, etcd, and a writer."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..hosts import Host

# A row a commit, on whichever host takes writes.
WRITER = """\
import psycopg2, sys, time

run, hosts, number, connection = sys.argv[1], ",".join(sys.argv[2:]), 0, None
while True:
    number += 1
    try:
        connection = connection or psycopg2.connect(host=hosts, user="postgres", dbname="postgres", password="secret",
            connect_timeout=2, target_session_attrs="read-write", tcp_user_timeout=3000)
        with connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES (%s, %s)", (run, number))
        print("ok", number, time.time())
    except psycopg2.Error:
        print("failed", number, time.time())
        if connection:
            connection.close()
        connection = None
    time.sleep(0.02)  # the rate of the load
"""
_SECURED = "url: 'https://n1:8008', credentials: /etc/patroni/credentials, ca_file: /etc/patroni/ca.pem, timeout: 1m"
HOOKS = {
    "Reboot": "patroni: {timeout: 1m}",
    "Freeze": "patroni: {timeout: 5s}",
    "Redeploy": f"patroni: {{{_SECURED}}}",
}
_BIN = "/usr/lib/postgresql/15/bin"
_ETCD = """\
ETCD_NAME={name}
ETCD_LISTEN_PEER_URLS=http://{address}:2380
ETCD_LISTEN_CLIENT_URLS=http://{address}:2379,http://127.0.0.1:2379
ETCD_INITIAL_ADVERTISE_PEER_URLS=http://{address}:2380
ETCD_ADVERTISE_CLIENT_URLS=http://{address}:2379
ETCD_INITIAL_CLUSTER={members}
"""
_PATRONI = """\
scope: lab
name: {name}
restapi:
  listen: "0.0.0.0:8008"
  connect_address: "{address}:8008"
{restapi}
etcd3: {{hosts: "{etcd}"}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    postgresql: {{use_pg_rewind: true, parameters: {{wal_log_hints: "on", max_connections: 30, shared_buffers: 16MB}}}}
  initdb: [{{encoding: UTF8}}, data-checksums]
  pg_hba:
    - local all all peer
    - host all all 10.232.0.0/24 scram-sha-256
    - host replication all 10.232.0.0/24 scram-sha-256
postgresql:
  listen: "0.0.0.0:5432"
  connect_address: "{address}:5432"
  data_dir: /var/lib/postgresql/15/lab
  bin_dir: {bin}
  pgpass: /var/lib/postgresql/pgpass
  use_unix_socket: true
  authentication:
    superuser: {{username: postgres, password: secret}}
    replication: {{username: replicator, password: secret}}
  parameters: {{unix_socket_directories: /var/run/postgresql}}
{ctl}
"""
_SECURE_API = """\
  certfile: /etc/patroni/api.pem
  keyfile: /etc/patroni/api.key
  authentication: {username: forewarn, password: of the api}
"""
_API = "http://127.0.0.1:8008"


class Patroni:
    """A cluster of some hosts of a joined lab. A member has its host's own name."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts
        self._api = _API

    def start(self) -> None:
        """Configure and start it, and wait until all members run."""
        members = ",".join(f"{host.host_name}=http://{host.peer_address}:2380" for host in self.hosts)
        for host in self.hosts:
            text = _ETCD.format(name=host.host_name, address=host.peer_address, members=members)
            host.write(text, "/etc/default/etcd")
            self.configure(host)
            host.ssh("systemctl enable --quiet etcd patroni && systemctl start --no-block etcd")
        for host in self.hosts:
            host.ssh("systemctl start etcd")  # of Type=notify: it ends when etcd serves
        for number, host in enumerate(self.hosts):
            host.ssh("systemctl start patroni")
            if number == 0:
                host.wait_for(lambda: self.leader() is not None)
        self.wait_until_streaming()
        self.sql(self.primary(), "CREATE TABLE t (run int, n int, PRIMARY KEY (run, n))")

    def configure(self, host: Host, restapi: str = "", ctl: str = "") -> None:
        """Write the configuration of a member. ``restapi`` and ``ctl`` are added to these sections."""
        text = _PATRONI.format(
            name=host.host_name,
            address=host.peer_address,
            etcd=",".join(f"{each.host_name}:2379" for each in self.hosts),
            bin=_BIN,
            restapi=restapi,
            ctl=ctl,
        )
        host.write(text, "/etc/patroni/config.yml")

    def cluster(self) -> dict[str, Any]:
        """Return what the first member that answers says of the cluster; empty if none does."""
        for host in self.hosts:
            done = host.ssh(f"curl --insecure --silent --max-time 3 {self._api}/cluster", check=False)
            if done.returncode == 0 and done.stdout.startswith("{"):
                found: dict[str, Any] = json.loads(done.stdout)
                return found
        return {}

    def control(self, command: str) -> str:
        """Run a command of patronictl on the first member; return what it wrote."""
        return self.hosts[0].ssh(f"patronictl -c /etc/patroni/config.yml {command}").stdout

    def synchronous(self) -> str | None:
        """Return the name of the synchronous standby, if there is one."""
        members = self.cluster().get("members", [])
        return next((str(member["name"]) for member in members if member["role"] == "sync_standby"), None)

    def secure(self) -> None:
        """Give the REST APIs a password and certificates, and wait until they use them."""
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            _make_certificates(directory, [f"DNS:{host.host_name},IP:{host.peer_address}" for host in self.hosts])
            for host in self.hosts:
                for file in ("ca.pem", "api.pem", "api.key"):
                    host.copy(directory / file, f"/etc/patroni/{file}")
                host.write("forewarn:of the api\n", "/etc/patroni/credentials", 0o600)
                self.configure(host, _SECURE_API, "ctl: {cacert: /etc/patroni/ca.pem}")
        self._api = "https://127.0.0.1:8008"
        for host in self.hosts:
            host.ssh("systemctl reload patroni")
        self.hosts[0].wait_for(self._all_secured)

    def _all_secured(self) -> bool:
        members = self.cluster().get("members", [])
        return len(members) == len(self.hosts) and all(member["api_url"].startswith("https:") for member in members)

    def leader(self) -> str | None:
        """Return the name of the leader, if there is one."""
        members = self.cluster().get("members", [])
        return next((str(member["name"]) for member in members if member["role"] == "leader"), None)

    def others_leader(self, host: Host) -> str | None:
        """Return the name of the leader, if it is not this host's member, as the others see it."""
        leader = Patroni([each for each in self.hosts if each is not host]).leader()
        return None if leader == host.host_name else leader

    def primary(self) -> Host:
        """Return the host of the primary, once it takes writes."""

        def found() -> Host | None:
            name = self.leader()
            host = next((host for host in self.hosts if host.host_name == name), None)
            return (
                host if host is not None and self.sql(host, "SELECT pg_is_in_recovery()", check=False) == "f" else None
            )

        return self.hosts[0].wait_for(found)

    def sql(self, host: Host, statement: str, *, check: bool = True) -> str:
        """Return what a member answers to a statement."""
        psql = f"runuser -u postgres -- {_BIN}/psql -h /var/run/postgresql -Atq -v ON_ERROR_STOP=1 postgres"
        return host.ssh(f"cd / && {psql}", stdin=statement, check=check).stdout.strip()

    def streaming(self) -> set[str]:
        """Return the names of the members that stream from the primary."""
        rows = self.sql(self.primary(), "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'")
        return set(rows.split())

    def wait_until_streaming(self) -> None:
        """Wait until all members but the primary stream from it, and are known as that."""

        def complete() -> bool:
            states = [member.get("state") for member in self.cluster().get("members", [])]
            return len(self.streaming()) == len(self.hosts) - 1 and states == ["running"] * len(self.hosts)

        self.hosts[0].wait_for(complete)

    def make_primary(self, host: Host) -> float:
        """Switch over to a host by patronictl, as a person does; return the seconds that it took."""
        leader = self.primary()
        if leader is host:
            return 0.0
        began = time.monotonic()
        leader.ssh(
            "patronictl -c /etc/patroni/config.yml switchover lab --force "
            f"--master {leader.host_name} --candidate {host.host_name}"
        )
        seconds = time.monotonic() - began
        self.wait_until_streaming()
        return seconds

    def rows(self, run: int) -> list[int]:
        """Return the numbers that a run of the writer has left on the primary."""
        return [int(line) for line in self.sql(self.primary(), f"SELECT n FROM t WHERE run = {run}").split()]


def _make_certificates(directory: Path, names: Sequence[str]) -> None:
    """Write ca.pem, and api.pem with api.key of a server that has these names."""
    (directory / "extensions").write_text(f"subjectAltName={','.join(names)}\n")
    authority = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /O=lab -keyout ca.key -out ca.pem"
    )
    request = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=api -keyout api.key -out api.csr"
    signed = "x509 -req -in api.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out api.pem"
    for command in (authority, request, signed):
        subprocess.run(["openssl", *command.split()], cwd=directory, check=True, capture_output=True, timeout=60)
