# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listen on the metadata address inside a network namespace, and hand the socket to the process that asked for it.

``ip netns exec NAME python listen.py DESCRIPTOR NAMESPACE``: DESCRIPTOR is a Unix socket, NAMESPACE (device:inode) the
network namespace of the process that asks. In that one nothing is done: there the address may be Azure's.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path


def main(descriptor: int, forbidden: str) -> int:
    """Return 0 once the socket is handed over."""
    found = Path("/proc/self/ns/net").stat()
    if f"{found.st_dev}:{found.st_ino}" == forbidden:
        sys.stderr.write("this is the network of the machine itself: nothing listens on the metadata address here\n")
        return 1
    with (
        socket.create_server(("169.254.169.254", 80), backlog=64) as server,
        socket.socket(fileno=descriptor) as parent,
    ):
        socket.send_fds(parent, [b"."], [server.fileno()])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2]))
