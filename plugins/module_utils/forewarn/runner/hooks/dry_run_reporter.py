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
    """The hooks of one rule for one content of the event."""

    policy: str
    rule: str | None
    revision: int
    prepare: tuple[str, ...]
    recover: tuple[str, ...]


class DryRunReporter:
    """Reports each hook when it would run, once for each content of the event, and runs nothing.

    ``EventRecord.simulation`` has the reported hooks as ``told``, and as ``unseen`` those that would recover if the
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
            texts = _descriptions(verdict.prepare), _descriptions(verdict.recover)
            hooks = _RuleHooks(verdict.policy, verdict.rule, record.revision, *texts)
            if verdict.recover and verdict.recover_when == "started":
                unseen.append(hooks)
            if hooks in reported or not (prepares or recovers):
                continue
            reported.append(hooks)
            if prepares:
                self._report(record, "prepare", hooks, hooks.prepare)
        if (reported, unseen) != (_reported(record, "told"), _reported(record, "unseen")):
            record.simulation = {"told": reported, "unseen": unseen}
            self._recorder.journal.save(record.as_row())

    def report_recover(self, record: EventRecord, outcome: str = FINISHED) -> None:
        """Report the hooks that would recover after an event that has left the list."""
        found = _reported(record, "told") + (_reported(record, "unseen") if outcome != CALLED_OFF else [])
        for hooks in dict.fromkeys(each._replace(revision=0, prepare=()) for each in found):
            if hooks.recover:
                self._report(record, "recover", hooks, hooks.recover)
        record.simulation = {}

    def _report(self, record: EventRecord, phase: str, hooks: _RuleHooks, texts: Sequence[str]) -> None:
        fields: dict[str, Any] = {"phase": phase, "hooks": list(texts), "policy": hooks.policy, "rule": hooks.rule}
        self._recorder.write("would-run", record, fields)


def _reported(record: EventRecord, key: str) -> list[_RuleHooks]:
    """Return the hooks under a key of ``EventRecord.simulation``, also those of an earlier runner."""
    return [
        _RuleHooks(policy, rule, revision, tuple(prepare), tuple(recover))
        for policy, rule, revision, prepare, recover in record.simulation.get(key, ())
    ]


def _descriptions(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(commands.describe(hook) for hook in found)
