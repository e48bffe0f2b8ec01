# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that cannot be written, or is damaged, while events are under way: what is held, and what goes on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.runner.journal.reader import JournalReader
from tools.fixtures.journals import run_with_own_mounts
from tools.sites.commands import SEARCH_PATH, run_program
from tools.sites.runner_process import Start, compiled
from tools.worlds.timed_runner import Story, TimedRunner, memory

WITH_MOUNTS = """
import json, sys
from pathlib import Path
from tools.fixtures.journal_trouble import play
print(json.dumps(play(Path(sys.argv[1]), {kind!r}, {when!r})))
"""
ALL_ONCE = {"hooks": ["prepare", "recover"], "approved": True, "eligibility": "started"}
UNTOUCHED = {"hooks": [], "approved": False, "eligibility": "journal-trouble"}
PLAIN = {"hooks": [], "approved": True, "eligibility": "started"}


NEEDS_ROOT = pytest.mark.root(reason="where a plain user may mount, root's programs are somebody else's, and no hooks")


@pytest.mark.parametrize(
    ("kind", "when", "line"),
    [
        ("too-large", "middle", "the disk cannot be read or written"),
        ("too-large", "start", "the disk cannot be read or written"),
        pytest.param("full", "middle", "the disk is full", marks=NEEDS_ROOT),
        pytest.param("full", "start", "the disk is full", marks=NEEDS_ROOT),
        pytest.param("read-only", "start", "Read-only file system", marks=NEEDS_ROOT),
    ],
)
def test_unwritable_journal_holds_events_with_hooks(kind: str, when: str, line: str) -> None:
    """Others are approved meanwhile. A drain that runs goes on and counts, and recoveries run when due."""
    with memory() as directory:
        if kind == "too-large":
            seen = in_a_process(directory, kind, when)
        else:
            seen = run_with_own_mounts(WITH_MOUNTS.format(kind=kind, when=when), directory)
    (reason,) = seen["reasons"]
    assert line in reason
    trouble = seen["in trouble"]
    assert (trouble["new"], trouble["plain"]) == (UNTOUCHED, PLAIN)
    if when == "middle":
        assert trouble["draining"] == {"hooks": ["prepare"], "approved": False, "eligibility": "journal-trouble"}
        # Where no file can grow, a hook that writes down what it does fails as well.
        assert trouble["leaving"] == (ALL_ONCE if kind == "full" else {**ALL_ONCE, "hooks": ["prepare"]})
    events = seen["in the end"]
    expected = {name: PLAIN if name == "plain" else ALL_ONCE for name in events}
    if (kind, when) == ("too-large", "middle"):  # the recovery that had failed was due when the next event's ran
        expected["leaving"] = {**ALL_ONCE, "hooks": ["prepare"]}
    assert events == expected
    assert len(events) - 1 <= seen["posts"] <= len(events), "what is ready together is approved together"


def in_a_process(directory: Path, *arguments: str) -> dict[str, Any]:
    """Run ``tools.fixtures.journal_trouble``; return what it prints."""
    command = [sys.executable, "-m", "tools.fixtures.journal_trouble", directory, *arguments]
    done = run_program(*command, env={**os.environ, "PYTHONPATH": SEARCH_PATH})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


FULL_DISK = """
import json, sys
from pathlib import Path
from tools.sites.full_disk import play
print(json.dumps(play(Path(sys.argv[1]), {when!r})))
"""


@NEEDS_ROOT
@pytest.mark.parametrize("when", ["start", "middle"])
def test_full_disk_status_names_the_held_events(when: str) -> None:
    with memory() as directory:
        seen = run_with_own_mounts(FULL_DISK.format(when=when), directory)
    full, healed = seen["full"], seen["healed"]
    assert full["code"] == 1, full
    assert "Nothing is pending" not in full["out"]
    assert "runner   running since" in full["out"]
    assert "nothing can be kept" in full["out"]
    assert "the disk is full" in full["out"]
    assert f"1 event not in the journal, and held where there are hooks: Reboot {seen['event']}" in full["out"]
    assert seen["event"] in healed["out"]
    assert seen["left"] == []


def overwrite(path: Path) -> None:
    """Damage the files in place, as a disk does."""
    for file in (path, path.with_name(path.name + "-wal")):
        size = file.stat().st_size
        with file.open("r+b") as stream:
            stream.write(b"\xa5" * size)


def replace(path: Path) -> None:
    """Put another file in its place."""
    path.unlink()
    path.write_bytes(b"this is not a database " * 1000)


def remove(path: Path) -> None:
    """Remove it, and the files that belong to it."""
    for file in path.parent.glob(path.name + "*"):
        file.unlink()


@pytest.mark.parametrize("damage", [overwrite, replace, remove])
def test_journal_damaged_during_a_drain_loses_only_history(damage: Callable[[Path], None]) -> None:
    """The runner has the open records, so only history is lost. The next runner can work, too."""

    def story() -> Story:
        yield from world.long_hook(event_id)
        damage(world.state / "journal.db")
        yield from world.wait(5.0)
        world.let_go()
        yield from world.until(lambda: world.over(event_id))

    def another() -> Story:
        event_id = world.emulator.schedule("Reboot", ["web_0"])
        yield from world.until(lambda: world.over(event_id))

    with memory() as directory, TimedRunner(directory) as world:
        event_id = world.emulator.schedule("Reboot", ["web_0"], description="long")
        world.play(story())
        assert world.hooks() == {f"prepare {event_id} 1": 1, f"recover {event_id} 1": 1}
        assert world.posts() == 1
        world.play(another())
        assert (world.hooks().total(), world.posts()) == (4, 2)
        assert JournalReader(str(world.state)).records(open_only=True) == []
        # Overwritten pages are noticed when they are read, which may be at the next start; or all of them are written
        # again before that, and nothing is lost.
        aside = [path for path in world.state.glob("journal.db.corrupt-*") if path.suffix not in ("-wal", "-shm")]
        assert len(aside) <= (damage is overwrite)
        if damage is overwrite and not aside:
            assert next(row.key for row in JournalReader(str(world.state)).records()) == event_id.lower()
        for path in aside:
            (line,) = world.lines("journal-trouble")
            assert str(path) in line["reason"]
            assert "still drained" in line["hint"]


@pytest.mark.vm_python
def test_journal_damaged_before_the_start_is_reported(tmp_path: Path, emulator: EmulatorClient, start: Start) -> None:
    """It is reported, and the file kept. Events that may have been in it are held; later ones are handled."""
    tmp_path.chmod(0o700)
    policy = "name: drains\nrule:\n  match:\n    - {output: approve, prepare: [{run: [/bin/true]}]}\n"
    artifact = compiled(tmp_path, policy)
    state = tmp_path / "state-web_0"
    state.mkdir(mode=0o700)
    (state / "journal.db").write_bytes(b"this is not a database " * 1000)
    event_id = emulator.schedule("Reboot", ["web_0"])
    runner = start("--artifact", str(artifact))
    line = runner.wait_for("journal-trouble", level="error")
    (aside,) = state.glob("journal.db.corrupt-*")
    assert str(aside) in line["reason"]
    assert runner.wait_for("decision", eligibility="in-doubt")["event_id"] == event_id
    later = emulator.schedule("Reboot", ["web_0"])
    assert runner.wait_for("approved")["event_ids"] == [later]
    (kept,) = state.glob("damaged/*.json")
    kept.unlink()
    assert runner.wait_for("approved", count=2)["event_ids"] == [event_id]
    assert {record.key for record in JournalReader(str(state)).records()} == {event_id.lower(), later.lower()}
