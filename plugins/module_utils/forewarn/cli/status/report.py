# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of ``forewarn status --json``, from the runner's heartbeat, its journal, and what is on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ...events import MAX_PROBLEMS
from ...policy import pause
from ...policy.pause import Pause
from ...runner.clocks import Clocks
from ...runner.journal import lost_records
from ...runner.journal.reader import JournalReader
from ...runner.journal.schema import EventRow
from ...runner.operator_pause import FACT
from ...runner.state import dry_runs
from ...runner.telemetry import heartbeat
from ...texts import duration_text
from .. import failing_recoveries
from ..approval_pause import as_json
from ..open_event import Waiting, failure
from ..output.page import iso
from ..run import next_start
from ..runner_state import (
    State,
    hook_text,
    list_of,
    not_before_of,
    number_of,
    object_of,
    plan_of,
    record_as_json,
    stamp_of,
    text_of,
)

RUNNING, NOT_RESPONDING, NOT_RUNNING = "running", "not-responding", "not-running"

_LATE_INTERVALS, _LATE_SECONDS = 3, 15.0  # a beat follows a poll, which may take its timeout of some seconds
# How long to report a recovery that failed under an earlier version, which then ended it.
_REMEMBERED_SECONDS = 86400.0


def examine(state: State, clocks: Clocks, which: str = "") -> dict[str, Any]:
    """Return the content of ``--json``. ``problems`` are sentences about what needs attention.

    ``which`` holds the options that select the state, for commands to copy.
    """
    fields = state.beat.fields if state.beat else {}
    reported = text_of(fields, "journal_trouble")
    trouble = f"nothing can be kept: {reported}" if reported else state.trouble
    events: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    fails: list[dict[str, Any]] = []
    runner = _runner(state, clocks)
    paused = _pause(state.directory, fields if runner["condition"] == RUNNING else {}, clocks)
    if state.journal is not None:
        try:
            known = failing_recoveries.FailingRecoveries(
                state.journal, clocks, works=runner["condition"] != NOT_RUNNING, which=which
            )
            waiting = Waiting(state.journal, clocks, fields.get("dry_run") is True, known)
            records = state.journal.records(open_only=True)
            events = [_event(record, waiting, clocks) for record in records]
            fails = [recovery for record in records for recovery in known.failing(record)]
            failed = _failed_recoveries(state.journal, clocks)
        except InputError as error:
            if state.beat is None:
                raise
            trouble = trouble or str(error)
            state = state._replace(journal=None)
    service = _service(fields, clocks)
    problems = []
    if runner["condition"] != RUNNING:
        problems.append(f"the runner is {runner['text']}")
    elif service["state"] != "ok":
        problems.append(f"the service {service['text']}")
    if runner["condition"] == RUNNING and runner["reload_problem"]:
        problems.append(f"the last reload was refused: {runner['reload_problem']}")
    if runner["condition"] == RUNNING and runner["policy_problem"]:
        problems.append(f"other policies than the configuration's are in use: {runner['policy_problem']}")
    if paused is not None and paused.problem is not None:
        problems.append(paused.describe())
    disk = next_start.examine(state.directory, fields)
    if disk is not None:
        problems += next_start.problems(runner, disk, running=runner["condition"] == RUNNING)
    problems += [f"a hook lacks what it needs: {text}" for text in runner["missing"]]
    group = runner["group"] if runner["condition"] == RUNNING else None
    if group is not None and text_of(group, "problem"):
        problems.append(f"the store of group {text_of(group, 'name')}: {text_of(group, 'problem')}")
    if trouble:
        problems.append(f"the journal: {trouble}")
    unkept = int(number_of(fields, "unkept") or 0)  # after its end: what it had not written by then
    named = text_of(fields, "unkept_events") if unkept else ""
    if unkept:
        problems.append(f"{unkept} listed {'event is' if unkept == 1 else 'events are'} not in the journal: {named}")
    unread = int(number_of(fields, "document_problems") or 0)
    if unread:
        problems.append(unread_text(unread, text_of(fields, "document_problem")))
    damaged = lost_records.read(state.directory)
    problems += [record.in_words() for record in damaged]
    failing_ids = {recovery["life_id"] for recovery in fails}
    others = [event for event in (*events, *failed) if event["life_id"] not in failing_ids]
    problems += [f"{name_of(event)}: {event['failure']}" for event in others if event["failure"]]
    problems += [failing_recoveries.sentence(recovery) for recovery in fails]
    return {
        "at": iso(clocks.wall(), "milliseconds"),
        "state_directory": state.directory,
        "runner": runner,
        "on_disk": disk,
        "service": service,
        "journal": {"trouble": trouble or None, "read": state.journal is not None},
        "unkept": {"number": unkept, "events": named},
        "pause": None if paused is None else as_json(paused),
        "document": {"problems": unread, "first": text_of(fields, "document_problem") or None},
        "damaged": [
            {"file": doubt.file, "event_keys": doubt.keys, "reason": doubt.reason, "text": doubt.in_words()}
            for doubt in damaged
        ],
        "events": events,
        "failing_recoveries": fails,
        "failed_recoveries": failed,
        "problems": problems,
    }


