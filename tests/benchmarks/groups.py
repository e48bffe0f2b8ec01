# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a group costs: from the last prepared VM to the approval, requests to the store, many VMs at one document."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processes import PYTHON, emulator, started
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from forewarn.emulator.client import EmulatorClient
from forewarn.runner.groups import barrier, documents, semaphore
from forewarn.runner.groups.barrier import READY, Statement
from forewarn.runner.groups.semaphore import Semaphore
from forewarn.runner.groups.store import Store, StoreFault
from forewarn.runner.groups.transaction import change
from tools.servers.etcd_server import EtcdCluster, etcd_cluster
from tools.sites.runner_process import compiled, program
from tools.sites.waiting import wait_until

INTERVAL, ALLOWANCE = 1.0, 0.1
RUNNERS, EVENT_VMS, ROUNDS = 12, 3, 8
CROWD, CROWD_SECONDS = 200, 5.0
SETTLING_SECONDS = 4.0
POLICY = """
name: web
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      group: ready
      limit: {runners}
      prepare: [{{run: [{hook}], timeout: 30s}}]
"""
# Each hook takes up to two seconds, and notes when it has ended.
HOOK = """
number=$(od -An -N1 -tu1 /dev/urandom)
sleep "$((number / 128)).$((number % 100 / 10))"
touch "$(dirname "$0")/$FOREWARN_EVENT_ID-$FOREWARN_VM_NAME"
"""


def run() -> Report:
    """Measure with one node of etcd, on this machine."""
    if shutil.which("etcd") is None:
        return Report("VMs of a group", [], [], ["Skipped: there is no etcd (Debian: etcd-server)."])
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as name:
        directory = Path(name)
        directory.chmod(0o700)
        with etcd_cluster(directory, 1, users=False) as cluster:
            latencies, idle = _together(directory, cluster)
            seconds, conflicts = _crowd(cluster, CROWD)
            trips = _round_trips(cluster)
    p50, p99 = (latencies[round(share * len(latencies)) - 1] for share in (0.5, 0.99))
    return Report(
        "VMs of a group",
        [
            Quantity("last VM prepared to approval, p50", p50 * 1e3, "ms"),
            Quantity("last VM prepared to approval, p99", p99 * 1e3, "ms"),
            Quantity("requests to the store of an idle fleet", idle, "requests"),
            Quantity(f"{CROWD} VMs at one document", seconds, "s"),
            Quantity(f"conflicts of {CROWD} VMs", conflicts, "swaps"),
        ],
        [
            Goal("p99", p99 / (INTERVAL + ALLOWANCE), f"({INTERVAL:g} s + {ALLOWANCE * 1e3:g} ms)", AT_MOST, 1),
            Goal("a swap without a conflict", trips / 2, "2 round trips", AT_MOST, 1),
            Goal("an idle fleet", idle, "1 request", AT_MOST, 0),
            Goal(f"{CROWD} VMs at once", seconds / CROWD_SECONDS, f"{CROWD_SECONDS:g} s", AT_MOST, 1),
        ],
        [
            f"{len(latencies)} events of {EVENT_VMS} VMs, {RUNNERS} runner processes that poll every {INTERVAL:g} s, "
            "etcd with TLS.",
            f"Idle: {RUNNERS} runners for {SETTLING_SECONDS:g} s. At once: threads that say that their VMs are ready.",
        ],
    )


