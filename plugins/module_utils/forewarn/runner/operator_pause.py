# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Withholds approvals during an operator's pause, and reports the pause."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from ..policy import pause
from ..policy.approval import PAUSED, Eligibility
from ..policy.pause import Pause
from .clocks import Clocks
from .state.inbox import Inbox
from .telemetry.heartbeat import Beat
from .telemetry.recorder import Recorder

BEGAN, ENDED = "paused", "resumed"  # kinds of entries in the journal, and lines in the log
FACT = "pause"  # of the heartbeat


def reported_pause(beat: Beat) -> str | None:
    """Return the name of the pause that a runner has reported last, None if it had ended."""
    fact = beat.fields.get(FACT)
    name = (fact.get("identifier") or fact.get("problem")) if isinstance(fact, dict) else None
    return name if isinstance(name, str) else None


class OperatorPause:
    """For the main thread alone; nothing here raises. The file of the pause is below the state ``directory``.

    ``reported`` names the pause that the previous runner has reported. ``facts`` are for the heartbeat.
    """

    def __init__(
        self,
        directory: str,
        recorder: Recorder,
        clocks: Clocks,
        facts: MutableMapping[str, Any],
        reported: str | None = None,
    ) -> None:
        self._inbox = Inbox(directory, pause.DIRECTORY, "pause")
        self._directory = directory
        self._recorder = recorder
        self._clocks = clocks
        self._facts = facts
        self._reported = reported
        self._latest: Pause | None = None

    def blocker(self) -> Eligibility | None:
        """Return the pause that lasts now as a reason not to approve, or None."""
        found = self._current()
        if found is None:
            return None
        wait = None if found.problem is not None else max(0.0, found.until - self._clocks.wall())
        return Eligibility(PAUSED, found.describe(), wait)

    def report_change(self, *, approval_in_flight: bool) -> None:
        """Report a pause that has begun or ended.

        Not with an ``approval_in_flight``: once a pause is reported, no approval reaches the service any more.
        """
        found = self._current()
        if approval_in_flight:
            return
        metrics = self._recorder.metrics
        metrics.set("forewarn_paused", 0.0 if found is None else 1.0)
        metrics.set("forewarn_pause_unreadable", 1.0 if found is not None and found.problem is not None else 0.0)
        known = found is not None and found.problem is None
        metrics.replace("forewarn_pause_until_timestamp_seconds", {(): found.until} if known and found else {})
        self._facts[FACT] = None if found is None else found._asdict()
        name = None if found is None else found.identifier or found.problem
        if name != self._reported:
            self._report(found)
            self._reported = name

    def _current(self) -> Pause | None:
        """Return the pause that lasts now."""
        self._latest = pause.read_pause(self._directory, lambda path: self._inbox.read(path.name))
        return self._latest if self._latest is not None and self._latest.is_active(self._clocks.wall()) else None

    def _report(self, found: Pause | None) -> None:
        journal, log, _metrics = self._recorder
        if found is None:
            ended = self._latest is not None and self._latest.identifier == self._reported
            by = self._latest.ended_by if ended and self._latest is not None else None
            fields: dict[str, Any] = {"pause": self._reported, "by": by}
            log.info(ENDED, **fields)
            journal.note(ENDED, None, **fields)
            return
        known = found.problem is None
        fields = {
            "pause": found.identifier or None,
            "by": found.by or None,
            "until": found.until if known else None,
            "reason": found.describe(),
        }
        (log.info if known else log.error)(BEGAN, **fields)
        journal.note(BEGAN, None, **fields)
