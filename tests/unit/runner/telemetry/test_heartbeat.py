# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The heartbeat: what is written can be read, whatever is in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.clocks import Clocks, Stamp
from forewarn.runner.telemetry import heartbeat
from forewarn.runner.telemetry.heartbeat import LONGEST_SILENCE_SECONDS, SIZE, Beat, Heartbeat
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.worlds.stories import Story


def write(directory: Path, fields: dict[str, Any]) -> Beat:
    heart = Heartbeat(str(directory), ManualClocks(5000.0, 1_750_000_000.25))
    heart.beat(fields, durable=False)
    assert heart.trouble is None
    heart.close()
    return read(directory)


def read(directory: Path) -> Beat:
    found = heartbeat.read(str(directory))
    assert found is not None
    return found


def test_a_beat_is_read_as_it_was_written(tmp_path: Path) -> None:
    fields = {"pid": 12, "state": "ok", "last_good_poll": [1.5, 2.5, "boot-a"], "fault": None, "dry_run": False}
    assert write(tmp_path, fields) == Beat(Stamp(1_750_000_000.25, 5000.5, "boot-1"), fields)
    path = tmp_path / "heartbeat"
    assert path.stat().st_mode & 0o777 == 0o600
    content = path.read_bytes()
    assert len(content) == SIZE
    assert content.endswith(b"\n")
    assert content.count(b"\n") == 1
    assert json.loads(content)["forewarn"] == {"schema": "heartbeat", "version": 1}


@pytest.mark.parametrize("durable", [False, True])
def test_each_beat_overwrites_the_one_before(tmp_path: Path, durable: bool) -> None:
    clocks = ManualClocks(5000.0, 1_750_000_000.25)
    heart = Heartbeat(str(tmp_path), clocks)
    heart.beat({"fault": "x" * 300}, durable)
    inode = (tmp_path / "heartbeat").stat().st_ino
    clocks.now += 1.0
    heart.beat({"fault": None}, durable)
    heart.close()
    beat = heartbeat.read(str(tmp_path))
    assert beat == Beat(Stamp(1_750_000_001.25, 5001.5, "boot-1"), {"fault": None})
    assert (tmp_path / "heartbeat").stat().st_ino == inode
    assert (tmp_path / "heartbeat").stat().st_size == SIZE


def test_a_durable_beat_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(heartbeat, "sync_data", synced.append)
    heart = Heartbeat(str(tmp_path), ManualClocks())
    heart.beat({}, durable=False)
    assert synced == []
    heart.beat({}, durable=True)
    assert len(synced) == 1
    heart.close()


def test_previous_beat_is_readable_until_the_first_own(tmp_path: Path) -> None:
    write(tmp_path, {"pid": 1})
    Heartbeat(str(tmp_path), ManualClocks())
    beat = read(tmp_path)
    assert beat.fields == {"pid": 1}


def test_a_text_that_is_too_long_is_cut(tmp_path: Path) -> None:
    vm, long = "n" * 62 + "_1", "x" * 300
    others = dict.fromkeys(("journal_trouble", "reload_problem", "unkept_events"), long)
    beat = write(tmp_path, {"pid": 7, "fault": "é" * 5000, "vm": vm, "policy": "0" * 64, **others})
    assert beat.fields["pid"] == 7
    assert beat.fields["vm"] == vm
    assert beat.fields["fault"].startswith("éééé")
    assert beat.fields["fault"].endswith("…")


def test_oversized_beat_keeps_the_process(tmp_path: Path) -> None:
    beat = write(tmp_path, {str(number): number for number in range(2000)})
    assert beat.fields == {"pid": os.getpid()}


def test_lists_are_cut_and_checked_fields_are_whole(tmp_path: Path) -> None:
    """A path that is cut would be that of another file."""
    options = {"config": "/etc/" + "x" * 300}
    fields = {"options": options, "missing": ["é" * 300] * 100, "policies": [f"policy-{n}" for n in range(2000)]}
    beat = write(tmp_path, {**fields, "source": {"ref": "r" * 300, "paths": ["p" * 300] * 9, "modified": True}})
    assert beat.fields["options"] == options
    assert beat.fields["missing"][-1] == beat.fields["policies"][-1] == "…"
    assert beat.fields["missing"][0].startswith("éé")
    assert beat.fields["source"]["modified"] is True
    beat = write(tmp_path, {**fields, "options": {"config": "x" * 5000}, "pid": 7})
    assert ("options" in beat.fields, beat.fields["pid"]) == (False, 7)
    assert len(beat.fields["missing"]) == 4


@given(
    fields=st.dictionaries(
        st.text(max_size=20),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    )
)
def test_whatever_is_recorded_fits_and_can_be_read(
    fields: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = heartbeat._content(Stamp(1.5, 2.5, "boot"), fields)
    assert len(content) == SIZE
    beat = heartbeat._parse(content)
    assert beat is not None
    assert beat.stamp == Stamp(1.5, 2.5, "boot")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}".ljust(SIZE),
        b"[]".ljust(SIZE),
        b"\xff" * SIZE,
        b"[" * SIZE,
        b'{"stamp":[1,2],"fields":{}}'.ljust(SIZE),
        b'{"stamp":[1,"x","b"],"fields":{}}'.ljust(SIZE),
        b'{"stamp":[1,2,"b"],"fields":[]}'.ljust(SIZE),
        b'{"stamp":[1,2,"b"],"fields":{}}',
    ],
)
def test_what_is_no_beat_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "heartbeat").write_bytes(content)
    assert heartbeat.read(str(tmp_path)) is None


