# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that lost something: no other program runs, and no promised step is left out silently.

Judged by what hooks wrote, what reached the service, and what is reported to people.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.sites.runner_process import DRAINS, Host, Start
from tools.sites.waiting import wait_until
from tools.suite.sizes import SEED, SIZE, enough
from tools.worlds.timed_runner import Story, TimedRunner, memory

pytestmark = pytest.mark.emulated(start_delay=0.5, gone_after=1.0)

FLIPS = SIZE.flipped_bits
# Each writes that it runs; to prepare for "long", and to recover from "slow", it waits for a file "go".
HOOK = """#!/bin/sh
cd "${0%/*}" || exit 1
echo "$FOREWARN_PHASE $FOREWARN_EVENT_ID $FOREWARN_ATTEMPT" >> hooks
case "$FOREWARN_PHASE $FOREWARN_DESCRIPTION" in "prepare long"|"recover slow") ;; *) echo >> over; exit 0 ;; esac
while [ ! -e go ]; do sleep 0.01; done
echo >> over
"""


class KilledRunner:
    """What is left of a runner that was killed amid one event's preparation and another's recovery."""

    def __init__(self, world: TimedRunner) -> None:
        self.world = world
        self.left = world.directory / "left"
        (world.directory / "hook").write_text(HOOK)
        schedule = world.emulator.schedule
        self.prepared = schedule("Reboot", ["web_0"], description="long", notice_seconds=100_000)
        self.recovered = schedule("Reboot", ["web_0"], description="slow", notice_seconds=900)
        world.play(self._story())
        self.went_on = {f"prepare {self.prepared} 2", f"recover {self.recovered} 2"}

    def _story(self) -> Story:
        world = self.world
        yield from world.long_hook(self.prepared)
        yield from world.until(lambda: world.lines("hook-started", phase="recover"), 200.0)
        wait_until(lambda: world.hooks()[f"recover {self.recovered} 1"])
        world.long_hooks = 2
        yield from world.wait(3.0)
        shutil.copytree(world.state, self.left)

    def restart(self, change: dict[str, bytes]) -> tuple[set[str], list[tuple[str, str]]]:
        """Start another runner on what was left, with these files changed; return what ran, and what was reported."""
        world = self.world
        shutil.rmtree(world.state)
        shutil.copytree(self.left, world.state)
        for name, content in change.items():
            (world.state / name).write_bytes(content)
        for name in ("hooks", "go", "over"):
            (world.directory / name).unlink(missing_ok=True)
        world.log.lines.clear()
        world.long_hooks = 0
        world.play(self._awhile())
        reported = [
            (name, str(fields.get("reason")))
            for level, name, fields in world.log.lines
            if level == "error" and name in ("record-damaged", "journal-trouble")
        ]
        return set(world.hooks()), reported

    def _awhile(self) -> Story:
        """Let it poll a few times; every hook that starts writes that down, and ends in the end."""
        world = self.world
        end = world.now + 4.0
        while world.now < end:
            wait_until(lambda: world.hooks().total() >= len(world.lines("hook-started")))
            world.long_hooks = len(world.lines("hook-started"))
            yield
        (world.directory / "go").touch()
        over = world.directory / "over"
        wait_until(lambda: (len(over.read_text()) if over.exists() else 0) >= len(world.lines("hook-started")))


@pytest.fixture(scope="module")
def killed() -> Iterator[KilledRunner]:
    with memory() as directory, TimedRunner(directory) as world:
        yield KilledRunner(world)


def test_without_damage_it_goes_on(killed: KilledRunner) -> None:
    assert killed.restart({}) == (killed.went_on, [])


def in_rows(content: bytes, killed: KilledRunner) -> list[int]:
    """Return the offsets of the records of the two events: around each mention of their ids."""
    places: set[int] = set()
    for event_id in (killed.prepared, killed.recovered):
        for spelling in (event_id, event_id.lower()):
            at = content.find(spelling.encode())
            while at >= 0:
                places.update(range(max(0, at - 100), min(len(content), at + 1800)))
                at = content.find(spelling.encode(), at + 1)
    return sorted(places)


