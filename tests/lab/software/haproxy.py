# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy of Debian on a host of the lab, in front of the application of ``web``."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence

from ..hosts import Host
from .web import PORT

SOCKET = "/run/haproxy/admin.sock"  # as Debian's configuration has it
STATS_PORT = 9999
_CONFIGURATION = """\
global
  log /dev/log local0
  chroot /var/lib/haproxy
  stats socket {socket} mode 660 level admin
  stats socket ipv4@:{stats_port} level admin
  user haproxy
  group haproxy
  daemon
defaults
  mode http
  timeout connect 2s
  timeout client 15s
  timeout server 15s
  retries 3
  option redispatch
frontend clients
  bind :{port}
  default_backend web
backend web
{checks}
"""
# As good as it gets without a warning: a failed server is noticed within two seconds, and others take its requests.
CHECKS = "  option httpchk GET /\n  default-server check inter 1s fall 2 rise 2\n"
_ASK = """\
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.argv[2].encode() + b"\\n")
print("".join(iter(lambda: connection.recv(65536).decode(), "")), end="")
"""
# What an operator types: drain, and look until no session is left.
_BY_HAND = """\
import csv, socket, sys, time

def ask(command):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.sendall(command.encode() + b"\\n")
    return "".join(iter(lambda: connection.recv(65536).decode(), ""))

began = time.monotonic()
ask(f"set server {sys.argv[2]} state drain")
while next(int(row["scur"]) for row in csv.DictReader(ask("show stat")[2:].splitlines())
           if f"{row['pxname']}/{row['svname']}" == sys.argv[2]):
    time.sleep(0.05)  # until the next look
print(time.monotonic() - began)
"""


class HAProxy:
    """The HAProxy of a host, with a backend ``web``."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def install(self, servers: Sequence[Host], checks: str = CHECKS) -> None:
        """Configure it for servers, by the names of their resources, start it, and wait until they are up."""
        self.host.write(_ASK, "/usr/local/lib/ask.py")
        self.host.write(_BY_HAND, "/usr/local/lib/by_hand.py")
        self.configure(servers, "", checks)
        for host in servers:
            self.wait_for_up(host.name)

    def configure(self, servers: Sequence[Host], options: str, checks: str = CHECKS) -> None:
        """Configure it, with options of each server, and start it anew."""
        lines = "".join(f"  server {host.name} {host.host_name}:{PORT} {options}\n" for host in servers)
        text = _CONFIGURATION.format(socket=SOCKET, stats_port=STATS_PORT, port=PORT, checks=checks + lines)
        self.host.write(text, "/etc/haproxy/haproxy.cfg")
        self.host.ssh("systemctl enable --quiet haproxy && systemctl restart haproxy")

    def ask(self, command: str) -> str:
        """Return the answer of the runtime API."""
        words = shlex.join(["/usr/bin/python3", "/usr/local/lib/ask.py", SOCKET, command])
        return self.host.ssh(words).stdout.strip()

    def set(self, server: str, state: str) -> None:
        """Set a server to ready, drain or maint. AssertionError where HAProxy refuses."""
        assert self.ask(f"set server web/{server} state {state}") == ""

    def admin_state(self, server: str) -> int:
        """Return the bits of a server's srv_admin_state: 1 is maint, 8 is drain."""
        lines = self.ask("show servers state web").splitlines()
        columns = next(line for line in lines if line.startswith("# "))[2:].split()
        rows = [dict(zip(columns, line.split(), strict=False)) for line in lines]
        return next(int(row["srv_admin_state"]) for row in rows if row.get("srv_name") == server)

    def status(self, server: str) -> str:
        """Return a server's status, as UP or DOWN."""
        return self._statistics(server)["status"]

    def sessions(self, server: str) -> int:
        """Return how many sessions a server has."""
        return int(self._statistics(server)["scur"])

    def wait_for_up(self, server: str) -> None:
        self.host.wait_for(lambda: self.status(server) == "UP")

    def drain_by_hand(self, server: str) -> float:
        """Drain a server as an operator does, put it back, and return how many seconds the drain took."""
        took = float(self.host.ssh(f"/usr/bin/python3 /usr/local/lib/by_hand.py {SOCKET} web/{server}").stdout)
        self.set(server, "ready")
        self.wait_for_up(server)
        return took

    def _statistics(self, server: str) -> dict[str, str]:
        rows = csv.DictReader(self.ask("show stat")[2:].splitlines())
        return next(row for row in rows if (row["pxname"], row["svname"]) == ("web", server))
