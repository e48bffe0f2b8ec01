# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container in Azurite as the store of ``story``: one node, which can fail as a node of etcd does."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.runner.groups.store import Store
from tools.servers.azurite import Azurite, azurite, sas


class BlobNode:
    """Azurite, with what the story does to a node."""

    def __init__(self, server: Azurite, directory: Path) -> None:
        self.data = directory / "data"
        self.server = server

    def kill(self) -> None:
        """End it, in order: Azurite keeps its data only then."""
        self.thaw()
        self.server.stop()

    def freeze(self) -> None:
        """Stop it in the middle of everything."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    @property
    def runs(self) -> bool:
        """Whether its process has not ended."""
        process = self.server._process
        return process is not None and process.poll() is None

    def _signal(self, number: int) -> None:
        if self.runs and self.server._process is not None:
            self.server._process.send_signal(number)


class BlobCluster:
    """The only node, and how clients log in to it."""

    def __init__(self, server: Azurite, directory: Path) -> None:
        self._directory = directory
        self.members = [BlobNode(server, directory)]
        self._server = server

    def settings(self) -> dict[str, Any]:
        """Return the container as ``group_store`` of a runner's configuration."""
        secret = self._directory / "sas"
        secret.write_text(sas(seconds=7200.0))
        secret.chmod(0o600)
        address = self._server.address
        url = f"https://{address.where}{address.path}"
        return {"blob": url, "ca_file": self._server.files.ca_file, "sas": {"file": str(secret)}}

    def store(self) -> Store:
        """Return a client."""
        return self._server.store()

    def start(self, member: BlobNode) -> None:
        """Start it, unless it runs."""
        if not member.runs:
            member.server.start()

    def settle(self) -> None:
        """It answers as soon as it has started."""

    def begin(self) -> None:
        """Start it without any data."""
        shutil.rmtree(self.members[0].data, ignore_errors=True)
        self.start(self.members[0])
        self._server.create_container()


@contextmanager
def blob_cluster(directory: Path) -> Iterator[BlobCluster]:
    """Run Azurite with a container."""
    with azurite(directory) as server:
        yield BlobCluster(server, directory)
