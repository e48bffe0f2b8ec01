# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many runners and three nodes of etcd in namespaces of their own, while nodes and runners fail; then a judgement.

``python -m lab.groups.story SECONDS SEED DIRECTORY etcd|blob``, run by ``test_groups`` in new namespaces of mounts,
networks and processes, which end with it. It writes one JSON object: what was done, and which promises were broken.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import EventSpec, Settings
from forewarn.runner.groups import documents, semaphore
from forewarn.runner.groups.obligations import FILE_NAME
from forewarn.runner.groups.semaphore import Semaphore
from forewarn.runner.groups.store import StoreFault
from forewarn.runner.journal.reader import JournalReader
from tools.judges.group_judge import Judge, ListedEvent
from tools.servers.etcd_server import EtcdCluster, Member, etcd_cluster
from tools.sites.waiting import wait_until
from tools.worlds.runner_world import EPOCH, Entry

from .blob import BlobCluster, blob_cluster
from .fleet import AT_MOST, GROUP, HERE, RULES, RUNNERS, Fleet, ip, make_networks

QUIET_SECONDS = 90.0


class Story:
    """What happens, drawn from a seed, and what has to hold afterwards."""

    def __init__(self, seed: int, directory: Path, server: EmulatorServer, cluster: EtcdCluster | BlobCluster) -> None:
        self.random = Random(seed)
        self.server = server
        self.model = server.emulation.model
        self.cluster = cluster
        self.fleet = Fleet(directory, server, cluster.settings())
        self.done: Counter[str] = Counter()
        self.broken: list[str] = []
        self.rules: dict[str, str] = {}
        self.taken_late: set[tuple[str, str]] = set()  # VM and event: for which others took a slot too late
        self._later: list[tuple[float, Callable[[], None]]] = []

    def play(self, seconds: float) -> None:
        """Let things happen for so long, then mend everything, and wait until all is over."""
        self.create()
        for name in self.fleet.names:
            self.fleet.start(name)
        wait_until(self.fleet.all_up, 300, 0.1, "not every runner has begun its journal")
        end, wiped = time.monotonic() + seconds, False
        while time.monotonic() < end:
            if not wiped and end - time.monotonic() < seconds / 3.0:
                self.mend()
                self.wait_until_quiet()
                self.wipe()
                wiped = True
            self.happen()
            self.pass_time(self.random.choice((0.5, 1.0, 2.0)))
        self.mend()
        self.wait_until_quiet()

    def create(self) -> None:
        """Create the semaphore, as a person does: again, where the store has not answered."""

        def created() -> bool:
            with contextlib.suppress(StoreFault), closing(self.cluster.store()) as store:
                store.swap(documents.semaphore_key(GROUP), semaphore.encode(Semaphore()), "")
                return True
            return False

        wait_until(created, pause=0.5, what="the store does not answer")

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and do what is due."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.1)  # real processes, real time
            due = [each for each in self._later if each[0] <= time.monotonic()]
            self._later = [each for each in self._later if each not in due]
            for _at, do in due:
                do()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, do))

    # What happens

    def happen(self) -> None:
        deeds = {self.schedule: 8, self.cancel: 1, self.kill: 3, self.pause: 2, self.kill_node: 1}
        deeds[self.pause_node] = 1
        if isinstance(self.cluster, EtcdCluster):  # the nodes have networks and disks of their own
            deeds.update({self.cut_node: 1, self.cut_far_runners: 1, self.fill_disk: 1})
        (deed,) = self.random.choices(list(deeds), list(deeds.values()))
        deed()
        self.done[deed.__name__] += 1

    def schedule(self) -> None:
        rule = self.random.choice(list(RULES))
        names = self.random.sample(self.fleet.names, self.random.choice((1, 1, 2, 2, 3, 4)))
        spec = EventSpec(
            "Reboot",
            tuple(names),
            notice=self.random.choice((45.0, 60.0, 90.0)),
            description=rule,
            impact=1.0,
            gone_after=self.random.choice((2.0, 6.0)),
        )
        with self.server.emulation.lock:
            self.rules[self.model.schedule(spec)] = rule

    def cancel(self) -> None:
        with self.server.emulation.lock:
            self.model.settle()
            scheduled = [event.event_id for event in self.model.events.values() if event.status == "Scheduled"]
            if scheduled:
                self.model.cancel(self.random.choice(scheduled))

    def kill(self) -> None:
        name = self.random.choice(self.fleet.names)
        self.fleet.kill(name)
        self.after(self.random.choice((0.0, 3.0, 10.0)), lambda: self.fleet.start(name))

    def pause(self) -> None:
        name = self.random.choice(self.fleet.names)
        self.fleet.signal(name, signal.SIGSTOP)
        self.after(self.random.choice((2.0, 8.0)), lambda: self.fleet.signal(name, signal.SIGCONT))

    def kill_node(self) -> None:
        member: Any = self.random.choice(self.cluster.members)
        member.kill()
        self.after(self.random.choice((1.0, 8.0)), lambda: self._ensure(member))

    def pause_node(self) -> None:
        member: Any = self.random.choice(self.cluster.members)
        member.freeze()
        self.after(self.random.choice((1.0, 6.0)), member.thaw)

    def cut_node(self) -> None:
        self._cut(f"to-node{self.random.choice((1, 2, 3))}")

    def cut_far_runners(self) -> None:
        self._cut("to-far")

    def _cut(self, link: str) -> None:
        ip("link", "set", link, "down")
        self.after(self.random.choice((2.0, 10.0)), lambda: ip("link", "set", link, "up"))

    def fill_disk(self) -> None:
        """Fill the disk of the first node."""
        data = self.cluster.members[0].data
        full = data / "full"
        with contextlib.suppress(OSError), full.open("wb") as file:
            while True:
                file.write(b"\0" * 1024 * 1024)
                file.flush()

        def free() -> None:
            full.unlink(missing_ok=True)
            self._ensure(self.cluster.members[0])

        self.after(5.0, free)

    def _ensure(self, member: Any) -> None:
        """Start a node that has ended, as its service would."""
        if not member.runs:
            self.cluster.start(member)

    def mend(self) -> None:
        """Mend everything."""
        for _at, do in self._later:
            do()
        self._later = []
        for member in self.cluster.members:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                member.thaw()
            self._ensure(member)
        self.cluster.settle()
        for name in self.fleet.names:
            self.fleet.signal(name, signal.SIGCONT)
            self.fleet.start(name)

    def wipe(self) -> None:
        """Lose all data of etcd; then a person, who has seen that nobody is disturbed, sets everything up again."""
        for member in self.cluster.members:
            member.kill()
            for path in member.data.iterdir() if member.data.exists() else ():
                shutil.rmtree(path, ignore_errors=True)
        self.cluster.begin()
        self.schedule()
        time.sleep(8.0)  # nobody takes a slot of a semaphore that is not there
        self.create()
        for name in self.fleet.names:
            self.fleet.kill(name)
            self.fleet.start(name)
        self.done["wipe"] += 1

    # The end

    def wait_until_quiet(self) -> None:
        """Wait until every event is over, and every VM has recovered and owes nothing."""
        end = time.monotonic() + 120.0 + QUIET_SECONDS
        left: list[str] = []
        while time.monotonic() < end:
            time.sleep(0.25)  # until the next look
            left = list(self._left())
            if not left:
                return
        self.broken += left

    def _left(self) -> Iterator[str]:
        with self.server.emulation.lock:
            self.model.settle()
            yield from (f"{each.event_id} is listed" for each in self.model.events.values() if each.listed)
        for name in self.fleet.names:
            if (self.fleet.state(name) / FILE_NAME).exists():
                yield f"{name} still owes something"
            elif any(JournalReader(str(self.fleet.state(name))).records(open_only=True)):
                yield f"{name} has not recovered"
        try:
            with closing(self.cluster.store()) as store:
                document = semaphore.decode(store.read(documents.semaphore_key(GROUP)).value or b"")
        except StoreFault as fault:
            yield fault.message
        else:
            for key, slot in document.slots.items():
                for name in slot.names:
                    if self._gave_back(name, key):
                        self.taken_late.add((name, key))
                    else:
                        yield f"{name} left its slot for {key}: {slot}"

    def _gave_back(self, name: str, key: str) -> bool:
        """Return whether a slot that a VM has now was taken by another VM, after it had given back its own.

        Or after the event was over for it, which it has never seen: both are freed an hour later, see docs/groups.md.
        """
        if not JournalReader(str(self.fleet.state(name))).records(event=key):
            return True
        log = self.fleet.log(name).read_text()
        lines = [json.loads(line) for line in log.splitlines() if '"line": "slot-' in line]
        return [line["line"] for line in lines if line["event_id"].lower() == key][-1:] == ["slot-free"]

    def judge(self) -> list[str]:
        """Return which promises were broken, by the journals and the emulator's log of requests."""
        ledgers = {name: _ledger(str(self.fleet.state(name))) for name in self.fleet.names}
        events = {}
        with self.server.emulation.lock:
            for event_id, rule in self.rules.items():
                event = self.model.find(event_id)
                gone = time.time() if event.ended is None else event.ended.wall
                events[event_id] = ListedEvent(event_id, event.spec.resources, rule, gone - EPOCH)
                for approval in event.approvals:
                    fields = {"ids": [event_id], "result": "taken"}
                    ledgers[approval.vm].append(Entry(approval.at.wall - EPOCH, "post", fields))
        self.done["slots taken late"] = len(self.taken_late)
        self.done["approvals"] = sum(len(self.model.find(event_id).approvals) for event_id in events)
        self.done["approved events"] = sum(bool(self.model.find(event_id).approvals) for event_id in events)
        return Judge(events, RULES, AT_MOST, {}).judge(ledgers)


