# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy replay``: runs past events through a policy. docs/replay.md shows it."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ...analysis.replay.recordings import KINDS, RecordedDocument, RecordedEntry, read_journal, read_lines
from ...analysis.replay.replay import Replay, ReplayedEvent
from ...analysis.replay.statistics import Statistics
from ...compiler.policies import load_policies
from ...errors import InputError
from ...policy.engine import PolicySet
from ...policy.params import from_options
from ...runner.clocks import Clocks
from ...runner.journal.reader import JournalReader
from ...runner.journal.schema import FILE_NAME
from ...runner.telemetry import heartbeat
from .. import arguments
from ..output.console import Console, write_json_stream
from ..runner_state import text_of
from .common import add_facts, add_policy_arguments, given_vm, plural
from .output.progress_line import ProgressLine
from .replay_report import as_dict, show, time_text

_SHOWN_BAD = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\0"


class Recording(NamedTuple):
    """An open recording: its records, the VM that recorded it, its end (if known), and the share read so far."""

    name: str
    records: Iterator[RecordedDocument]
    vm_name: str | None
    until: datetime | None
    share: Callable[[], float | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        required=True,
        metavar="RECORDING",
        help="a runner's state directory, or documents as lines of JSON (also .gz; '-': stdin); repeatable",
    )
    add_facts(parser)
    parser.add_argument(
        "--since",
        type=arguments.since,
        metavar="TIME",
        help="only events listed since then: 90m, 2h, 3d, or a UTC time, 2026-11-01 or 2026-11-01T10:00Z",
    )
    parser.add_argument(
        "--changed", action="store_true", help="only events decided differently now; exit code 1 if there are any"
    )
    parser.add_argument("--summary", action="store_true", help="only the numbers, no events")
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Replay the recordings."""
    artifact = load_policies(args.paths, args.api_version)
    params = from_options(args.param, artifact.params)
    policies = PolicySet(artifact, params)
    vm = given_vm(args.vm, args.vm_name)
    since = None if args.since is None else _EPOCH + timedelta(seconds=args.since.start(Clocks().wall()))
    problems = _Problems()
    statistics = Statistics()
    numbers = {"documents": 0, "backwards": 0}
    spans: list[datetime] = []

    def replayed() -> Iterator[tuple[str, ReplayedEvent]]:
        for name in args.sources:
            with _opened(name, args.api_version, problems.bad_line, policies.time_dependent) as source:
                replay = Replay(policies, params, vm if vm.name else vm._replace(name=source.vm_name))
                for event in problems.progress(replay, source):
                    if since is None or event.last_seen is None or event.last_seen >= since:
                        statistics.add(event)
                        if event.changed or not args.changed:
                            yield name, event
                numbers["documents"] += replay.documents
                numbers["backwards"] += replay.backwards
                spans.extend(moment for moment in (replay.first, replay.last) if moment is not None)
                if not replay.documents:
                    raise InputError(*_nothing(name, problems.bad))

    def summary() -> dict[str, Any]:
        first, last = (min(spans), max(spans)) if spans else (None, None)
        return {
            **numbers,
            "unreadable": problems.bad,
            "first": time_text(first),
            "last": time_text(last),
            **statistics.as_dict(),
        }

    shown = (pair for pair in replayed() if not args.summary)
    try:
        if args.json:
            events = ({"source": name, **as_dict(event)} for name, event in shown)
            write_json_stream("policy-replay", {"events": events, "summary": summary})
        else:
            show(shown, summary, statistics)
    finally:
        problems.end()
    if statistics.nameless:
        problems.warn(
            f"{plural(statistics.nameless, 'event')} would be approved by the affected VM, but the recording "
            "does not say which VM asked: name it with --vm-name"
        )
    if numbers["backwards"]:
        problems.warn(f"{plural(numbers['backwards'], 'document')} older than the previous one: the order was kept")
    if args.changed and statistics.events and not statistics.compared:
        raise InputError(
            "the recording has no decisions to compare with.", "A runner's journal has them: --from STATE_DIRECTORY."
        )
    # A check that did not see everything has not passed.
    return 1 if args.changed and (statistics.changed or problems.bad) else 0


def _nothing(name: str, bad: int) -> tuple[str, str]:
    if bad:
        return f"{name}: no line could be read.", "docs/replay.md describes the format: one JSON object per line."
    return (
        f"{name}: there are no documents in it.",
        "A runner, or another recorder, writes a document whenever it changes.",
    )


# Input


def _opened(
    name: str, api_version: str, report: Callable[[str, str], None], timed: bool
) -> AbstractContextManager[Recording]:
    path = Path(name)
    if name != "-" and path.is_dir():
        return nullcontext(_journal(name, api_version, report))
    if path.name == FILE_NAME:
        return nullcontext(_journal(str(path.parent), api_version, report))
    return _lines(name, api_version, report, timed)


def _journal(directory: str, api_version: str, report: Callable[[str, str], None]) -> Recording:
    journal = JournalReader(directory)
    last = next(journal.entries(limit=1, newest_first=True), None)
    until = None if last is None else _EPOCH + timedelta(seconds=last.stamp.wall)
    entries = (
        RecordedEntry(f"{directory}: entry {entry.id}", entry.kind, entry.stamp.wall, entry.fields)
        for entry in journal.entries(kinds=KINDS)
    )
    beat = heartbeat.read(directory)
    vm_name = text_of(None if beat is None else beat.fields, "vm") or None
    return Recording(directory, read_journal(entries, api_version, report), vm_name, until, lambda: None)


@contextmanager
def _lines(name: str, api_version: str, report: Callable[[str, str], None], timed: bool) -> Iterator[Recording]:
    """Open a file of lines, or standard input, plain or compressed."""
    size = 0
    with ExitStack() as stack:
        if name == "-":
            raw: Any = sys.stdin.buffer
        else:
            try:
                raw = stack.enter_context(Path(name).open("rb"))
                size = os.fstat(raw.fileno()).st_size
            except OSError as error:
                raise InputError(f"{name}: {error.strerror}.", "--from needs a recording.") from error
        buffered = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        start = buffered.peek(len(_SQLITE))
        if start.startswith(_SQLITE):
            raise InputError(f"{name} is a database.", f"For a runner's journal, {FILE_NAME}, name its directory.")
        stream = gzip.GzipFile(fileobj=buffered) if start.startswith(_GZIP) else buffered
        label = "stdin" if name == "-" else name
        records = _checked(name, read_lines(stream, label, api_version, report, timed=timed))
        yield Recording(label, records, None, None, lambda: raw.tell() / size if size else None)


def _checked(name: str, records: Iterator[RecordedDocument]) -> Iterator[RecordedDocument]:
    try:
        yield from records
    except (OSError, EOFError) as error:  # gzip raises either for a truncated or damaged file
        raise InputError(f"{name} cannot be read to its end: {error}.") from error


class _Problems:
    """Writes to standard error: unreadable lines, warnings, and on a terminal the progress."""

    def __init__(self) -> None:
        self.bad = 0
        self._console = Console(sys.stderr)
        self._line = ProgressLine(sys.stderr)

    def bad_line(self, where: str, what: str) -> None:
        """Count a line that cannot be read; report it if it is among the first."""
        self.bad += 1
        if self.bad <= _SHOWN_BAD:
            self.warn(f"{where}: {what}")

    def warn(self, text: str) -> None:
        """Write a warning."""
        self._line.clear()
        self._console.warning(text)

    def progress(self, replay: Replay, source: Recording) -> Iterator[ReplayedEvent]:
        """Yield the events of a source, and show the progress."""

        def text() -> str:
            share = source.share()
            part = "" if share is None else f", {min(share, 1):.0%}"
            return f"{plural(replay.documents, 'document')}{part} of {source.name}"

        for record in source.records:
            for event in replay.feed(record):
                self._line.clear()
                yield event
            self._line.show(text)
        yield from replay.end(source.until)

    def end(self) -> None:
        """Report how many more lines could not be read."""
        self._line.clear()
        if self.bad > _SHOWN_BAD:
            self.warn(f"{plural(self.bad - _SHOWN_BAD, 'more line')} could not be read")
