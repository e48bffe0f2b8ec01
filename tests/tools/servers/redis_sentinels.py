# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redis and its Sentinels on loopback: one master with replicas, and three Sentinels that manage them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.servers.listener_client import free_port
from tools.sites.commands import run_program
from tools.sites.waiting import wait_until

MASTER = "mymaster"
HERE = "127.0.0.1"


def missing() -> str | None:
    """Return the program that this machine does not have."""
    return next((name for name in ("redis-server", "redis-cli") if shutil.which(name) is None), None)


def ask(port: int, *words: object) -> str:
    """Return what a Redis or a Sentinel answers."""
    return run_program("redis-cli", "-h", HERE, "-p", port, *words).stdout.replace("\r", "")


class Redis(NamedTuple):
    """The ports of the instances, the first of which is the master at first, and of the Sentinels."""

    servers: list[int]
    sentinels: list[int]

    def master(self) -> int:
        """Return the port of the master, as the last Sentinel knows it."""
        return int(ask(self.sentinels[-1], "sentinel", "get-master-addr-by-name", MASTER).split()[-1])

    def priority(self, server: int) -> str:
        return ask(server, "config", "get", "replica-priority").split()[-1]


@contextlib.contextmanager
def redis_with_sentinels(directory: Path, replicas: int) -> Iterator[Redis]:
    """Run one master with so many replicas, and three Sentinels which know them all."""
    different = set[int]()
    while len(different) < 4 + replicas:
        different.add(free_port())
    ports = list(different)
    found = Redis(ports[: replicas + 1], ports[replicas + 1 :])
    with contextlib.ExitStack() as stack:
        for port in found.servers:
            follow = [] if port == found.servers[0] else ["--replicaof", HERE, str(found.servers[0])]
            _start(stack, directory / str(port), "--port", str(port), "--bind", HERE, "--save", "", *follow)
        for port in found.sentinels:
            place = directory / str(port)
            place.mkdir()
            settings = place / "sentinel.conf"
            settings.write_text(
                f"port {port}\nbind {HERE}\nsentinel monitor {MASTER} {HERE} {found.servers[0]} 2\n"
                f"sentinel down-after-milliseconds {MASTER} 30000\n"
            )
            _start(stack, place, str(settings), "--sentinel")
        up = f"connected_slaves:{replicas}\n"
        wait_until(lambda: up in ask(found.servers[0], "info", "replication"), what="no replica is connected")
        for port in found.sentinels:
            wait_until(
                partial(_knows_all, port, replicas), what="the Sentinels do not know each other and the replicas"
            )
        yield found


def _knows_all(sentinel: int, replicas: int) -> bool:
    quorum = ask(sentinel, "sentinel", "ckquorum", MASTER)
    return quorum.startswith("OK 3") and f"num-slaves\n{replicas}\n" in ask(sentinel, "sentinel", "master", MASTER)


def _start(stack: contextlib.ExitStack, place: Path, *options: str) -> None:
    place.mkdir(exist_ok=True)
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(["redis-server", *options], cwd=place, stdout=log, stderr=log)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