def _ledger(state: str) -> list[Entry]:
    """Return what a VM's journal says of its hooks, and what the service has told it."""
    reader = JournalReader(state)
    events = {record.id: record.data["event"]["EventId"] for record in reader.records()}
    found, number = [], 0
    running: dict[tuple[object, ...], int] = {}
    for entry in reader.entries():
        at, fields = entry.stamp.wall - EPOCH, entry.fields
        if entry.kind == "document":
            listed = [
                {
                    "id": each["EventId"],
                    "not_before": _wall(each.get("NotBefore")),
                    "duration": each.get("DurationInSeconds"),
                }
                for each in fields["document"]["Events"]
            ]
            found.append(Entry(at, "document", {"events": listed}))
        elif entry.kind == "hook-started":
            number += 1
            key = entry.record_id, fields["hook"], fields["attempt"]
            running[key] = number
            started = {"uid": number, "event": events[entry.record_id or 0], "phase": fields["phase"]}
            found.append(Entry(at, "start", started))
        elif entry.kind == "hook-ended":
            key = entry.record_id, fields["hook"], fields["attempt"]
            if key in running:
                found.append(Entry(at, "end", {"uid": running[key], "result": fields["result"]}))
    return found


def _wall(text: str | None) -> float | None:
    from forewarn.events import parse_time

    moment = None if not text else parse_time(text)
    return None if moment is None else moment.timestamp()


