# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nginx of Debian on a host of the lab, in front of the application of ``web``.

It has no checks of its own. So a small script beside it asks the probes of the VMs, and tells nginx by a reload.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..hosts import Host
from .web import PORT, install

LISTEN_PORT = 8082
_SERVERS = "/etc/nginx/servers.conf"
_SITE = f"""\
upstream web {{
  include {_SERVERS};
}}
server {{
  listen {LISTEN_PORT};
  keepalive_timeout 0;  # a reload closes idle connections, and a client may be about to use one
  location / {{
    proxy_pass http://web;
    proxy_connect_timeout 2s;
    proxy_next_upstream error timeout;
  }}
}}
"""
# A server is down after two failed probes, and up after two good ones, a second apart.
_SIDECAR = f"""\
import http.client, os, subprocess, sys, time

PROBE_PORT, HOSTS, SERVERS = int(sys.argv[1]), sys.argv[2:], "{_SERVERS}"

def ready(host):
    try:
        connection = http.client.HTTPConnection(host, PROBE_PORT, timeout=1)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False

def write(up):
    ends = {{host: "" if host in up else " down" for host in HOSTS}}
    lines = [f"server {{host}}:{PORT} max_fails=1 fail_timeout=2s{{ends[host]}};\\n" for host in HOSTS]
    with open(SERVERS + ".new", "w") as file:
        file.writelines(lines)
    os.replace(SERVERS + ".new", SERVERS)

def main():
    last, up = dict.fromkeys(HOSTS, True), set(HOSTS)
    while True:
        found = {{host: ready(host) for host in HOSTS}}
        changed = {{host for host in HOSTS if found[host] == last[host] != (host in up)}}
        last = found
        if changed and up ^ changed:  # with none left, nginx would not start
            up ^= changed
            write(up)
            subprocess.run(["systemctl", "reload", "nginx"], check=True)
        time.sleep(1)  # the interval of the checks

main()
"""


class Nginx:
    """The nginx of a host, with a script that asks the probes of the VMs behind it."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def install(self, servers: Sequence[Host], probe_port: int) -> None:
        """Configure it for servers, and start it with its script."""
        names = [host.host_name for host in servers]
        self.host.write("".join(f"server {name}:{PORT};\n" for name in names), _SERVERS)
        self.host.write(_SITE, "/etc/nginx/conf.d/web.conf")
        self.host.ssh("systemctl enable --quiet nginx && systemctl restart nginx")
        install(self.host, "sidecar", _SIDECAR, words=[str(probe_port), *names])

    def is_up(self, server: Host) -> bool:
        """Return whether the script has told nginx to use a server."""
        lines = self.host.read(_SERVERS).splitlines()
        return not any(f" {server.host_name}:" in line and line.endswith(" down;") for line in lines)
