# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``status``, ``history`` and others share: finding and opening the runner's state, reading its records of events,
writing times and spans for people, and fitting lines to the terminal.

A newer runner may have written the journal, or it may be damaged: nothing here relies on a field.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import east_asian_width

from ..errors import InputError
from ..events import UNKNOWN_DURATION, parse_time
from ..runner.clocks import Clocks, Stamp
from ..runner.hooks import commands
from .console import Console, one_line

if TYPE_CHECKING:
    from ..runner.journal.reader import JournalReader
    from ..runner.journal.schema import EventRow
    from ..runner.telemetry.heartbeat import Beat

_SERVICE_DIRECTORY = "/var/lib/forewarn"
_SHOWN_RESOURCES = 3
_UNIT = re.compile(r"\d (?:s|min|h|d)\b")  # stays together
_NARROWEST = 60  # columns; a narrower terminal wraps lines itself
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
        help=f"directory in which the runner keeps its state (default: $STATE_DIRECTORY, else {_SERVICE_DIRECTORY} "
        "for root and ~/.local/state/forewarn for others)",
    )
    which.add_argument(
        "--dry-run",
        action="store_true",
        help="use the dry run's directory, within the live runner's (default if only a dry run is at work)",
    )


def which_state(args: argparse.Namespace) -> str:
    """Return the options that select the same runner as ``args``, for a command to copy."""
    from shlex import quote

    return f" --state {quote(args.state)}" if args.state else " --dry-run" if args.dry_run else ""


def of_event(command: str, event_id: str, rest: str) -> str:
    """Return a command about an event, for people to copy. The id is quoted: the service's text is not trusted."""
    from shlex import quote

    if event_id.startswith("-"):
        return f"forewarn {command} {rest} -- {quote(event_id)}"
    return f"forewarn {command} {quote(event_id)} {rest}"


def history_of(event_id: str) -> str:
    """Return the command that shows the history of an event, for ``command_text``."""
    from shlex import quote

    return f"history --event{'=' if event_id.startswith('-') else ' '}{quote(event_id)}"


def command_text(text: str, args: argparse.Namespace) -> str:
    """Return a command for people to copy."""
    return f"forewarn {text}{which_state(args)}"


def open_state(given: str | None, dry_run: bool = False) -> State:
    """Open the state in a directory; without a name, the live runner's or the dry run's.

    Raises InputError if no runner has used it, or this user may not read it.
    """
    from ..runner.journal.reader import JournalReader
    from ..runner.state import directories
    from ..runner.telemetry import heartbeat

    directory = state_directory(given, dry_run)
    beat = heartbeat.read(directory, directories.in_memory(os.environ, os.getuid()))
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
    from ..runner.state import directories, dry_runs

    uid = os.getuid()
    directory = given or directories.default(os.environ, uid)
    if not given and (dry_run or _is_only_a_dry_run(directory)):
        directory = dry_runs.directory_beside(directory)
    root = "" if uid == 0 else "as root, or "
    try:
        os.scandir(directory).close()
    except PermissionError as error:
        raise InputError(
            f"{directory}: permission denied. Only the runner's user and root can read the runner's state.",
            f"Run this {root}as the user of the service.",
        ) from error
    except FileNotFoundError as error:
        raise InputError(
            f"{directory}: there is no such directory, so no runner has worked with it.",
            "Name the runner's directory: --state DIR."
            if given or uid == 0
            else f"That is where your own runner would keep its state. A service keeps it in {_SERVICE_DIRECTORY}: run "
            "this as root, or name the directory: --state DIR.",
        ) from error
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}.", "--state needs a runner's directory.") from error
    return directory


def _is_only_a_dry_run(live: str) -> bool:
    """Return whether there is a dry run, and no live runner that is running or has anything left to finish."""
    from ..runner.journal.reader import JournalReader
    from ..runner.state import dry_runs
    from ..runner.telemetry import heartbeat

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


# For people


