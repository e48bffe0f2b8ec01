# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard of the tests themselves: nothing reaches the metadata address, in this process or another."""

from __future__ import annotations

import os
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CLOSED_ENDPOINT, NetworkRefusedError
from tools.sites.commands import run_program

METADATA = ("169.254.169.254", 80)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: socket.socket().connect(METADATA),
        lambda: socket.socket().connect_ex(METADATA),
        lambda: socket.create_connection(METADATA, timeout=1),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", METADATA),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b""], [], 0, METADATA),
        lambda: socket.socket(socket.AF_INET6).connect(("fe80::1", 80, 0, 0)),
        lambda: socket.getaddrinfo("metadata.invalid", 80),
        lambda: socket.gethostbyname("metadata.invalid"),
        lambda: urllib.request.urlopen("http://169.254.169.254/metadata/scheduledevents", timeout=1),
    ],
)
def test_nothing_leaves_the_machine(attempt: Callable[[], object]) -> None:
    with pytest.raises(NetworkRefusedError, match="only talk to loopback"):
        attempt()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_allowed(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((host, port), timeout=5) as client:
            assert client.getpeername() == ("127.0.0.1", port)


def test_a_subprocess_meets_a_closed_port() -> None:
    seen = run_program(sys.executable, "-c", "import os; print(os.environ['FOREWARN_ENDPOINT'])")
    assert seen.stdout.strip() == CLOSED_ENDPOINT
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 9), timeout=5)
    assert not [name for name in os.environ if name.lower().endswith("_proxy")]


def test_the_checkout_looks_like_an_installed_collection(collections_path: Path) -> None:
    collection = collections_path / "ansible_collections" / "forewarn" / "azure"
    assert not collection.is_symlink()
    assert (collection / "galaxy.yml").is_file()
    assert (collection / "plugins" / "module_utils" / "forewarn" / "events.py").is_file()
