# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator's pause, on a runner in a simulated world: what is held back, what goes on, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.policy import pause as pauses_on_disk
from forewarn.policy.pause import LONGEST_SECONDS, Pause
from forewarn.runner.requester import APPROVAL
from forewarn.runner.state.directories import StateDirectory
from forewarn.runner.telemetry import heartbeat
from tools.worlds import pauses
from tools.worlds.runner_world import Hook
from tools.worlds.stories import ProfileStory


def _soon(hook: Hook) -> None:
    hook.ends_at = hook.started_at + 0.5


@pytest.fixture
def story(tmp_path: Path) -> ProfileStory:
    made = ProfileStory(tmp_path, _soon)
    made.turns(3)
    return made


def beat(story: ProfileStory) -> dict[str, Any]:
    found = heartbeat.read(str(story.directory))
    assert found is not None
    return dict(found.fields)


def test_pause_delays_approvals_but_no_hooks(story: ProfileStory) -> None:
    pauses.pause(story.world, str(story.directory), 60.0)
    event = story.schedule("drain", notice=600.0, start_on="any_approval", gone_after=4.0)
    story.turns(50)
    assert (story.count("start", name="drain"), story.count("post")) == (1, 0)
    other = story.schedule("share-a", notice=600.0, start_on="not_before")
    story.turns(5)
    story.cancel_event(other, 2)
    assert story.count("start", phase="recover") == 1, "recovery goes on"
    paused = story.times("pause")[0]
    story.turns(10)
    (post,) = story.times("post")
    assert paused + 60.0 <= post <= paused + 62.0, "it ends by itself"
    assert story.world.model.find(event).status != "Scheduled"


def test_pause_survives_crash_boot_and_clock_steps(story: ProfileStory) -> None:
    pauses.pause(story.world, str(story.directory), 100.0)
    story.schedule("plain", notice=3600.0)
    story.turns(5)
    story.crash()
    story.turns(5)
    story.crash(down=20.0, reboot=True)
    story.turns(5)
    story.world.wall_error -= 500.0
    story.world.note("step", seconds=-500.0)
    story.turns(300)
    assert story.count("post") == 0, "its end is a time of day"
    story.turns(400)
    assert story.count("post") == 1


def test_resume_ends_it_at_once(story: ProfileStory) -> None:
    pauses.pause(story.world, str(story.directory), 3600.0)
    story.schedule("plain", notice=600.0)
    story.turns(5)
    assert story.count("post") == 0
    pauses.resume(story.world, str(story.directory))
    story.turns(2)
    assert story.count("post") == 1


GOOD = json.loads(pauses_on_disk.encode_pause(Pause("pause-1", "alice", "a release", 1.8e9, 1.8e9 + 60)))
NOT_A_PAUSE: list[bytes] = [
    *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b"x" * 70_000, b"[" * 5000),
    *(
        json.dumps({**GOOD, name: value}).encode()
        for name, value in (
            ("until", "soon"),
            ("until", True),
            ("until", 1e300),
            ("until", 1.8e9),  # it ends when it begins
            ("until", 1.8e9 + LONGEST_SECONDS + 1),
            ("began", None),
            ("by", 7),
            ("reason", "two\nlines"),
            ("ended_by", 7),
            ("forewarn", {"schema": "pause", "version": 2}),
            ("more", 1),
        )
    ),
    json.dumps(GOOD).replace("1800000060.0", "NaN").encode(),
]


@pytest.mark.parametrize("content", NOT_A_PAUSE, ids=range(len(NOT_A_PAUSE)))
def test_unreadable_file_counts_as_a_pause(story: ProfileStory, content: bytes) -> None:
    pauses.damage(story.world, str(story.directory), content)
    story.schedule("plain", notice=600.0)
    story.turns(3)
    assert story.count("post") == 0
    problem = beat(story)["pause"]["problem"]
    assert str(story.directory / "pause" / "pause.json") in problem
    pauses.resume(story.world, str(story.directory))
    story.turns(2)
    assert story.count("post") == 1, "resume replaces it"


