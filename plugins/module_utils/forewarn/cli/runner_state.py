# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``status``, ``history`` and others share: opening the runner's state, and reading its records of events.

A newer runner may have written the journal, or it may be damaged: nothing here relies on a field.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, Callable, NamedTuple, TypeVar

from ..errors import InputError
from ..events import parse_time
from ..runner.clocks import Clocks, Stamp
from ..runner.hooks import commands
from ..runner.journal.reader import JournalReader
from ..runner.journal.schema import EventRow
from ..runner.state import dry_runs
from ..runner.telemetry import heartbeat
from ..runner.telemetry.heartbeat import Beat
from ..system import paths
from ..system.account import ADMINISTRATOR, is_administrator
from .output.page import iso

T = TypeVar("T")

_POLL_SECONDS = 0.05


class State(NamedTuple):
    """The state in a runner's directory. If ``journal`` is None, ``trouble`` says why."""

    directory: str
    beat: Beat | None
    journal: JournalReader | None
    trouble: str = ""


def add_state_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--state`` and ``--dry-run``, which select the runner."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--state",
        metavar="DIR",
        help=f"directory in which the runner keeps its state (default: {paths.STATE_DEFAULT})",
    )
    which.add_argument(
        "--dry-run",
        action="store_true",
        help="use the dry run's directory, within the live runner's (default if only a dry run is at work)",
    )


def which_state(args: argparse.Namespace) -> str:
    """Return the options that select the same runner as ``args``, for a command to copy."""
    return f" --state {quote(args.state)}" if args.state else " --dry-run" if args.dry_run else ""


def of_event(command: str, event_id: str, rest: str) -> str:
    """Return a command about an event, for people to copy. The id is quoted: the service's text is not trusted."""
    if event_id.startswith("-"):
        return f"forewarn {command} {rest} -- {quote(event_id)}"
    return f"forewarn {command} {quote(event_id)} {rest}"


def history_of(event_id: str) -> str:
    """Return the command that shows the history of an event, for ``command_text``."""
    return f"history --event{'=' if event_id.startswith('-') else ' '}{quote(event_id)}"


def command_text(text: str, args: argparse.Namespace) -> str:
    """Return a command for people to copy."""
    return f"forewarn {text}{which_state(args)}"


def open_state(given: str | None, dry_run: bool = False) -> State:
    """Open the state in a directory; without a name, the live runner's or the dry run's.

    Raises InputError if no runner has used it, or this user may not read it.
    """
    directory = state_directory(given, dry_run)
    beat = heartbeat.read(directory, paths.memory_directory(os.environ))
    try:
        return State(directory, beat, JournalReader(directory))
    except InputError as error:
        if beat is not None:
            return State(directory, beat, None, str(error))
        raise


def state_directory(given: str | None, dry_run: bool = False) -> str:
    """Return the state directory. Raises InputError if it cannot be read.

    Without a name it is the live runner's, or the dry run's with ``dry_run`` or if only a dry run is running.
    """
    administrator = is_administrator()
    directory = given or paths.state_directory(os.environ)
    if not given and (dry_run or _is_only_a_dry_run(directory)):
        directory = dry_runs.directory_beside(directory)
    root = "" if administrator else f"as {ADMINISTRATOR}, or "
    try:
        os.scandir(directory).close()
    except PermissionError as error:
        raise InputError(
            f"{directory}: permission denied. Only the runner's user and {ADMINISTRATOR} can read the runner's state.",
            f"Run this {root}as the user of the service.",
        ) from error
    except FileNotFoundError as error:
        raise InputError(
            f"{directory}: there is no such directory, so no runner has worked with it.",
            "Name the runner's directory: --state DIR."
            if given or administrator
            else "That is where your own runner would keep its state. A service keeps it in "
            f"{paths.SERVICE_STATE}: run this as {ADMINISTRATOR}, or name the directory: --state DIR.",
        ) from error
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}.", "--state needs a runner's directory.") from error
    return directory