def _pause(directory: str, fields: Mapping[str, Any], clocks: Clocks) -> Pause | None:
    """Return the pause that lasts, as the file has it, or as a runner that works cannot read it."""
    problem = text_of(object_of(fields, FACT), "problem")
    found = pause.unreadable_pause(problem) if problem else pause.read_pause(directory)
    return found if found is not None and found.is_active(clocks.wall()) else None


def unread_text(number: int, first: str) -> str:
    many = f"more than {MAX_PROBLEMS}" if number > MAX_PROBLEMS else str(number)
    of = "" if number < 2 else f" (the first of {many} problems)"
    return f"the service's document cannot be read in full: {first}{of}"


def _runner(state: State, clocks: Clocks) -> dict[str, Any]:
    fields = state.beat.fields if state.beat else {}
    started, last = stamp_of(fields, "started"), state.beat.stamp if state.beat else None
    condition, text = _condition(state, clocks)
    since = number_of(fields, "serial_since")
    if condition == RUNNING and started is not None:
        text = f"running since {iso(started.wall)} ({duration_text(clocks.since(started))})"
    return {
        "condition": condition,
        "text": text,
        "pid": number_of(fields, "pid"),
        "version": text_of(fields, "version") or None,
        "policy": text_of(fields, "policy") or None,
        "policies": [name for name in list_of(fields, "policies") if isinstance(name, str)],
        "source": object_of(fields, "source") or None,
        "config": text_of(fields, "config") or None,
        # What it lacked at its end may have been installed since.
        "missing": [text for text in list_of(fields, "missing") if isinstance(text, str)]
        if condition == RUNNING
        else [],
        "dry_run": fields.get("dry_run") is True,
        "vm": text_of(fields, "vm") or None,
        "interval_seconds": number_of(fields, "interval_seconds"),
        "sink": object_of(fields, "sink") or None,
        "group": object_of(fields, "group") or None,
        "reload_problem": text_of(fields, "reload_problem") or None,
        "serial": number_of(fields, "serial"),
        "serial_since": None if since is None else iso(since, "milliseconds"),
        "policy_problem": text_of(fields, "policy_problem") or None,
        "policy_source": object_of(fields, "policy_source") or None,
        "started_at": None if started is None else iso(started.wall, "milliseconds"),
        "last_alive_at": None if last is None else iso(last.wall, "milliseconds"),
        "silent_seconds": None if last is None else round(clocks.since(last), 3),
    }


def _condition(state: State, clocks: Clocks) -> tuple[str, str]:
    if state.beat is None:
        return NOT_RUNNING, "not running; it is not known when it last ran"
    silent = clocks.since(state.beat.stamp)
    last = f"{iso(state.beat.stamp.wall)}, {duration_text(silent)} ago"
    # Treat the beat as fresh: the only question left is whether the process exists in this boot of the machine.
    fresh = clocks.stamp()._replace(boot_id=state.beat.stamp.boot_id)
    gone = heartbeat.silence(state.beat._replace(stamp=fresh), clocks)
    if gone is not None:
        signal = "" if state.journal is None else _stopped_by(state.journal)
        text = f"not running: {f'stopped by {signal}' if signal else gone}; last alive {last}"
        return NOT_RUNNING, text + _dry_run_beside(state.directory, clocks)
    longest = _LATE_INTERVALS * (number_of(state.beat.fields, "interval_seconds") or 1.0) + _LATE_SECONDS
    if stamp_of(state.beat.fields, "last_good_poll") is None:  # a first answer can take two minutes (SE-05)
        longest = max(longest, heartbeat.LONGEST_SILENCE_SECONDS)
    if silent > longest:
        return NOT_RESPONDING, f"not responding: its process is there, but its last sign of life was {last}"
    return RUNNING, "running"