@pytest.mark.parametrize("strange", ["directory", "link", "fifo", "writable", "no directory"])
def test_so_does_whatever_else_is_in_its_place(story: ProfileStory, strange: str) -> None:
    path = story.directory / "pause" / "pause.json"
    if strange == "no directory":
        path.parent.write_text("")
    else:
        path.parent.mkdir(mode=0o700)
    if strange == "directory":
        path.mkdir()
    elif strange == "link":
        path.symlink_to("nowhere")
    elif strange == "fifo":
        os.mkfifo(path)
    elif strange == "writable":
        path.write_bytes(json.dumps(GOOD).encode())
        path.chmod(0o666)
    story.schedule("plain", notice=600.0)
    story.turns(3)
    assert story.count("post") == 0
    assert story.instance.runner.health.status([]).startswith("Approvals count as paused")
    if strange in ("directory", "no directory"):
        with pytest.raises(InputError, match="pause"):
            pauses.resume(story.world, str(story.directory))
    else:
        pauses.resume(story.world, str(story.directory))
        story.turns(2)
        assert story.count("post") == 1


def test_pause_is_reported_after_a_pending_approval(story: ProfileStory) -> None:
    """So that an operator to whom it was confirmed sees no approval after that."""
    story.schedule("plain", notice=600.0)
    story.world.stuck = frozenset({APPROVAL})
    while not story.instance.runner._exchange.approval_in_flight:
        story.turns(0.1)
    assert beat(story)["pause"] is None
    pauses.pause(story.world, str(story.directory), 600.0)
    story.turns(1.5)
    assert story.instance.runner._exchange.approval_in_flight
    assert beat(story)["pause"] is None, "the approval may still arrive"
    story.world.stuck = frozenset()
    story.turns(8)
    assert beat(story)["pause"]["reason"] == "a release"


def test_who_why_and_until_when_are_told_once(story: ProfileStory) -> None:
    pauses.pause(story.world, str(story.directory), 60.0)
    story.turns(3)
    (line,) = story.instance.log.named("paused")
    (begun,) = (entry for entry in story.world.ledger if entry.kind == "pause")
    assert (line["by"], line["until"]) == ("alice", begun.fields["until"])
    assert line["reason"].endswith("UTC, by alice: a release")
    assert "\nforewarn_paused 1\n" in story.instance.runner.recorder.metrics.render()
    story.restart()
    story.turns(2)
    assert story.instance.log.named("paused") == [], "the runner before has told it"
    story.turns(70)
    (line,) = story.instance.log.named("resumed")
    assert line["by"] is None
    assert "\nforewarn_paused 0\n" in story.instance.runner.recorder.metrics.render()
    pauses.pause(story.world, str(story.directory), 60.0)
    story.turns(2)
    story.stop()
    pauses.resume(story.world, str(story.directory))
    story.start()
    story.turns(2)
    assert [line["by"] for line in story.instance.log.named("resumed")] == ["bob"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reason": ""}, "the reason is not one line"),
        ({"reason": "x" * 501}, "the reason is not one line"),
        ({"until": 1000.0}, "not longer than 0 s"),
        ({"until": 1000.0 + LONGEST_SECONDS + 1}, "at most 30 d"),
        ({"began": 1e15, "until": 1e15 + 60}, "the clock of this VM is wrong"),
        ({"by": ""}, "does not say who"),
    ],
)
def test_what_is_no_pause_is_not_written(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pauses_on_disk.encode_pause(Pause("pause-1", "alice", "a release", 1000.0, 2000.0)._replace(**changed))


def test_lock_shows_whether_a_runner_works(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    state = StateDirectory(str(tmp_path))
    assert not state.in_use()
    runner = StateDirectory(str(tmp_path))
    runner.lock()
    assert state.in_use()
    runner.release()
    assert not state.in_use()
    runner.lock()
    runner.release()