def _is_only_a_dry_run(live: str) -> bool:
    """Return whether there is a dry run, and no live runner that is running or has anything left to finish."""
    beside = heartbeat.read(dry_runs.directory_beside(live))
    beat = heartbeat.read(live)
    if beside is None or beat is None:
        return beside is not None
    clocks = Clocks()
    if heartbeat.silence(beside, clocks) is not None or heartbeat.silence(beat, clocks) is None:
        return False
    try:
        return not JournalReader(live).records(open_only=True)
    except InputError:  # the caller then reports this error
        return False


def poll(answer: Callable[[], T | None], patience_seconds: float, clocks: Clocks) -> T | None:
    """Call ``answer`` until it returns what another process has answered, or the time is over; return the last."""
    end = clocks.monotonic() + patience_seconds
    while (found := answer()) is None and clocks.monotonic() < end:
        time.sleep(_POLL_SECONDS)  # the runner answers with a file
    return found


# Records of events


def text_of(data: Any, name: str) -> str:
    """Return the text of that name in an object, or ""."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, str) else ""


def number_of(data: Any, name: str) -> float | None:
    """Return the number of that name in an object, or None; None also if it is not finite as a float."""
    value = data.get(name) if isinstance(data, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond all floats
        return None


def object_of(data: Any, name: str) -> Mapping[str, Any]:
    """Return the object of that name in an object, or an empty one."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def list_of(data: Any, name: str) -> Sequence[Any]:
    """Return the list of that name in an object, or an empty one."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, (list, tuple)) else ()


def stamp_of(data: Any, name: str) -> Stamp | None:
    """Return the stamp of that name in an object, or None."""
    try:
        return Stamp.of(list_of(data, name))
    except (ValueError, TypeError):
        return None


def event_id_of(record: EventRow) -> str:
    """Return the event's id as the service spells it."""
    return text_of(object_of(record.data, "event"), "EventId") or record.key


def not_before_of(event: Mapping[str, Any]) -> float | None:
    """Return NotBefore of an event in seconds since 1970, or None."""
    try:
        return parse_time(text_of(event, "NotBefore")).timestamp()
    except (ValueError, OverflowError):
        return None


def hook_text(run: Mapping[str, Any]) -> str:
    """Return the name of a planned hook, without its secrets."""
    try:
        return commands.describe(object_of(run, "hook"))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # of a kind that a newer runner knows
        return "a hook of an unknown kind"


def plan_of(record: EventRow) -> list[Mapping[str, Any]]:
    """Return the hooks planned for an event, in order."""
    return [run for run in list_of(record.data, "plan") if isinstance(run, Mapping)]


def reason_of(decision: Any) -> str:
    """Return the reason of a decision, for a sentence that already names the rule."""
    reason, rule = text_of(decision, "reason"), f"rule {text_of(decision, 'rule')} applies"
    return reason[len(rule) :].lstrip(": ") if reason.startswith(rule) else reason


def record_as_json(record: EventRow) -> dict[str, Any]:
    """Return the runner's record of an event, for programs: times in ISO 8601, hooks without secrets."""
    data = record.data
    times = {name: stamp_of(data, name) for name in ("first_seen", "last_seen", "started_at", "approved_at", "gone_at")}
    kept = ("attempts", "status", "policy", "rule", "on_failure", "pid", "exit_code", "seconds", "reason")
    return {
        "life_id": record.id,
        "event_id": event_id_of(record),
        "state": record.state,
        "open": record.open,
        "outcome": data.get("outcome"),
        "drill": data.get("drill") is True,
        "event": object_of(data, "event"),
        **{name: None if stamp is None else iso(stamp.wall, "milliseconds") for name, stamp in times.items()},
        "approvals": number_of(data, "approvals") or 0,
        "decision": data.get("decision"),
        "hooks": [
            {"phase": run.get("phase"), "hook": hook_text(run), **{name: run.get(name) for name in kept}}
            for run in plan_of(record)
        ],
        "impact": object_of(data, "impact"),
    }