def main() -> None:
    seconds, seed, directory = float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    nodes = make_networks()
    with blob_cluster(directory) if sys.argv[4] == "blob" else nodes_of_etcd(directory, nodes) as cluster:
        play(seconds, seed, directory, cluster)


@contextmanager
def nodes_of_etcd(directory: Path, nodes: Sequence[tuple[str, str]]) -> Iterator[EtcdCluster]:
    """Run etcd on nodes that have networks of their own, the first with a disk that can be filled."""
    members = [Member(name, directory, address, ("ip", "netns", "exec", name)) for name, address in nodes]
    for member in members[:1]:  # whose disk can be filled
        member.data.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m,mode=700", "none", str(member.data)], check=True)
    for member in members[1:]:
        member.data.mkdir(mode=0o700)
    with etcd_cluster(directory, 3, members=members) as cluster:
        yield cluster


def play(seconds: float, seed: int, directory: Path, cluster: EtcdCluster | BlobCluster) -> None:
    """Play the story, and write what came of it."""
    names = [f"vm-{number}" for number in range(RUNNERS)]
    settings = Settings(start_delay=0.5, first_events=0.0)
    with EmulatorServer(host=HERE, vms=names, settings=settings) as server:
        story = Story(seed, directory, server, cluster)
        try:
            story.play(seconds)
        finally:
            story.fleet.stop()
        broken = [*story.broken, *story.judge()]
    print(json.dumps({"seed": seed, "done": dict(story.done), "events": len(story.rules), "broken": broken}))


if __name__ == "__main__":
    main()
