# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn history --compare``: what two runners, such as a dry run and the live one, did for the same events.

Two events are the same if they have the same id. The verdict compares the last decision before the start, and the
prepare hooks that ran or would have run. A runner that first saw an event as started had nothing to decide: the live
runner's approval may have been quicker than the other's poll.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...runner.journal.reader import JournalReader
from ...runner.journal.schema import EventRow
from ...runner.state import dry_runs
from ..output.page import Page
from ..runner_state import hook_text, list_of, object_of, plan_of, reason_of, stamp_of, state_directory, text_of

SAME, DIFFERENT, ONE_ALONE = "same", "different", "one-alone"
_KINDS = ("decision", "approved", "would-run", "would-approve")
_STYLES = {SAME: ("green",), DIFFERENT: ("bold", "red"), ONE_ALONE: ("yellow",)}


class ComparedRunner(NamedTuple):
    """One of the two runners. ``name`` is what the report calls it."""

    name: str
    directory: str
    dry_run: bool
    journal: JournalReader


def run(directory: str, other: str, since: float | None, event: str | None, limit: int | None) -> list[dict[str, Any]]:
    """Return an object for each event that either runner saw, ordered by when it was first seen.

    ``other`` is the other runner's state directory; "" means the dry run's for a live runner, and vice versa.
    ``since`` is in seconds since 1970. Raises InputError if a directory cannot be read.
    """
    if not other and dry_runs.is_marked(directory):
        other = str(Path(os.path.abspath(directory)).parent)
    sides = _sides(directory, state_directory(other or dry_runs.directory_beside(directory)))
    found = [
        {
            record.key: (record, _did(record, side))
            for record in side.journal.records(since_wall=since, event=event)
            if record.data.get("drill") is not True
        }
        for side in sides
    ]
    rows = [_compared([side.get(key) for side in found], sides) for key in {**found[0], **found[1]}]
    rows.sort(key=lambda row: row.pop("seen"))
    return rows if limit is None else rows[-limit:]


def show(page: Page, rows: list[dict[str, Any]]) -> None:
    """Write the report for people."""
    numbers = dict.fromkeys((SAME, DIFFERENT, ONE_ALONE), 0)
    for row in rows:
        verdict = row["verdict"]
        numbers[verdict] += 1
        page.segments(
            (text_of(row["event"], "EventType") or "event", ("bold",)),
            (row["event_id"], ("bold",)),
            ("decided by one alone" if verdict == ONE_ALONE else verdict, _STYLES[verdict]),
        )
        width = max(len(side["name"]) for side in row["sides"])
        for side in row["sides"]:
            page.hanging(f"  {side['name']:<{width}}  ", _words(side))
    if rows:
        page.line()
    counts = f"{numbers[SAME]} the same, {numbers[DIFFERENT]} different, {numbers[ONE_ALONE]} decided by one alone"
    page.line(f"{len(rows)} {'event' if len(rows) == 1 else 'events'}: {counts}.")


def _sides(*directories: str) -> list[ComparedRunner]:
    marked = [dry_runs.is_marked(directory) for directory in directories]
    names = ["dry run" if mark else "live" for mark in marked] if len(set(marked)) == 2 else list(directories)
    return [
        ComparedRunner(name, directory, mark, JournalReader(directory))
        for name, directory, mark in zip(names, directories, marked)
    ]


def _did(record: EventRow, side: ComparedRunner) -> dict[str, Any]:
    decision: Mapping[str, Any] = {}
    prepared = [hook_text(run) for run in plan_of(record) if run.get("phase") == "prepare" and run.get("attempts")]
    approved = False
    for entry in side.journal.entries(record_id=record.id, kinds=_KINDS):
        if entry.kind == "decision":
            if text_of(entry.fields, "status") != "Started":
                decision = entry.fields
        elif entry.kind in ("approved", "would-approve"):
            approved = True
        elif text_of(entry.fields, "phase") == "prepare":
            prepared += map(str, list_of(entry.fields, "hooks"))
    return {
        "output": text_of(decision, "output") or None,
        "policy": text_of(decision, "policy") or None,
        "rule": text_of(decision, "rule") or None,
        "reason": reason_of(decision) or None,
        "prepared": list(dict.fromkeys(prepared)),
        "approved": approved,
    }


def _compared(theirs: list[tuple[EventRow, dict[str, Any]] | None], sides: list[ComparedRunner]) -> dict[str, Any]:
    seen = [each for each in theirs if each is not None]
    firsts = [stamp.wall for record, _did in seen if (stamp := stamp_of(record.data, "first_seen")) is not None]
    decided = [
        (did["output"], did["policy"], did["rule"], sorted(did["prepared"]))
        for _record, did in seen
        if did["output"] is not None
    ]
    event = object_of(seen[0][0].data, "event")
    return {
        "seen": min(firsts, default=0.0),
        "event_id": text_of(event, "EventId") or seen[0][0].key,
        "verdict": ONE_ALONE if len(decided) < 2 else SAME if decided[0] == decided[1] else DIFFERENT,
        "event": event,
        "sides": [
            {
                "name": side.name,
                "state_directory": side.directory,
                "dry_run": side.dry_run,
                "seen": each is not None,
                **({} if each is None else {**each[1], "outcome": each[0].data.get("outcome")}),
            }
            for each, side in zip(theirs, sides)
        ],
    }


def _words(side: Mapping[str, Any]) -> str:
    if not side["seen"]:
        return "did not see it"
    if side["output"] is None:
        return "saw it only when it had started"
    parts = [side["output"]]
    if side["policy"]:
        parts[0] += f", by {side['policy']}" + (f", rule {side['rule']}" if side["rule"] else "")
    parts[0] += f": {side['reason']}" if side["reason"] else ""
    would = "would have " if side["dry_run"] else ""
    parts += [f"{would}prepared it by {', '.join(side['prepared'])}"] if side["prepared"] else []
    parts += [f"{would}approved it"] if side["approved"] else ["not approved"]
    return "; ".join(parts)