def _dry_run_beside(directory: str, clocks: Clocks) -> str:
    """Return a note if only a dry run is running, else "": it recovers nothing for the live runner."""
    works = heartbeat.silence(heartbeat.read(dry_runs.directory_beside(directory)), clocks) is None
    return "; a dry run is at work: forewarn status --dry-run" if works else ""


def _stopped_by(journal: JournalReader) -> str:
    """Return the signal that stopped the latest runner in an orderly way, or ""."""
    latest = next(journal.entries(kinds=("runner-started", "runner-stopped"), limit=1, newest_first=True), None)
    return "" if latest is None or latest.kind != "runner-stopped" else text_of(latest.fields, "signal")


def _service(fields: Mapping[str, Any], clocks: Clocks) -> dict[str, Any]:
    good = stamp_of(fields, "last_good_poll")
    age = None if good is None else clocks.since(good)
    fault, ok = text_of(fields, "fault"), text_of(fields, "state") == "ok"
    past = "" if age is None else f"{age:.1f} s" if age < 10 else duration_text(age)
    answered = "no poll was answered" if age is None else f"last good poll {past} ago"
    if ok and age is None:
        condition, text = "waiting", f"is asked; {answered} yet, and the first may take 2 minutes"
    elif ok:
        condition, text = "ok", f"ok, {answered.replace('poll', 'poll at most')}"  # not every poll makes a beat
    elif fields:
        condition, text = "failing", f"does not answer{': ' if fault else ''}{fault}; {answered}"
    else:
        condition, text = "unknown", "unknown"
    return {
        "state": condition,
        "text": text,
        "answered": answered,
        "fault": fault or None,
        "last_good_poll_at": None if good is None else iso(good.wall, "milliseconds"),
        "last_good_poll_age_seconds": None if age is None else round(age, 3),
    }


def _event(record: EventRow, waiting: Waiting, clocks: Clocks) -> dict[str, Any]:
    not_before = not_before_of(object_of(record.data, "event"))
    return {
        **record_as_json(record),
        "seconds_to_not_before": None if not_before is None else round(not_before - clocks.wall(), 3),
        "starts": _starts(record, not_before, clocks),
        "waits_for": waiting.for_what(record),
        "would": waiting.would(record),
        "failure": failure(record) or waiting.why_failed(record) or None,
    }


def _starts(record: EventRow, not_before: float | None, clocks: Clocks) -> str:
    for name, word in (("gone_at", "gone"), ("started_at", "started")):
        stamp = stamp_of(record.data, name)
        if stamp is not None:
            return f"{word} {duration_text(clocks.since(stamp))} ago"
    if not_before is None:
        return "-"
    left = not_before - clocks.wall()
    return f"in {duration_text(left)}" if left > 0 else f"overdue {duration_text(-left)}"


def _failed_recoveries(journal: JournalReader, clocks: Clocks) -> list[dict[str, Any]]:
    """Return the recent events that ended without recovery, unless a later event has run the same hook.

    Only earlier versions ended such events: they stay open now.
    """
    recovered: list[object] = []
    found = []
    for record in reversed(journal.records(since_wall=clocks.wall() - _REMEMBERED_SECONDS)):
        runs = [run for run in plan_of(record) if run.get("phase") == "recover"]
        failed = [run for run in runs if run.get("status") == "failed"]
        if not record.open and any(run.get("hook") not in recovered for run in failed):
            text = "; ".join(f"recover hook {hook_text(run)} failed: {text_of(run, 'reason')}" for run in failed)
            found.append({**record_as_json(record), "failure": text})
        recovered += [run.get("hook") for run in runs if run.get("status") == "succeeded"]
    return found[::-1]


def name_of(event: Mapping[str, Any]) -> str:
    return f"{text_of(event['event'], 'EventType') or 'event'} {event['event_id']}"
