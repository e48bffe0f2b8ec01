# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which event is which, how it ended, and what a restart remembers of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.event_record import CALLED_OFF, FINISHED, UNSEEN
from tools.worlds.stories import ProfileStory
from tools.worlds.watched_journals import MemoryJournal


class Story(ProfileStory):
    """A world, step by step."""

    def posts(self) -> list[str]:
        return [event for entry in self.world.ledger if entry.kind == "post" for event in entry.fields["ids"]]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def ended(story: Story) -> list[str]:
    """Return how events have ended, by the journal."""
    return [row.data["outcome"] for row in story.disk.records()]


def while_it_runs(story: Story) -> None:
    story.go(1)


def across_a_restart(story: Story) -> None:
    story.crash(5.0)
    story.go(1)


def across_a_boot(story: Story) -> None:
    """The event itself may have booted the machine, with nobody there to see it start."""
    story.crash(20.0, reboot=True)
    story.go(1)


def across_a_quick_boot(story: Story) -> None:
    """Quicker than two polls may lie apart: only the number of the boot shows it."""
    story.crash(4.0, reboot=True)
    story.go(1)


def across_a_long_silence(story: Story) -> None:
    story.world.read_fault = 410
    story.go(90)
    story.world.read_fault = None
    story.go(15)


@pytest.mark.parametrize(
    ("meanwhile", "outcome"),
    [
        (while_it_runs, CALLED_OFF),
        (across_a_restart, CALLED_OFF),
        (across_a_boot, UNSEEN),
        (across_a_quick_boot, UNSEEN),
        (across_a_long_silence, UNSEEN),
    ],
)
def test_gone_scheduled_event_may_be_unseen_or_cancelled(
    story: Story, meanwhile: Callable[[Story], None], outcome: str
) -> None:
    event_id = story.schedule("refuse")
    story.go(2)
    story.world.model.cancel(event_id)
    meanwhile(story)
    assert ended(story) == [outcome]


def test_gone_approved_event_is_unseen(story: Story) -> None:
    """A VM that was frozen polls again only when everything is over."""
    event_id = story.schedule("plain", start_on="not_before")
    story.go(2)
    assert len(story.posts()) == 1
    story.cancel_event(event_id, 1)
    assert ended(story) == [UNSEEN]


def test_gone_event_with_an_unanswered_approval_is_unseen(story: Story) -> None:
    event_id = story.schedule("plain", start_on="not_before")
    story.world.post_fault = "lost"
    story.go(2)
    story.world.model.cancel(event_id)
    story.go(2)  # the next poll has to wait for the request budget
    assert ended(story) == [UNSEEN]


def test_gone_event_past_its_notbefore_is_unseen(story: Story) -> None:
    event_id = story.schedule("refuse", notice=3.0)
    story.go(2)
    story.world.model.events[event_id.lower()].start_at = 600.0  # late
    story.world.clock.advance(3.0)
    story.cancel_event(event_id, 1)
    assert ended(story) == [UNSEEN]


def test_started_event_is_finished(story: Story) -> None:
    story.schedule("refuse", notice=5.0, gone_after=10.0)
    story.go(8)
    across_a_boot(story)
    assert ended(story) == [FINISHED]


def test_event_rescheduled_after_its_start_is_not_approved(story: Story) -> None:
    """Nothing documented does so. What it prepared may be half undone, and its approval is spent."""
    event_id = story.schedule("plain", start_on="not_before", notice=5.0, gone_after=600.0)
    story.world.post_fault = "failed"
    story.go(10)
    record = story.world.model.find(event_id)
    later = formatdate(story.world.wall + 300, usegmt=True)
    story.world.post_fault = None
    before = len(story.posts())
    record.spec = replace(record.spec, fields={"EventStatus": "Scheduled", "NotBefore": later})
    story.world.model._refresh()
    story.go(30)
    assert len(story.posts()) == before
    assert story.instance.log.named("decision")[-1]["eligibility"] == "started"


def test_reused_id_is_another_event(story: Story) -> None:
    event_id = story.schedule("plain", gone_after=3.0)
    story.go(10)
    del story.world.model.events[event_id.lower()]
    story.schedule("plain", gone_after=3.0, event_id=event_id.lower())
    story.go(10)
    assert [posted.lower() for posted in story.posts()] == [event_id.lower()] * 2
    assert ended(story) == [FINISHED] * 2


def test_journal_has_one_id_per_approved_event(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all ids beside each event, the entries of a thousand events would fill the disk."""
    noted: list[list[str]] = []
    kept = MemoryJournal.note

    def note(journal: MemoryJournal, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        kept(journal, kind, record_id, **fields)
        if kind == "approved":
            noted.append(fields["event_ids"])

    monkeypatch.setattr(MemoryJournal, "note", note)
    ids = [story.schedule("plain") for _count in range(3)]
    story.go(2)
    assert sorted(noted) == sorted([event_id] for event_id in ids)


def test_an_approval_is_remembered_across_a_restart(story: Story) -> None:
    event_id = story.schedule("plain", start_on="not_before")
    story.go(3)
    story.crash(10.0)
    story.go(40)
    assert story.posts() == [event_id]
    story.go(20)
    assert story.posts() == [event_id] * 2, "reminded after 60 s"
    story.crash(30.0, reboot=True)
    story.go(70)
    assert story.posts() == [event_id] * 2
    story.go(15)
    assert story.posts() == [event_id] * 3, "and after another 120 s"


def test_a_start_of_the_runner_alone_ends_nothing(story: Story) -> None:
    story.slow = {"drain"}
    story.schedule("drain", start_on="not_before")
    story.go(2)
    story.world.read_fault = 503
    story.crash(300.0)
    story.go(120)
    assert story.count("start", phase="prepare") == story.count("start", name="drain") == 1
    assert [row.state for row in story.disk.records()] == ["preparing"]


def test_unreadable_entries_end_no_event(story: Story) -> None:
    story.slow = {"drain", "undrain"}
    event_id = story.schedule("drain", start_on="not_before")
    story.schedule("plain", start_on="not_before")
    story.go(2)
    story.world.unreadable = frozenset({event_id.lower()})
    story.go(5)
    assert [row.open for row in story.disk.records()] == [True, True]
    story.cancel_event(event_id, 5)
    assert [row.open for row in story.disk.records()] == [True, True]


def test_few_answers_without_a_body_end_nothing(story: Story) -> None:
    story.schedule("plain", start_on="not_before")
    story.go(2)
    story.world.bodyless = True
    story.go(2)
    story.world.clock.advance(90.0)  # without an answer
    story.go(2)
    assert [row.open for row in story.disk.records()] == [True]
    story.go(60)
    assert [row.open for row in story.disk.records()] == [False]
