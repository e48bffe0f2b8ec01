# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events in doubt are held: across restarts, and where the files about them cannot be read."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.journal import lost_records
from forewarn.runner.journal.integrity import Loss
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import opened
from tools.worlds.stories import DRAINED, Story, listed, match

ALWAYS = match("both", recover=["undrain"], recover_when="started")
PLAIN = match("plain")


def doubted(directory: Path, key: str | None) -> Path:
    directory.chmod(0o700)
    found = lost_records.LostRecords(str(directory))
    (one,) = found.add([Loss(key, None if key is None else 1, "its record in the journal is damaged", "x")], 1.8e9)
    return Path(one.file)


def break_path(patch: pytest.MonkeyPatch, owner: object, name: str, broken: Path, error: int) -> None:
    """Let a function fail for one path."""
    whole = getattr(owner, name)

    def fails(path: Any, *args: Any, **options: Any) -> Any:
        if Path(path) == broken:
            raise OSError(error, os.strerror(error))
        return whole(path, *args, **options)

    patch.setattr(owner, name, fails)


def test_nothing_is_recovered_for_an_event_in_doubt(tmp_path: Path) -> None:
    """docs/operations.md: no hook is started for it, neither to prepare nor to recover."""
    event_id = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
    file = doubted(tmp_path, event_id.lower())
    story, _event = listed(tmp_path, [("web", [ALWAYS])], seconds=3, event_id=event_id, notice=30.0)
    assert [record.event.key for record in story.instance.runner.scheduler.records] == [event_id.lower()]
    story.go(30)
    story.finish_event(event_id, 5)
    assert file.exists()
    assert story.count("start") == 0, "a person has not seen to it"


def test_doubt_persists_while_documents_are_incomplete(tmp_path: Path) -> None:
    """docs/operations.md: if it is not known which event it was, every event is held that the next document lists ...
    This stays so across restarts until a person has seen to it."""
    file = doubted(tmp_path, None)
    story = Story(tmp_path, DRAINED)
    story.schedule()
    other = story.schedule()
    story.world.unreadable = frozenset([other.lower()])
    story.go(3)
    assert (story.count("start"), story.count("post")) == (0, 0)
    story.world.kill()
    story.instance.runner.recorder.journal._disconnect()
    story.start()
    story.go(10)
    assert file.exists()
    assert (story.count("start"), story.count("post")) == (0, 0)


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES])
def test_inaccessible_doubt_file_is_not_cleared(tmp_path: Path, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = doubted(tmp_path, "e")
    journal = opened(tmp_path, ManualClocks())
    assert journal.doubt("e")
    with monkeypatch.context() as patch:
        break_path(patch, os, "lstat", file, error)
        journal.prune()
    assert journal.cleared_files == []
    assert journal.doubt("e")
    journal.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_unlisted_doubt_directory_is_not_empty(tmp_path: Path, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = doubted(tmp_path, "e")
    with monkeypatch.context() as patch:
        break_path(patch, Path, "iterdir", file.parent, error)
        journal = opened(tmp_path, ManualClocks())
    assert file.exists()
    assert journal.doubt("e"), "nobody has seen to it"
    journal.close()


def test_unreadable_doubt_directory_holds_intact_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record can be whole and yet an older one: only the file about it shows that."""
    story = Story(tmp_path, [("web", [PLAIN])], [("web", [match("later", "hold")])])
    story.world.generation = 1
    story.start()
    event, other = story.schedule(), story.schedule()
    story.go(3)
    story.stop()
    file = doubted(tmp_path, event.lower())
    story.world.generation = 0
    with monkeypatch.context() as patch:
        break_path(patch, Path, "iterdir", file.parent, errno.EIO)
        story.start()
        story.world.unreadable = frozenset([other.lower()])  # nor is the document complete
        story.go(5)
        assert story.count("post") == 0
    story.world.unreadable = frozenset()
    assert list(file.parent.iterdir()) == [file], "what may be lost is not what is lost"
    story.go(90)
    approved = {each for entry in story.world.ledger if entry.kind == "post" for each in entry.fields["ids"]}
    assert approved == {other}
    file.unlink()
    story.go(90)
    approved = {each for entry in story.world.ledger if entry.kind == "post" for each in entry.fields["ids"]}
    assert approved == {event, other}
