# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn recover``: acts on a failing recovery. See docs/operations.md, "When a recovery fails"."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ..errors import InputError
from ..runner.clocks import Clocks
from ..runner.hooks import recovery_requests
from ..runner.hooks.recovery_requests import AGAIN, ANSWERS, DEALT_WITH, REFUSED, RecoveryRequest
from ..runner.hooks.run import RUNNING
from ..runner.journal.reader import JournalEntry, JournalReader
from ..runner.journal.schema import EventRow
from ..runner.telemetry import heartbeat
from . import failing_recoveries
from .output.console import one_line, write_result
from .output.page import Page
from .runner_state import (
    State,
    add_state_argument,
    command_text,
    event_id_of,
    history_of,
    list_of,
    object_of,
    open_state,
    poll,
    text_of,
    which_state,
)

# How long to wait for a running runner. It checks once per interval, normally a second.
PATIENCE_SECONDS = 5.0

HANDED_OVER = "handed-over"  # a result, as the actions and ``refused`` are


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "event_id",
        nargs="?",
        metavar="EVENT_ID",
        help="event whose recovery fails, by the beginning of its id (default: list them all)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--again", action="store_true", help="run the failed hooks now: the cause has been removed")
    what.add_argument(
        "--dealt-with",
        metavar="NOTE",
        help="count it as done and stop trying; the history keeps this note of what was done",
    )
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Exit codes: 0 if the runner did it, or will; 1 if it refused; 2 for bad usage, an unknown event, or an event "
        "whose recovery has not failed. Without this command a recovery is retried at least hourly."
    )


def run(args: argparse.Namespace) -> int:
    """List the failing recoveries, or ask the runner to retry or end one."""
    wanted = args.again or args.dealt_with is not None
    if args.event_id is None and wanted:
        raise InputError("EVENT_ID is needed.", "List them with: forewarn recover.")
    if args.event_id is not None and not wanted:
        raise InputError(
            "--again or --dealt-with is needed.", "Run it again now, or say what was done by hand: --dealt-with NOTE."
        )
    clocks = Clocks()
    state = open_state(args.state, args.dry_run)
    if state.journal is None:
        raise InputError(state.trouble)
    silence = heartbeat.silence(state.beat, clocks)
    known = failing_recoveries.FailingRecoveries(state.journal, clocks, works=silence is None, which=which_state(args))
    if args.event_id is None:
        _list([entry for record in state.journal.records(open_only=True) for entry in known.tried(record)], state, args)
        return 0
    records = _find(state.journal, args.event_id.strip())
    note = None if args.dealt_with is None else args.dealt_with.strip()
    action = AGAIN if args.again else DEALT_WITH
    asked = []
    for record in records:
        request = RecoveryRequest(
            record.id, event_id_of(record), action, note, recovery_requests.requesting_user(os.environ), clocks.stamp()
        )
        asked.append((record, recovery_requests.submit(state.directory, request)))
    codes = []
    for record, request_id in asked if not args.json else asked[-1:]:
        answer = None if silence is not None else _answer(state.journal, state.directory, record, request_id, clocks)
        codes.append(_report(args, state, record, request_id, action, answer, silence))
    return max(codes)


def _list(found: list[dict[str, Any]], state: State, args: argparse.Namespace) -> None:
    page = Page(write_result(args.json, "recover", {"state": state.directory, "recoveries": found}))
    if not found:
        page.line("No recovery fails.")
    failing_recoveries.show(page, found)


def _find(journal: JournalReader, prefix: str) -> list[EventRow]:
    """Return the records of the event whose recovery fails: several if it left the list and came back.

    Raises InputError if no event fits, or several do.
    """
    records = journal.records(event=prefix) if prefix else []
    if not records:
        raise InputError(f"no event's id begins with {prefix!r}.", "List failing recoveries with: forewarn recover.")
    found = [record for record in records if failing_recoveries.tried(record)]
    found = [record for record in found if record.key == prefix.lower()] or found
    if len({record.key for record in found}) > 1:
        ids = ", ".join(event_id_of(record) for record in found)
        raise InputError(
            f"several events with failing recoveries have ids that begin with {prefix!r}: {ids}.", "Give more of it."
        )
    if found:
        return found
    record = records[-1]
    event_id = event_id_of(record)
    if record.state == "recovering":
        raise InputError(
            f"event {event_id} is being recovered, and no hook has failed.",
            "See what it waits for with: forewarn status.",
        )
    raise InputError(
        f"event {event_id} is not being recovered: it is {record.state}.",
        "A recovery begins when the event is no longer listed, and ends when its hooks have succeeded.",
    )


def _answer(
    journal: JournalReader, directory: str, record: EventRow, request_id: str, clocks: Clocks
) -> JournalEntry | None:
    """Wait for the runner's answer to a request, and return it; None if there is none by then."""
    poll(lambda: None if recovery_requests.is_pending(directory, request_id) else True, PATIENCE_SECONDS, clocks)
    for record_id, kinds in ((record.id, tuple(ANSWERS.values())), (None, (REFUSED,))):
        for entry in journal.entries(record_id=record_id, kinds=kinds, limit=100, newest_first=True):
            if entry.fields.get("request") == request_id:
                return entry
    return None


def _report(
    args: argparse.Namespace,
    state: State,
    record: EventRow,
    request_id: str,
    action: str,
    answer: JournalEntry | None,
    silence: str | None,
) -> int:
    """Report the result of a request; return the exit code."""
    event_id = event_id_of(record)
    names = [hook for hook in list_of(answer.fields, "hooks") if isinstance(hook, str)] if answer is not None else []
    reason = ""
    result = HANDED_OVER
    if answer is not None:
        result = "refused" if answer.kind == REFUSED else action
        reason = text_of(answer.fields, "reason")
    elif silence is not None:
        reason = f"no runner works on {state.directory}: {silence}. It is done when a runner starts"
    elif any(run.status == RUNNING for run in failing_recoveries.tried(_now(state, record))):
        reason = "a recover hook runs now. It is done when that hook has ended"
    else:
        reason = "the runner has not taken it yet. It will in its next cycle"
    content = {
        "state": state.directory,
        "request": request_id,
        "event_id": event_id,
        "record_id": record.id,
        "action": action,
        "result": result,
        "reason": reason or None,
        "hooks": names,
    }
    texts = {
        "refused": ("refused", ("bold", "red"), reason),
        HANDED_OVER: ("handed over", ("yellow",), f"{reason}."),
        AGAIN: ("again", ("green",), f"{', '.join(names)} runs again now" if names else "nothing has to run again"),
        DEALT_WITH: ("dealt with", ("green",), "its hooks are not retried"),
    }
    label, styles, text = texts[result]
    console = write_result(args.json, "recover", content)
    about = f"{text_of(object_of(record.data, 'event'), 'EventType') or 'event'} {event_id}"
    console.result(label, f"{about}: {text}", *styles)
    if result != "refused":
        console.line(one_line(f"Watch it:  {command_text(history_of(event_id), args)}"))
    return 1 if result == "refused" else 0


def _now(state: State, record: EventRow) -> EventRow:
    """Return the current record of the event."""
    records = state.journal.records(event=record.key) if state.journal is not None else []
    return next((found for found in records if found.id == record.id), record)
