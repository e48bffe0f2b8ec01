# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cloud-init does on a host of the lab, which does not have it, and a place on the host to download from."""

from __future__ import annotations

import base64
import gzip
import shlex
from pathlib import Path
from typing import Any

import yaml
from tools.servers.webhooks import make_certificate

from ..hosts import Host

PORT = 8443
URL = f"https://127.0.0.1:{PORT}/forewarn.pyz"
_HOME = "/srv/bundle"
_SERVED = f"{_HOME}/forewarn.pyz"
_BROKEN = f"{_HOME}/break-off"
_SERVER = f"""\
import http.server, os, ssl

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = open("{_SERVED}", "rb").read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if os.path.exists("{_BROKEN}"):
            os.unlink("{_BROKEN}")
            content = content[: len(content) // 2]
        self.wfile.write(content)

server = http.server.HTTPServer(("127.0.0.1", {PORT}), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("{_HOME}/ca.pem", "{_HOME}/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
_UNIT = f"""\
[Service]
ExecStart=/usr/bin/python3 {_HOME}/server.py
Restart=always
[Install]
WantedBy=multi-user.target
"""


def serve(host: Host, content: bytes, directory: Path) -> None:
    """Serve a file by HTTPS on the host's loopback, from each boot on. The host trusts the certificate."""
    certificate = make_certificate(directory)
    replace(host, content)
    host.copy(certificate, f"{_HOME}/ca.pem")
    host.copy(certificate, "/usr/lib/ssl/cert.pem")
    host.copy(certificate.with_name("key.pem"), f"{_HOME}/key.pem", 0o600)
    host.write(_SERVER, f"{_HOME}/server.py")
    host.write(_UNIT, "/etc/systemd/system/bundle.service")
    host.ssh("systemctl daemon-reload && systemctl enable --now bundle.service")
    host.wait_for(lambda: host.ssh(f"exec 3<>/dev/tcp/127.0.0.1/{PORT}", check=False).returncode == 0)


def replace(host: Host, content: bytes, *, broken: bool = False) -> None:
    """Serve another file; ``broken``: the first download breaks off in the middle."""
    host.write(content, _SERVED)
    if broken:
        host.ssh(f"touch {_BROKEN}")


def apply(host: Host, user_data: str) -> int:
    """Do what the modules write_files and runcmd of cloud-init do; return how the commands ended."""
    config: dict[str, Any] = yaml.safe_load(user_data)
    assert config.keys() == {"write_files", "runcmd"}
    for file in config["write_files"]:
        content = file["content"].encode()
        if file.get("encoding") == "gz+b64":
            content = gzip.decompress(base64.b64decode(content))
        host.write(content, file["path"], int(file["permissions"], 8))
    # As cloud-init does: a script without `set -e`, whose last command decides.
    return host.ssh("\n".join(map(shlex.join, config["runcmd"])), check=False).returncode
