# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same client on every Python that a VM may have, with nothing installed and nothing needless imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tools.servers.scripted_imds import ScriptedServer, document, instance, raw, status
from tools.sites.commands import run_program
from tools.sites.pythons import python

SCRIPT = """
import sys
from pathlib import Path
from forewarn.imds.client import Client
from forewarn.system.discovery import discover_endpoint
from forewarn.imds.errors import PassingFault

now = [0.0]
options = {"clock": lambda: now[0], "sleep": lambda seconds: now.append(now.pop() + seconds)}
with Client(sys.argv[1], read_timeout=2, first_read_timeout=30, **options) as client:
    document = client.read_once()
    client.approve([event.event_id for event in document.events])
    print(document.events[0].event_id, client.read_instance().name, len(client.read_once().events))
    for kind in ("garbage", "garbage", "timeout"):
        try:
            client.read_once()
        except PassingFault as fault:
            print(fault.kind == kind or fault)
assert discover_endpoint(Path(sys.argv[2])) == "http://168.63.129.16"
assert not [name for name in sys.modules if name.split(".")[0] in ("requests", "yaml", "celpy", "logging")]
"""


@pytest.mark.versions
@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_client_on_a_bare_interpreter(version: str, package: Path, tmp_path: Path) -> None:
    lease = tmp_path / "var/lib/dhcp/dhclient.leases"
    lease.parent.mkdir(parents=True)
    lease.write_text("lease {\n  option unknown-245 a8:3f:81:10;\n  expire never;\n}\n", encoding="utf-8")
    event = {"EventId": "b2", "EventStatus": "Scheduled", "EventType": "Freeze", "Resources": ["web_0"]}
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "close")
    cut = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", "close")
    answers = (document(event), status(200), instance("web_0"), status(200), short, cut, document(delay=30))
    with ScriptedServer(*answers) as server:
        environ = {"PYTHONPATH": str(package.parent), "PATH": os.environ["PATH"]}
        result = run_program(python(version), "-B", "-S", "-c", SCRIPT, server.url, tmp_path, env=environ)
    assert (result.stderr, result.stdout) == ("", "b2 web_0 0\nTrue\nTrue\nTrue\n")


def test_importing_the_client_costs_little_beside_http_client(package: Path) -> None:
    """The first request must be quick: the client loads no module that http.client and json do not need."""
    listing = "import sys; sys.stdout.write(' '.join(sys.modules))"
    base = "import http.client, json, dataclasses, datetime, typing, __future__\n"
    modules = [
        run_program(sys.executable, "-S", "-c", code + listing, env={"PYTHONPATH": str(package.parent)}).stdout.split()
        for code in (base, base + "import forewarn.imds.client\n")
    ]
    assert "forewarn.imds.client" in modules[1]
    extra = {name for name in set(modules[1]) - set(modules[0]) if not name.startswith("forewarn")}
    assert extra == set()
