# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides when to send a batch of the journal, and handles the result.

A child process (``sender``) does everything slow. The main thread starts it, and reads its report.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, NamedTuple

from ...system import programs
from ...texts import redacted_url
from ..clocks import Clocks
from ..hooks import commands
from ..hooks.executor import Executor, HookResult
from ..telemetry.recorder import Recorder
from . import position as positions
from .formats import JSON_LINES
from .position import Position
from .report import MOST_ROWS, SendReport

LINGER_SECONDS = 1.0  # so that what happens together is sent together
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 300.0
MOST_AFTER_SECONDS = 3600.0  # what a sink may ask for
CHILD_SECONDS = 60.0
_TOKEN = "sink"  # noqa: S105 - not a secret
_CHILD_MODULE = "forewarn.runner.sink.sender"


class SinkSettings(NamedTuple):
    """Where to send the journal.

    The secret is in ``bearer_file``, or in systemd's ``credential``. ``hooks`` has the proxy and the authorities.
    """

    url: str
    format: str = JSON_LINES
    bearer_file: str | None = None
    credential: str | None = None
    hooks: commands.HookSettings = commands.HookSettings()


class Sink:
    """Sends the journal in ``directory``, and what is added to it. For the main thread alone; nothing here raises.

    ``jitter`` returns a random number from 0 to 1, which spreads the retries of a fleet.
    """

    def __init__(
        self,
        settings: SinkSettings,
        directory: str,
        executor: Executor,
        recorder: Recorder,
        clocks: Clocks,
        facts: dict[str, Any],
        dry_run: bool = False,
        jitter: Callable[[], float] = lambda: os.urandom(1)[0] / 255,
    ) -> None:
        self.vm_name: str | None = None
        self._settings = settings
        self._directory = directory
        self._executor = executor
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._facts = facts
        self._dry_run = dry_run
        self._jitter = jitter
        self._position: Position | None = None
        self._unsaved = False
        self._sending = False
        self._due: float | None = clocks.monotonic()  # the rest of an earlier runner is sent now
        self._entries_seen = 0  # entries that this runner had written when the batch was begun
        self._behind = 0  # after it
        self._most_rows = MOST_ROWS
        self._failures = 0
        self._failing_since = 0.0
        self._problem: str | None = None
        for name in ("forewarn_sink_entries_lost_total", "forewarn_sink_entries_rejected_total"):
            self._metrics.count(name, 0.0)  # so that the first is an increase
        self._metrics.count("forewarn_sink_requests_total", 0.0, result="failed")

    def start_if_due(self) -> None:
        """Send a batch if one is due. Call it at each tick."""
        now = self._clocks.monotonic()
        if self._due is None and not self._sending and self._journal.entries_written > self._entries_seen:
            self._due = now + LINGER_SECONDS
        if self._due is not None and not self._sending and now >= self._due:
            self._start()
        self._update_facts()

    def collect_results(self) -> None:
        """Handle the report of a child that has ended. Call it when the executor has woken the main thread."""
        for _token, result in self._executor.take_results():
            self._sending = False
            self._handle_report(_report_of(result))
            self._update_facts()

    def close(self) -> None:
        """End the request in flight. The next runner sends the rest."""
        self._executor.close()

    # Sending

    def _start(self) -> None:
        self._due = None
        if self._position is None:
            self._position = positions.read(self._directory)
            if self._position is None:
                self._position, self._unsaved = positions.new_position(), True
        try:
            if self._unsaved:  # before anything is sent under a name that could be forgotten
                self._save()
            command = self._command(self._position)
        except (OSError, commands.HookError) as error:
            self._failed(
                SendReport(problem=f"{self._directory}: {error}" if isinstance(error, OSError) else str(error))
            )
            return
        self._entries_seen = self._journal.entries_written
        self._sending = True
        self._executor.start(_TOKEN, command)

    def _command(self, position: Position) -> commands.Command:
        """Return the child. Raises HookError."""
        settings = self._settings
        bearer = None
        if settings.bearer_file is not None:
            bearer = {"file": settings.bearer_file}
        elif settings.credential is not None:
            bearer = {"credential": settings.credential}
        # The request is that of an http hook.
        hook = {"http": settings.url, **({} if bearer is None else {"bearer": bearer})}
        request = {
            **commands.request_settings(hook, settings.hooks, CHILD_SECONDS),
            "format": settings.format,
            "directory": self._directory,
            "position": position._asdict(),
            "most_rows": self._most_rows,
            "vm": self.vm_name,
            "dry_run": self._dry_run,
        }
        argv = commands.python(_CHILD_MODULE)
        return commands.Command(
            argv, programs.BASE_ENVIRONMENT, json.dumps(request).encode("ascii") + b"\n", CHILD_SECONDS
        )

    def _handle_report(self, report: SendReport) -> None:
        if report.problem is not None:
            self._failed(report)
            return
        before = self._position or positions.new_position()
        if report.replaced:
            self._position, self._unsaved = positions.new_position(before.lost, before.rejected), True
            self._log.warning(
                "sink-new-stream",
                reason="the journal is not the one of which entries were sent; all that it has is sent",
                before=before.stream,
                stream=self._position.stream,
            )
            self._due = self._clocks.monotonic()
            return
        if report.begins is not None:
            self._position, self._unsaved = before._replace(begins=report.begins), True
            self._behind = report.begins - before.acknowledged
            self._due = self._clocks.monotonic()
            return
        self._behind = report.behind
        self._succeeded()
        if report.acknowledged != before.acknowledged:
            self._position = before._replace(
                acknowledged=report.acknowledged,
                checksum=report.checksum,
                lost=before.lost + report.lost,
                rejected=before.rejected + report.rejected,
            )
            self._unsaved = True
            try:
                self._save()
            except OSError as error:  # it is sent again under the same numbers if the runner ends before it is kept
                self._log.warning("sink-failed", reason=f"{self._directory}: {error.strerror or error}")
            self._report_losses(report, before.acknowledged)
        if report.behind:
            self._due = self._clocks.monotonic()

    def _report_losses(self, report: SendReport, before: int) -> None:
        if report.lost:
            self._metrics.count("forewarn_sink_entries_lost_total", report.lost)
            reason = "the journal had to remove entries before they were sent"
            self._log.warning("sink-lost", entries=report.lost, after=before, reason=reason)
        if report.rejected:
            self._metrics.count("forewarn_sink_entries_rejected_total", report.rejected)
            self._log.warning("sink-rejected", entries=report.rejected, after=before, reason=report.rejection or None)
        if report.rows:
            self._metrics.set("forewarn_sink_last_success_timestamp_seconds", self._clocks.wall())

    def _save(self) -> None:
        if self._position is not None:
            positions.write(self._directory, self._position)
            self._unsaved = False

    # Failures

    def _failed(self, report: SendReport) -> None:
        now = self._clocks.monotonic()
        problem = report.problem or ""
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        self._metrics.count("forewarn_sink_requests_total", result="failed")
        self._behind = report.behind + report.rows or self._behind
        if report.too_large and report.rows > 1:
            self._most_rows = report.rows // 2
            self._due = now
            return
        if problem != self._problem:
            self._log.warning("sink-failed", reason=problem, lasting=report.lasting)
        self._problem = problem
        pause = LONGEST_PAUSE_SECONDS
        if not report.lasting:
            pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 20), LONGEST_PAUSE_SECONDS)
        pause *= 1.0 - 0.5 * self._jitter()
        self._due = now + max(pause, min(report.after_seconds, MOST_AFTER_SECONDS))

    def _succeeded(self) -> None:
        self._metrics.count("forewarn_sink_requests_total", result="ok")
        if self._problem is not None:
            seconds = round(self._clocks.monotonic() - self._failing_since, 3)
            self._log.info("sink-recovered", failures=self._failures, after_seconds=seconds)
        self._problem = None
        self._failures = 0
        self._most_rows = min(2 * self._most_rows, MOST_ROWS)

    # Reporting

    def _update_facts(self) -> None:
        behind = self._behind + self._journal.entries_written - self._entries_seen
        position = self._position
        self._metrics.set("forewarn_sink_entries_behind", float(behind))
        self._facts["sink"] = {
            "url": redacted_url(self._settings.url),
            "format": self._settings.format,
            "stream": None if position is None else position.stream,
            "acknowledged": None if position is None else position.acknowledged,
            "behind": behind,
            "lost": 0 if position is None else position.lost,
            "rejected": 0 if position is None else position.rejected,
            "problem": self._problem,
        }


def _report_of(result: HookResult) -> SendReport:
    """Return the report of a child, or its end as a failure."""
    if result.succeeded:
        try:
            return SendReport(**json.loads(result.output.splitlines()[-1]))
        except (ValueError, TypeError, IndexError):
            return SendReport(problem=f"the process that sends it wrote what is not a report: {result.output[:100]}")
    return SendReport(problem=f"the process that sends it: {result.reason}")
