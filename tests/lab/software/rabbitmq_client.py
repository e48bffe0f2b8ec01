# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a host of the lab, by its Python: a publisher with confirms, and a consumer. Both connect again.

Arguments: the names of the nodes, with commas between; a quorum queue; the file for the results, in JSON. A message
is published again until it is confirmed, so it may come twice. It ends some time after /run/enough has appeared.
"""

from __future__ import annotations

import json
import pathlib
import sys
import threading
import time
from typing import Any, Callable

import pika  # type: ignore[import-untyped,unused-ignore,import-not-found]  # which the hosts have

HOSTS, QUEUE, RESULT = sys.argv[1].split(","), sys.argv[2], pathlib.Path(sys.argv[3])
DRAINED = 20.0  # seconds for the rest of the messages
confirmed: set[int] = set()
seen: set[int] = set()
times: dict[str, list[float]] = {"publisher": [], "consumer": []}
published, twice = threading.Event(), 0


def connected(work: Callable[[Any], bool]) -> None:
    """Call ``work`` with a connection until it has done all; a failure leads to the next node."""
    number = 0
    while True:
        try:
            connection = pika.BlockingConnection(
                pika.ConnectionParameters(
                    HOSTS[number % len(HOSTS)],
                    heartbeat=4,
                    socket_timeout=2,
                    stack_timeout=4,
                    blocked_connection_timeout=5,
                    connection_attempts=1,
                )
            )
            if work(connection):
                connection.close()
                return
        except (pika.exceptions.AMQPError, OSError):  # noqa: PERF203 - one connection after the other
            number += 1
            time.sleep(0.1)  # before the next node is tried


def channel_of(connection: Any) -> Any:
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
    return channel


def publish(connection: Any) -> bool:
    channel = channel_of(connection)
    channel.confirm_delivery()
    while True:
        number = len(confirmed)
        properties = pika.BasicProperties(delivery_mode=2)
        channel.basic_publish("", QUEUE, str(number).encode(), properties, mandatory=True)
        confirmed.add(number)
        times["publisher"].append(time.monotonic())
        # Only after a message that was confirmed, or the pause that it ends would not be counted.
        if pathlib.Path("/run/enough").exists():
            published.set()
            return True
        connection.sleep(0.04)  # the rate of the load


def consume(connection: Any) -> bool:
    global twice
    channel = channel_of(connection)
    channel.basic_qos(prefetch_count=20)
    until = None
    for method, _properties, body in channel.consume(QUEUE, inactivity_timeout=0.5):
        if method is not None:
            number = int(body)
            twice += number in seen
            seen.add(number)
            times["consumer"].append(time.monotonic())
            channel.basic_ack(method.delivery_tag)
            pathlib.Path("/run/flows").touch()
        elif published.is_set():
            until = until or time.monotonic() + DRAINED
            if confirmed <= seen or time.monotonic() > until:
                return True
    return False


def pause(moments: list[float]) -> float:
    return round(max((later - one for one, later in zip(moments, moments[1:])), default=0.0), 2)


consumer = threading.Thread(target=connected, args=(consume,))
consumer.start()
connected(publish)
consumer.join()
result = {
    "confirmed": len(confirmed),
    "lost": len(confirmed - seen),
    "twice": twice,
    "publisher_pause_seconds": pause(times["publisher"]),
    "consumer_pause_seconds": pause(times["consumer"]),
}
draft = RESULT.with_suffix(".new")
draft.write_text(json.dumps(result))
draft.replace(RESULT)
