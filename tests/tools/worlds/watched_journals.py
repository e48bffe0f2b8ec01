# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Journals that report to a world what they have kept, and one that keeps it in memory."""

from __future__ import annotations

import json
from typing import Any

from forewarn.runner.clocks import Clocks
from forewarn.runner.journal.null import NoJournal
from forewarn.runner.journal.writer import EventRow, Journal
from tools.worlds.runner_world import World


class _Watch:
    """What was added to a journal since its last commit, as far as ``tools.judges.promises`` needs it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._events: dict[int, tuple[str, bool]] = {}
        self._noted: list[tuple[str, int, dict[str, Any]]] = []
        self._changed = False
        self._trouble = False

    def saved(self, row: EventRow) -> None:
        self._events[row.id] = row.data["event"]["EventId"], row.data["drill"]
        self._changed = True

    def noted(self, kind: str, record_id: int | None, fields: dict[str, Any]) -> None:
        self._changed = True
        if kind in ("hook-started", "approval-sending") and record_id is not None:
            self._noted.append((kind, record_id, fields))

    def before_commit(self) -> None:
        if self._changed:
            self._world.at_point("before a commit")

    def after_commit(self, kept: bool) -> None:
        world = self._world
        if not kept:
            # A preparation that cannot be recorded does not begin.
            self._noted = [noted for noted in self._noted if noted[2].get("phase") != "prepare"]
            if not self._trouble:
                self._trouble = True
                world.note("trouble")
            return
        if not (self._changed or self._trouble):
            return
        for kind, record_id, fields in self._noted:
            event, drill = self._events[record_id]
            if kind == "approval-sending":
                world.note("sending", event=event)
            else:
                name = fields["hook"].rpartition(" ")[2]
                world.note(
                    "begun", event=event, drill=drill, phase=fields["phase"], name=name, attempt=fields["attempt"]
                )
        self._noted.clear()
        self._changed = self._trouble = False
        world.note("commit")
        world.at_point("after a commit")


class WatchedJournal(Journal):
    """The real one."""

    def __init__(self, world: World, directory: str, clocks: Clocks) -> None:
        super().__init__(directory, clocks)
        self._watch = _Watch(world)

    def open(self) -> list[EventRow]:
        rows = super().open()
        for row in rows:
            self._watch.saved(row)
        self._watch._changed = False
        return rows

    def note(self, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        super().note(kind, record_id, **fields)
        self._watch.noted(kind, record_id, fields)

    def save(self, row: EventRow) -> None:
        super().save(row)
        self._watch.saved(row)

    def commit(self) -> bool:
        self._watch.before_commit()
        kept = super().commit()
        self._watch.after_commit(kept)
        return kept


class JournalDisk:
    """The disk of a journal in memory. ``broken``: it cannot be written, ``hidden``: nor read."""

    def __init__(self) -> None:
        self.rows: dict[int, str] = {}
        self.broken = False
        self.hidden = False

    def records(self) -> list[EventRow]:
        """Return all records, oldest first."""
        rows = [EventRow(**json.loads(text)) for text in self.rows.values()]
        return sorted(rows, key=lambda row: row.id)


class MemoryJournal(NoJournal):
    """A journal on a disk of its own: what was not committed is lost with it."""

    def __init__(self, world: World, disk: JournalDisk) -> None:
        super().__init__(world.clocks())
        self._disk = disk
        self._watch = _Watch(world)
        self._rows: dict[int, str] = {}
        self._unread = False

    @property
    def has_unread_records(self) -> bool:
        return self._unread or bool(self.late_records)

    def kept(self) -> bool:
        return bool(self._disk.rows)

    def open(self) -> list[EventRow]:
        self._unread = self._disk.hidden
        if self._unread:
            self.trouble = "the disk is away"
            return []
        rows = [row for row in self._disk.records() if row.open]
        for row in rows:
            self._watch.saved(row)
        self._watch._changed = False
        return rows

    def note(self, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        json.dumps(fields)
        self._watch.noted(kind, record_id, fields)

    def save(self, row: EventRow) -> None:
        self._rows[row.id] = json.dumps(row._asdict())
        self._watch.saved(row)

    def commit(self) -> bool:
        if self._disk.broken or self._disk.hidden:
            self.trouble = "the disk is full"
        else:
            self.trouble = None
            if self._unread:
                self._unread = False
                self.late_records = [row for row in self._disk.records() if row.open]
                for row in self.late_records:
                    self._watch.saved(row)
            self._disk.rows.update(self._rows)
            self._rows.clear()
        self._watch.after_commit(self.trouble is None)
        return self.trouble is None

    def close(self) -> None:
        self.commit()