@pytest.mark.parametrize("where", ["rows", "anywhere", "rows, without the mark"])
def test_flipped_bit_is_reported_or_changes_nothing(killed: KilledRunner, where: str) -> None:
    """No other program runs, and no recovery is left out without a report."""
    chance = random.Random(f"{SEED} {where}")
    whole = killed.world.directory / "whole"
    checkpoint(killed.left, whole)
    names = [name for name in ("journal.db", "journal.db-wal") if (killed.left / name).exists()]
    unnoticed = []
    noticed = 0
    for number in range(FLIPS):
        # All in one file, or as a kill leaves it. Without WAL and mark nobody could know that the file is an older one.
        if number % 2 or "without the mark" in where:
            name, content = "journal.db", (whole / "journal.db").read_bytes()
            change = {"journal.db-wal": b""}
        else:
            name = chance.choice(names)
            content, change = (killed.left / name).read_bytes(), {}
        places = range(len(content)) if where == "anywhere" else in_rows(content, killed) or range(len(content))
        at, bit = chance.choice(places), 1 << chance.randrange(8)
        change[name] = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        if "without the mark" in where:
            change["journal.mark"] = b""
        ran, reported = killed.restart(change)
        noticed += bool(reported)
        if not ran <= killed.went_on or (ran != killed.went_on and not reported) or killed.world.posts() > 1:
            unnoticed.append((name, at, bit, ran, reported))
    assert not unnoticed
    assert noticed > enough(FLIPS // 10) or where == "anywhere"  # most of the file is of no consequence


def checkpoint(left: Path, target: Path) -> None:
    """Make a copy with everything in one file."""
    import sqlite3

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(left, target)
    connection = sqlite3.connect(target / "journal.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@pytest.mark.parametrize("name", ["journal.db-wal", "journal.db"])
def test_a_file_that_is_not_there_any_more(killed: KilledRunner, name: str) -> None:
    ran, reported = killed.restart({name: b""})
    assert ran == set()
    text = " ".join(reason for _name, reason in reported)
    assert killed.prepared.lower() in text
    assert killed.recovered.lower() in text


SAYING = """
echo "$FOREWARN_PHASE $FOREWARN_EVENT_ID" >> "${0%/*}/said"
[ "$FOREWARN_PHASE" = recover ] || [ -e "${0%/*}/go" ] || exec sleep 60
"""


class Vm(Host):
    """A machine with ``forewarn run`` on it, and an operator."""

    def go(self) -> None:
        (self.directory / "go").touch()

    def status(self) -> tuple[int, str, dict[str, Any]]:
        """Return its exit code, its text for people, and its JSON for programs."""
        shown = self.forewarn("status")
        return shown.returncode, shown.stdout, json.loads(self.forewarn("status", "--json").stdout)


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start) -> Vm:
    return Vm(tmp_path, emulator, start, DRAINS, SAYING)


def test_missing_wal_is_reported_and_holds_the_event(
    host: Vm,
) -> None:
    """The hold lasts until an operator deals with the damage."""
    event_id = host.emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    runner = host.run()
    wait_until(lambda: host.said() == [f"prepare {event_id}"])
    runner.stop(signal.SIGKILL)
    (host.state / "journal.db-wal").unlink()
    host.go()

    runner = host.run()
    reported = runner.wait_for("record-damaged", level="error")
    assert event_id.lower() in reported["reason"]
    assert runner.wait_for("decision", eligibility="in-doubt")["event_id"] == event_id
    wait_until(lambda: "waits for  in-doubt: " in host.status()[1])
    code, text, data = host.status()
    assert code == 1
    (damaged,) = data["damaged"]
    assert damaged["event_keys"] == [event_id.lower()]
    assert any(event_id.lower() in problem for problem in data["problems"])
    assert "Lost, and held until somebody has dealt with it:" in text

    runner.stop(signal.SIGKILL)  # it is still in doubt
    runner = host.run()
    runner.wait_for("decision", eligibility="in-doubt")
    assert host.said() == [f"prepare {event_id}"]
    assert host.approvals() == []

    Path(damaged["file"]).unlink()  # somebody has dealt with it
    runner.wait_for("damage-cleared")
    runner.wait_for("approved")
    runner.wait_for("event-gone")
    wait_until(lambda: host.said() == [f"prepare {event_id}"] * 2 + [f"recover {event_id}"])
    assert host.approvals() == [[event_id]]
    assert host.status()[2]["damaged"] == []


def test_older_database_copy_is_noticed_without_open_events(host: Vm) -> None:
    host.go()
    runner = host.run()
    wait_until(lambda: (host.state / "journal.mark").exists())
    runner.wait_for("document")
    runner.stop()
    before = (host.state / "journal.db").read_bytes()
    runner = host.run()
    event_id = host.emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    runner.wait_for("event-gone")
    wait_until(lambda: host.said() == [f"prepare {event_id}", f"recover {event_id}"])
    runner.wait_for("state", to="done")
    runner.stop()
    (host.state / "journal.db").write_bytes(before)
    runner = host.run()
    assert "commits have gone missing" in runner.wait_for("record-damaged", level="error")["reason"]
    assert host.status()[2]["damaged"] == []
    other = host.emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    wait_until(lambda: host.said()[2:] == [f"prepare {other}", f"recover {other}"])