def test_missing_file_or_directory_is_no_beat(tmp_path: Path) -> None:
    assert heartbeat.read(str(tmp_path)) is None
    assert heartbeat.read("no\0path") is None
    (tmp_path / "heartbeat").mkdir()
    assert heartbeat.read(str(tmp_path)) is None


def test_torn_beat_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"pid": 3})
    whole = heartbeat._parse
    seen: list[bytes] = []

    def torn_at_first(content: bytes) -> Beat | None:
        seen.append(content)
        return None if len(seen) == 1 else whole(content)

    monkeypatch.setattr(heartbeat, "_parse", torn_at_first)
    beat = read(tmp_path)
    assert beat.fields == {"pid": 3}


def test_missing_directory_is_trouble_until_it_exists(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    heart = Heartbeat(str(directory), ManualClocks())
    heart.beat({}, durable=True)
    assert heart.trouble == f"{directory}/heartbeat: No such file or directory"
    directory.mkdir()
    heart.beat({"pid": 4}, durable=True)
    assert heart.trouble is None
    assert heartbeat.read(str(directory)) is not None
    heart.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heart = Heartbeat(str(tmp_path), ManualClocks())
    heart._path = Path("/dev/full")
    heart.beat({}, durable=False)
    assert heart.trouble == "/dev/full: No space left on device"
    heart.close()


def test_a_file_that_somebody_removed_comes_back(tmp_path: Path) -> None:
    heart = Heartbeat(str(tmp_path), ManualClocks())
    heart.beat({"pid": 1}, durable=False)
    (tmp_path / "heartbeat").unlink()
    heart.beat({"pid": 2}, durable=False)
    heart.close()
    beat = read(tmp_path)
    assert beat.fields == {"pid": 2}


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / "heartbeat").symlink_to(other)
    heart = Heartbeat(str(tmp_path), ManualClocks())
    heart.beat({}, durable=False)
    assert heart.trouble is not None
    assert other.read_text() == "precious"


# Whether a runner works there


def beat(clocks: Clocks, **fields: Any) -> Beat:
    return Beat(clocks.stamp(), {"pid": os.getpid(), **fields})


@pytest.mark.parametrize(
    ("fields", "seconds", "reason"),
    [
        ({}, 0.0, None),
        ({}, LONGEST_SILENCE_SECONDS, None),
        ({}, LONGEST_SILENCE_SECONDS + 1, "the runner's last sign of life is 3 min 1 s old"),
        # A longer interval makes the longer silence.
        ({"interval_seconds": 60.0}, LONGEST_SILENCE_SECONDS + 120, None),
        ({"interval_seconds": 60.0}, LONGEST_SILENCE_SECONDS + 121, "the runner's last sign of life is 5 min 1 s old"),
        # What is no pid leaves it to the age.
        ({"pid": None}, 0.0, None),
        ({"pid": "12"}, 0.0, None),
        ({"pid": 10**40}, 0.0, None),
    ],
)
def test_runner_works_until_it_is_silent_for_long(fields: dict[str, Any], seconds: float, reason: str | None) -> None:
    clocks = ManualClocks()
    latest = beat(clocks, **fields)
    clocks.now += seconds
    assert heartbeat.silence(latest, clocks) == reason


def test_a_runner_that_has_ended_does_not_work() -> None:
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    pid = int(process.stdout)
    clocks = ManualClocks()
    assert heartbeat.silence(beat(clocks, pid=pid), clocks) == f"the runner has ended (it was process {pid})"


def test_a_runner_before_the_reboot_does_not_work() -> None:
    clocks = ManualClocks()
    before = beat(clocks)
    clocks.boot_id = "boot-b"
    assert "booted" in str(heartbeat.silence(before, clocks))


def test_no_beat_is_no_runner() -> None:
    assert "no runner" in str(heartbeat.silence(None, ManualClocks()))


def test_unwritable_state_directory_moves_the_beat_to_memory(tmp_path: Path) -> None:
    clocks = ManualClocks()
    state, memory = tmp_path / "state", tmp_path / "run" / "forewarn"
    beating = Heartbeat(str(state), clocks, str(memory))
    beating.beat({"number": 1}, durable=False)
    assert beating.trouble is not None
    found = heartbeat.read(str(state), str(memory))
    assert found is not None
    assert found.fields == {"number": 1}
    assert heartbeat.read(str(tmp_path / "other"), str(memory)) is None, "each state directory has its own"
    state.mkdir()
    clocks.now += 1
    beating.beat({"number": 2}, durable=False)
    assert beating.trouble is None
    found = heartbeat.read(str(state), str(memory))
    assert found is not None
    assert found.fields == {"number": 2}
    assert list(memory.iterdir()) == []
    beating.close()


@pytest.mark.parametrize("end", ["_stopped", "close"])
def test_ended_runner_has_no_state_file_open(tmp_path: Path, end: str) -> None:
    def open_files() -> list[str]:
        found = []
        for link in list(Path("/proc/self/fd").iterdir()):
            with suppress(FileNotFoundError):  # that of this very look, or what the collector closes meanwhile
                found.append(str(link.readlink()))
        return [path for path in found if path.startswith(str(tmp_path))]

    story = Story(tmp_path)
    story.turns(3)
    assert str(tmp_path / "heartbeat") in open_files()
    getattr(story.instance.runner, end)()
    assert open_files() == []