def _together(directory: Path, cluster: EtcdCluster) -> tuple[list[float], int]:
    """Let runners prepare together; return the seconds from the last prepared VM to the approval, sorted, and how many
    requests the store got before there was an event.
    """
    vms = [f"vm_{number}" for number in range(RUNNERS)]
    with closing(cluster.store()) as store:
        store.swap(documents.semaphore_key("web"), semaphore.encode(Semaphore()), "")
        revision = _revision(cluster)
    hook = program(directory / "hook", HOOK)
    artifact = compiled(directory, POLICY.format(runners=RUNNERS, hook=hook))
    config = directory / "config.json"
    config.write_text(json.dumps({"artifact": str(artifact), "group": "web", "group_store": cluster.settings()}))
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(emulator(vms))
        for vm in vms:
            command = [*PYTHON, "-m", "forewarn.cli.main", "run", "--config", str(config)]
            stack.enter_context(started([*command, "--endpoint", client.vm_endpoint(vm)]))
        time.sleep(SETTLING_SECONDS)  # an idle fleet is measured meanwhile
        idle = _revision(cluster) - revision
        found = []
        for number in range(ROUNDS):
            events = [
                client.schedule("Reboot", vms[place : place + EVENT_VMS], notice_seconds=600, gone_after_seconds=1)
                for place in range(0, RUNNERS, EVENT_VMS)
            ]
            found += [_latency(client, directory, event) for event in events]
            time.sleep(2.0 + number % 2 / 2)  # so that rounds do not begin at the same moment of the polls
        return sorted(found), idle


def _latency(client: EmulatorClient, directory: Path, event: str) -> float:
    def approvals() -> list[dict[str, Any]]:
        return list(client.event(event)["approvals"])

    (approval, *_more) = wait_until(approvals, 60, 0.05, f"{event} was not approved")
    prepared = max(path.stat().st_mtime for path in directory.glob(f"{event}-*"))
    return float(approval["at"]["wall"]) - prepared


def _revision(cluster: EtcdCluster) -> int:
    """Return how many requests etcd has taken from clients so far."""
    metrics = cluster.get(cluster.members[0], "metrics")
    lines = [line for line in metrics.splitlines() if line.startswith("grpc_server_handled_total")]
    wanted = [line for line in lines if 'grpc_service="etcdserverpb.KV"' in line]
    return sum(int(float(line.rpartition(" ")[2])) for line in wanted)


def _crowd(cluster: EtcdCluster, members: int) -> tuple[float, int]:
    """Let VMs say at once that they are ready for one event; return the seconds until all have, and the conflicts."""
    names = [f"vm-{number}" for number in range(members)]
    key = documents.barrier_key("web", f"crowd of {members}")
    encode = partial(barrier.encode, event_id="crowd")
    swaps: list[int] = []
    begin = threading.Barrier(members + 1)

    def say(name: str, store: Store) -> None:
        chance = random.Random(name)
        step = partial(barrier.step, me=name, own=Statement("content", READY), names=names)
        begin.wait(120)
        done = None
        while done is None:  # asked again after a fault, as a runner would
            with contextlib.suppress(StoreFault):
                done = change(store, key, barrier.decode, encode, step, time.monotonic, partial(_pause, chance))
        swaps.append(done.swaps)

    with contextlib.ExitStack() as stack:
        threads = []
        for name in names:
            store = stack.enter_context(closing(cluster.store()))
            store.read(key)  # connected, as a runner is that has waited
            threads.append(threading.Thread(target=say, args=(name, store)))
        for thread in threads:
            thread.start()
        begin.wait(120)
        began = time.monotonic()
        for thread in threads:
            thread.join()
        return time.monotonic() - began, sum(swaps) - len(swaps)


def _pause(chance: random.Random, attempt: int) -> None:
    time.sleep(min(0.002 * 2.0**attempt, 0.25) * chance.random())  # as a runner does after a conflict


def _round_trips(cluster: EtcdCluster) -> int:
    """Return how many requests a change takes that meets no conflict."""
    with closing(cluster.store()) as store:
        store.read("forewarn/web/warm")
        before = _revision(cluster)
        encode = partial(barrier.encode, event_id="one")
        step = partial(barrier.step, me="vm", own=Statement("content", READY), names=("vm",))
        change(store, "forewarn/web/events/one", barrier.decode, encode, step, time.monotonic, lambda _n: None)
        return _revision(cluster) - before
