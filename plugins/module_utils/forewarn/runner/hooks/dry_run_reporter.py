# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the hooks that a dry run would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...policy.decision import Verdict
from ..event_record import CALLED_OFF, FINISHED, EventRecord
from ..telemetry.recorder import Recorder
from . import commands


class _RuleHooks(NamedTuple):
    """What one rule asks to run for one content of the event. ``recover`` is due after ``prepare``."""

    policy: str
    rule: str | None
    revision: int
    prepare: tuple[str, ...]
    recover: tuple[str, ...]


class DryRunReporter:
    """Reports, once for each content of an event, the hooks that would run, at that time. Nothing here runs anything.

    ``EventRecord.pretended`` has under ``told`` what was reported, and under ``unseen`` what would be recovered if the
    event may have started unseen.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def report_prepare(self, record: EventRecord, verdicts: Sequence[Verdict], notice_seconds: float | None) -> None:
        """Report the prepare hooks that are due now: NotBefore is ``notice_seconds`` away, if that is known."""
        started = record.event.event_status == "Started"
        reported, unseen = _reported(record, "told"), []
        for verdict in verdicts:
            within = verdict.prepare_within_seconds
            early = within is not None and notice_seconds is not None and notice_seconds > within
            prepares = bool(verdict.prepare) and not started and not early
            recovers = bool(verdict.recover) and started and verdict.recover_when == "started"
            hooked = _descriptions(verdict.prepare), _descriptions(verdict.recover)
            asked = _RuleHooks(verdict.policy, verdict.rule, record.revision, *hooked)
            if verdict.recover and verdict.recover_when == "started":
                unseen.append(asked)
            if asked in reported or not (prepares or recovers):
                continue
            reported.append(asked)
            if prepares:
                self._report(record, "prepare", asked, asked.prepare)
        if (reported, unseen) != (_reported(record, "told"), _reported(record, "unseen")):
            record.simulation = {"told": reported, "unseen": unseen}
            self._recorder.journal.save(record.as_row())

    def report_recover(self, record: EventRecord, outcome: str = FINISHED) -> None:
        """Report the hooks that would recover, now that the event has left the list."""
        found = _reported(record, "told") + (_reported(record, "unseen") if outcome != CALLED_OFF else [])
        for asked in dict.fromkeys(asked._replace(revision=0, prepare=()) for asked in found):
            if asked.recover:
                self._report(record, "recover", asked, asked.recover)
        record.simulation = {}

    def _report(self, record: EventRecord, phase: str, asked: _RuleHooks, texts: Sequence[str]) -> None:
        fields: dict[str, Any] = {"phase": phase, "hooks": list(texts), "policy": asked.policy, "rule": asked.rule}
        self._recorder.write("would-run", record, fields)


def _reported(record: EventRecord, what: str) -> list[_RuleHooks]:
    """Return what was reported of an event, also by an earlier runner."""
    return [
        _RuleHooks(policy, rule, revision, tuple(prepare), tuple(recover))
        for policy, rule, revision, prepare, recover in record.simulation.get(what, ())
    ]


def _descriptions(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(commands.describe(hook) for hook in found)
