# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn history``: what happened to events, and why. docs/seeing.md shows it."""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError
from ...runner.clocks import Clocks, Stamp
from ...runner.journal.reader import JournalEntry, JournalReader
from ...runner.journal.schema import EventRow
from ...runner.state import dry_runs
from ...texts import duration_text, exact_text
from .. import arguments
from ..open_event import failure
from ..output.console import Console, write_json_stream, write_result
from ..output.page import Page, announced_text, cut, iso, resources_text
from ..runner_state import (
    add_state_argument,
    event_id_of,
    list_of,
    number_of,
    object_of,
    record_as_json,
    stamp_of,
    state_directory,
    text_of,
)
from . import compare
from .entries import DECISION, DOCUMENT, DRILL, OF_THE_RUNNER, OUTCOMES, describe

DEFAULT_SECONDS = 7 * 86400.0
RUNS = ("runner-started", "runner-stopped")

# Unless one event is asked for, texts are cut, and only the first and last lines of a hook's output are shown.
_MOST_CHARACTERS = 600
_FIRST_LINES, _LAST_LINES = 3, 7
_ROOMY = 100  # columns; from here on hooks' output is indented as far as the sentences
_CLOCK_SET_SECONDS = 2.0
_SENT = ("approved", "approval-failed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_state_argument(parser)
    parser.add_argument(
        "--since",
        type=arguments.since,
        metavar="TIME",
        help="how far back: 90m, 2h, 3d, or a UTC time, 2026-11-01 or 2026-11-01T10:00Z (default: 7d)",
    )
    parser.add_argument("--event", metavar="ID", help="one event, by the beginning of its id; shown in full")
    parser.add_argument("--limit", type=arguments.count, metavar="N", help="the newest N events only")
    parser.add_argument("--documents", action="store_true", help="also show each document that the service returned")
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="DIR",
        help="compare with another runner, given its state directory: what both decided and did for the same events "
        "(default: the dry run that belongs to this runner). Exit code 1 if they differ",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show the history."""
    directory = state_directory(args.state, args.dry_run)
    journal = JournalReader(directory)
    dry_run = dry_runs.is_marked(directory)
    since = None
    if args.since is not None or args.event is None:
        since = (args.since or arguments.Since(DEFAULT_SECONDS, None)).start(Clocks().wall())
    if args.compare is not None:
        return _compare(args, directory, since)
    records = journal.records(since_wall=since, event=args.event, limit=args.limit)
    if args.event is not None and not records:
        raise InputError(
            f"no event's id begins with {args.event!r}.",
            "List the events with: forewarn history, and --since if need be.",
        )
    if args.event is not None or args.limit is not None:  # earlier entries are about none of these events
        seen = stamp_of(records[0].data, "first_seen") if records else None
        since = max((time for time in (since, seen and seen.wall) if time is not None), default=None)
    kinds = (*OF_THE_RUNNER, DOCUMENT) if args.documents else OF_THE_RUNNER
    others = [entry for entry in journal.entries(kinds=kinds, since_wall=since) if entry.record_id is None]
    if args.json:
        content = {
            "dry_run": dry_run,
            "since": None if since is None else iso(since),
            "events": (_record_as_json(record, journal) for record in records),
            "runner": (_entry_as_json(entry, None) for entry in others),
        }
        write_json_stream("history", content)
        return 0
    before: list[JournalEntry] = []
    if since is not None:
        before.extend(journal.entries(kinds=RUNS, until_wall=since, newest_first=True, limit=1))
    page = Page(Console(sys.stdout))
    if dry_run:
        page.line("A dry run: nothing was approved, and no hook ran.", "yellow")
        page.line()
    story = _Story(page, records, others, before=before, whole=args.event is not None)
    for record in records:
        story.show(record, list(journal.entries(record_id=record.id)))
    story.end()
    if not records:
        story.page.line("No events." if since is None else f"No events since {iso(since)}.")
    return 0


def _compare(args: argparse.Namespace, directory: str, since: float | None) -> int:
    if args.documents:
        raise InputError("--compare shows two runners, --documents only one.", "Use one of them.")
    rows = compare.run(directory, args.compare, since, args.event, args.limit)
    compare.show(Page(write_result(args.json, "history-compare", {"events": rows})), rows)
    return 1 if any(row["verdict"] == compare.DIFFERENT for row in rows) else 0


# For programs


def _record_as_json(record: EventRow, journal: JournalReader) -> dict[str, Any]:
    seen = stamp_of(record.data, "first_seen")
    entries = [_entry_as_json(entry, seen) for entry in journal.entries(record_id=record.id)]
    return {**record_as_json(record), "entries": entries}


def _entry_as_json(entry: JournalEntry, seen: Stamp | None) -> dict[str, Any]:
    return {
        "id": entry.id,
        "kind": entry.kind,
        "at": iso(entry.stamp.wall, "milliseconds"),
        "boot_seconds": entry.stamp.boot,
        "boot_id": entry.stamp.boot_id,
        "seconds_since_first_seen": None if seen is None else round(_between(seen, entry.stamp), 3),
        "fields": entry.fields,
    }


def _between(first: Stamp, second: Stamp) -> float:
    """Return the seconds between two stamps, by the boot clock or, across a reboot, by the wall clock."""
    if first.boot_id and first.boot_id == second.boot_id:
        return second.boot - first.boot
    return second.wall - first.wall


# For people


class _Story:
    """Shows events one after another, and among them the entries about the runner as a whole, in order of time.

    ``others`` are entries that belong to no event; a drill's end is shown with its event if that is in ``records``.
    ``before`` holds the last start or stop of a runner before all of them. ``whole``: nothing is shortened.
    """

    def __init__(
        self,
        page: Page,
        records: Sequence[EventRow],
        others: Sequence[JournalEntry],
        *,
        before: Sequence[JournalEntry],
        whole: bool,
    ) -> None:
        self.page = page
        self._drills: dict[str, list[JournalEntry]] = {event_id_of(record): [] for record in records}  # how each ended
        self._others: list[JournalEntry] = []
        for entry in others:
            of_a_drill = entry.kind == DRILL and text_of(entry.fields, "event_id") in self._drills
            (self._drills[text_of(entry.fields, "event_id")] if of_a_drill else self._others).append(entry)
        self._ids = [entry.id for entry in self._others]
        self._whole = whole
        runs = [*before, *(entry for entry in others if entry.kind in RUNS)]
        self._after_crash = {new.id for old, new in zip(runs, runs[1:]) if old.kind == new.kind == "runner-started"}
        self._shown = 0  # how many of the others so far
        self._last_id = 0  # of the entries of events so far

    def show(self, record: EventRow, entries: Sequence[JournalEntry]) -> None:
        """Show one event."""
        if entries:
            self._aside(bisect_left(self._ids, entries[0].id))
            last = sys.maxsize if record.open else entries[-1].id
            self._last_id = max(self._last_id, last)
            among = self._others[bisect_left(self._ids, entries[0].id) : bisect_right(self._ids, last)]
            entries = sorted((*entries, *among, *self._drills[event_id_of(record)]))
        self._head(record)
        seen = stamp_of(record.data, "first_seen")
        before: Stamp | None = None
        decision: Mapping[str, Any] | None = None
        for entry, following in zip(entries, [*entries[1:], None]):
            self._clocks(before, entry.stamp)
            before = entry.stamp
            if entry.kind == "approval-sending" and following is not None and following.kind in _SENT:
                continue  # it matters only if its outcome is unknown
            self._entry(entry, None if seen is None else _between(seen, entry.stamp), decision)
            if entry.kind == DECISION:
                decision = entry.fields
        self.page.line()

    def end(self) -> None:
        """Show the entries after the last event."""
        self._aside(len(self._others))

    def _aside(self, until: int) -> None:
        """Show the other entries up to ``until`` that were not shown among an event's."""
        entries = [entry for entry in self._others[self._shown : until] if entry.id > self._last_id]
        self._shown = max(self._shown, until)
        if self._whole or not entries:
            return
        for entry in entries:
            self._entry(entry, None)
        self.page.line()

    def _head(self, record: EventRow) -> None:
        event = object_of(record.data, "event")
        self.page.segments(
            (text_of(event, "EventType") or "event", ("bold",)),
            (event_id_of(record), ("bold",)),
            *([("DRILL", ("bold", "yellow"))] if record.data.get("drill") is True else []),
            _ending(record),
        )
        names, source = list_of(event, "Resources"), text_of(event, "EventSource")
        about = [f"affects {', '.join(map(str, names)) if self._whole else resources_text(names)}"]
        about += [f"source {source}"] if source else []
        seconds = number_of(event, "DurationInSeconds")
        about += [] if seconds is None else [f"duration {announced_text(seconds)}"]
        self.page.hanging("  ", self._cut("; ".join(about)))
        description = text_of(event, "Description")
        if description:
            self.page.hanging("  ", f'"{self._cut(description)}"', "dim")
        cost = [
            f"{word} for {exact_text(seconds)}"
            for name, word in (("paused_seconds", "stood still"), ("down_seconds", "was down"))
            for seconds in [number_of(object_of(record.data, "impact"), name)]
            if seconds
        ]
        if cost:
            self.page.hanging("  ", f"the machine {' and '.join(cost)}", "yellow")

    def _entry(self, entry: JournalEntry, seconds: float | None, decision: Mapping[str, Any] | None = None) -> None:
        shown = describe(entry, decision)
        if shown is None:
            return
        if entry.id in self._after_crash:
            shown = shown._replace(text=f"{shown.text}; the previous one had not been stopped")
        relative = "" if seconds is None else _relative(seconds)
        lead = f"  {iso(entry.stamp.wall)}  {relative:>9}  "
        self.page.hanging(lead, self._cut(shown.text), *shown.styles)
        margin = " " * (len(lead) if self.page.width is None or self.page.width >= _ROOMY else 4)
        if self._whole:
            for value in shown.values:
                self.page.hanging(f"{margin}  ", value, "dim")
        for line in self._bounded(shown.output.splitlines()):
            self.page.hanging(f"{margin}| ", self._cut(line))

    def _clocks(self, before: Stamp | None, after: Stamp) -> None:
        """Show a reboot, or a change of the wall clock: both make the times around them look strange."""
        if before is None:
            return
        if before.boot_id != after.boot_id:
            self.page.hanging("  ", "-- the machine was booted --", "bold", "yellow")
            return
        by = (after.wall - before.wall) - (after.boot - before.boot)
        if abs(by) > _CLOCK_SET_SECONDS:
            word = "forward" if by > 0 else "back"
            self.page.hanging("  ", f"-- the wall clock was set {word} by {exact_text(abs(by))} --", "yellow")

    def _cut(self, text: str) -> str:
        return text if self._whole else cut(text, _MOST_CHARACTERS)

    def _bounded(self, lines: list[str]) -> list[str]:
        surplus = len(lines) - _FIRST_LINES - _LAST_LINES
        if self._whole or surplus <= 1:
            return lines
        return [*lines[:_FIRST_LINES], f"... {surplus} more lines: see --event", *lines[-_LAST_LINES:]]


def _ending(record: EventRow) -> tuple[str, tuple[str, ...]]:
    """Return an event's state or outcome, with its styles."""
    if record.open:
        return record.state, ("bold", "cyan")
    outcome = text_of(record.data, "outcome")
    text = OUTCOMES.get(outcome, outcome or record.state)
    if failure(record, "recover"):
        return f"{text}; not recovered", ("bold", "red")
    return text, ("green",)


def _relative(seconds: float) -> str:
    """Return when something was, from the time at which the event was first seen: ``+4.0 s``, ``-6 d 23 h``."""
    if abs(seconds) < 1000:
        return f"{seconds:+.1f} s"
    return f"{'-' if seconds < 0 else '+'}{duration_text(abs(seconds))}"
