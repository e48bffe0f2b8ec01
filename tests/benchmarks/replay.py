# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long 100,000 recorded documents take through a policy, and whether the memory grows with them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from tools.fixtures.events import in_minutes, listed

DOCUMENTS = 100_000
FEW = 10_000
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")


def run() -> Report:
    """Replay polls of each second, and changes minutes apart, between which the policy decides many times."""
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory:
        polls = record(Path(directory) / "polls.jsonl", DOCUMENTS, 1, 0.003)
        changes = record(Path(directory) / "changes.jsonl", DOCUMENTS, 300, 1)
        few = record(Path(directory) / "few.jsonl", FEW, 300, 1)
        polls_seconds, _memory = replay(polls)
        seconds, memory = replay(changes)
        _seconds, little = replay(few)
    return Report(
        "Replay of recorded documents",
        [
            Quantity(f"{DOCUMENTS:,} documents, a poll each second", polls_seconds, "s"),
            Quantity(f"{DOCUMENTS:,} documents, a change every 5 minutes", seconds, "s"),
            Quantity("peak memory", memory / 2**20, "MiB"),
        ],
        [
            Goal("polls", polls_seconds / 60, "a minute", AT_MOST, 1),
            Goal("changes", seconds / 60, "a minute", AT_MOST, 1),
            Goal("changes, all documents differ", seconds / 20, "20 s", AT_MOST, 1),
            Goal("peak memory", memory / little, f"that of {FEW:,} documents", AT_MOST, 1.2),
        ],
        [f"Of a process, start included, with {POLICY.name}, which decides by the time left."],
    )


def record(path: Path, documents: int, seconds: float, share: float) -> Path:
    """Write some documents, some seconds apart; ``share`` is the probability that a document differs from the last."""
    chance = random.Random(1)
    moment, number = START, 0
    events: list[dict[str, Any]] = []
    with path.open("w") as file:
        for _ in range(documents):
            if chance.random() < share:
                number += 1
                events = following(events, moment, number, chance)
            at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
            line = {"time": at, "vm": "web_0", "document": {"DocumentIncarnation": number, "Events": events}}
            file.write(json.dumps(line) + "\n")
            moment += timedelta(seconds=seconds)
    return path


def following(
    events: list[dict[str, Any]], moment: datetime, number: int, chance: random.Random
) -> list[dict[str, Any]]:
    """Return what the next document lists: an event, the same one started, or nothing."""
    if events and events[0]["EventStatus"] == "Started":
        return []
    if events:
        return [{**events[0], "EventStatus": "Started", "NotBefore": ""}]
    return [
        listed(
            f"{number:08X}-AFDC-4513-B24B-AA5F13A16123",
            EventType=chance.choice(TYPES),
            NotBefore=in_minutes(15, moment),
            Description="Host server is undergoing maintenance.",
            DurationInSeconds=chance.choice((-1, 5, 9, 30)),
        )
    ]


def replay(recording: Path) -> tuple[float, int]:
    """Return how long the command takes (seconds), and its peak memory (bytes)."""
    command = [sys.executable, "-m", "forewarn.cli.main", "policy", "replay", str(POLICY), "--from", str(recording)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "--summary", "--json"], stdout=subprocess.PIPE)
    assert process.stdout
    summary = json.loads(process.stdout.read())["summary"]
    process.stdout.close()
    _pid, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not summary["events"] or summary["unreadable"]:
        raise AssertionError(f"the replay did not work: exit code {process.returncode}, {summary}")
    return seconds, usage.ru_maxrss * 1024
