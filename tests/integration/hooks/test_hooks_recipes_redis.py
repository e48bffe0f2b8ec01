# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipe of a hook for Redis Sentinel, with the real Redis: it loses no acknowledged write."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.docs.recipes import Script
from tools.servers.redis_sentinels import HERE, MASTER, Redis, ask, missing, redis_with_sentinels
from tools.sites.requirements import lacking
from tools.sites.waiting import wait_until

PAGE = Path(__file__).parents[3] / "docs" / "hooks" / "recipes" / "redis-sentinel.md"


@pytest.fixture(autouse=True)
def _real_redis() -> None:
    name = missing()
    if name:
        lacking("programs", f"there is no {name}: apt-get install redis-server")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    with redis_with_sentinels(tmp_path, replicas=1) as found:
        yield found


def hook(directory: Path, redis: Redis, server: int) -> Script:
    place = directory / f"hook-{server}"
    (place / "kept").mkdir(parents=True)
    changed = {"/var/lib/forewarn-hooks": str(place / "kept")}
    return Script(PAGE, place, MASTER, str(server), str(redis.sentinels[0]), changed=changed)


class Writer:
    """Writes numbers to the master until it is told to stop, as a client that asks a Sentinel does."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.acknowledged: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        wait_until(lambda: self.acknowledged, what="nothing was written")
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            port = self.redis.master()
            client = subprocess.Popen(
                ["redis-cli", "-h", HERE, "-p", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert client.stdin is not None
            assert client.stdout is not None
            good = True
            while good and not self._stop.is_set():
                number += 1
                client.stdin.write(f"rpush rows {number}\n")
                client.stdin.flush()
                good = client.stdout.readline().strip().isdigit()
                if good:
                    self.acknowledged.append(str(number))
            client.stdin.close()
            client.wait(30)
            client.stdout.close()


def test_failover_loses_no_write_and_is_not_reversed(redis: Redis, tmp_path: Path) -> None:
    old, new = redis.servers
    script = hook(tmp_path, redis, old)
    with Writer(redis) as writer:
        for _time in range(2):
            script.does("prepare", seconds=60)
        assert redis.priority(old) == "0"
        wait_until(lambda: redis.master() == new, what="the Sentinels do not agree")
        already = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) > already + 10, what="nothing is written to the new master")
    assert set(writer.acknowledged) <= set(ask(new, "lrange", "rows", 0, -1).split())
    assert "role:slave\n" in ask(old, "info", "replication")
    script.does("recover", others=1)
    assert redis.priority(old) == "0"
    for _time in range(2):
        script.does("recover")
    assert redis.priority(old) == "100"
    assert redis.master() == new


def test_replica_has_priority_zero_during_the_event(redis: Redis, tmp_path: Path) -> None:
    old, replica = redis.servers
    script = hook(tmp_path, redis, replica)
    ask(replica, "config", "set", "replica-priority", 7)
    for priority, phase in (("0", "prepare"), ("0", "prepare"), ("7", "recover"), ("7", "recover")):
        script.does(phase)
        assert redis.priority(replica) == priority
    assert redis.master() == old


def test_without_a_good_replica_the_master_goes_on(redis: Redis, tmp_path: Path) -> None:
    """One whose priority a person has set to 0 is not good, and keeps it."""
    master, replica = redis.servers
    ask(replica, "config", "set", "replica-priority", 0)
    known = "slave-priority\n0\n"
    wait_until(lambda: known in ask(redis.sentinels[0], "sentinel", "replicas", MASTER), what="it is not known")
    script = hook(tmp_path, redis, master)
    assert "NOGOODSLAVE" in script.fails("prepare")
    assert ask(master, "set", "key", "value") == "OK\n"
    other = hook(tmp_path, redis, replica)
    other.does("prepare")
    other.does("recover")
    assert redis.priority(replica) == "0"
    script.does("recover")
    assert redis.priority(master) == "100"