def iso(wall: float, timespec: str = "seconds") -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    try:
        moment = _EPOCH + timedelta(seconds=wall)
    except (OverflowError, ValueError):
        return "?"
    return moment.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def duration_text(duration_seconds: float) -> str:
    """Return a time span for people, in its two largest units: ``14 min 3 s``."""
    rest = int(duration_seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def exact_text(duration_seconds: float) -> str:
    """Return a measured time span for people, below a minute to a tenth of a second: ``4.8 s``."""
    tenths = round(duration_seconds, 1)
    return f"{tenths:g} s" if tenths < 60 else duration_text(tenths)


def announced_text(duration_in_seconds: float | None) -> str:
    """Return DurationInSeconds for people (SE-19)."""
    if duration_in_seconds is None:
        return "-"
    return "unknown" if duration_in_seconds == UNKNOWN_DURATION else f"{duration_in_seconds:g} s"


def resources_text(names: Sequence[Any]) -> str:
    """Return the first names of Resources, and the number of the others."""
    more = len(names) - _SHOWN_RESOURCES
    return ", ".join(map(str, names[:_SHOWN_RESOURCES])) + (f" and {more} more" if more > 0 else "") or "-"


def cut(text: str, most: int) -> str:
    """Return the text, cut after ``most`` characters, with the number of those left out."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def fitted(text: str, width: int) -> str:
    """Return the text, if longer than ``width`` columns cut to it with three dots at the end."""
    if _columns(text) <= width:
        return text
    while text and _columns(text) + 3 > width:
        text = text[:-1]
    return text.rstrip() + "..."


class Page:
    """Lines for people: wrapped to the width of a terminal, whole in a pipe, where ``width`` is None.

    A terminal must not wrap lines itself: text that it puts at the left margin could pass for a line of ours.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.style = console.style
        self.width = _width(console)

    def line(self, text: str = "", *styles: str) -> None:
        """Write a text, wrapped if need be."""
        self.hanging("", text, *styles)

    def hanging(self, lead: str, text: str, *styles: str, lead_styles: Sequence[str] = ("dim",)) -> None:
        """Write a text after ``lead``; further lines align below the text."""
        lead, text = one_line(lead), one_line(text)
        room = None if self.width is None else self.width - len(lead)
        for number, part in enumerate([text] if room is None else wrap(text, room)):
            margin = " " * len(lead) if number else lead
            styled = self.style(margin, *lead_styles) if margin.strip() else margin
            self._console.line((styled + self.style(part, *styles)).rstrip())

    def segments(self, *parts: tuple[str, Sequence[str]]) -> None:
        """Write texts, each with its styles, on one line, or each on its own line if they do not fit."""
        texts = [one_line(text) for text, _styles in parts]
        if self.width is not None and _columns("  ".join(texts)) > self.width:
            for text, styles in parts:
                self.line(text, *styles)
            return
        self._console.line("  ".join(self.style(text, *styles) for text, (_text, styles) in zip(texts, parts)))

    def columns(self, cells: Sequence[str], widths: Sequence[int], styles: Sequence[Sequence[str]]) -> None:
        """Write one line of cells, each with its styles, padded to its width."""
        parts = []
        for cell, width, names in zip(cells, widths, styles):
            text = one_line(cell)
            parts.append(self.style(text, *names) + " " * (width - len(text)))
        self._console.line("  ".join(parts).rstrip())


def wrap(text: str, width: int) -> list[str]:
    """Break a line into lines of at most ``width`` columns, at spaces if there are any."""
    lines = []
    start, space, used = 0, 0, 0  # the line's start, its last space, its columns
    for place, character in enumerate(text):
        size = _columns(character)
        breakable = character == " " and not _UNIT.match(text, max(0, place - 1))
        if used + size > width and text[start] == " ":  # no blanks before a line where a word could stand
            blanks = len(text[start:place]) - len(text[start:place].lstrip(" "))
            start, used = start + blanks, used - blanks
            space = max(space, start)
        if used + size > width:
            end = place if breakable or not text[start:space].strip() else space
            lines.append(text[start:end])
            start = end + (text[end] == " ")
            space, used = start, _columns(text[start:place])
            if start > place:
                continue
        if breakable:
            space = place
        used += size
    return [*lines, text[start:]]


def _columns(text: str) -> int:
    """Return the columns that a terminal needs for a text, or more, but never fewer."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _width(console: Console) -> int | None:
    if not console.stream.isatty():
        return None
    try:
        columns = int(os.environ.get("COLUMNS", "")) or 0
    except ValueError:
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size(console.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
    return max(columns or 80, _NARROWEST)
