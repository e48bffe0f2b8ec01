# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks that a dry run says it would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..policy.decision import Verdict
from . import hooks
from .journal import Journal
from .life import Life
from .log import Logger


class _Asked(NamedTuple):
    """What one rule asks to run. ``recover`` is due once ``prepare`` was."""

    policy: str
    rule: str | None
    prepare: tuple[str, ...]
    recover: tuple[str, ...]


class Pretence:
    """Says once of each event which hooks would run, when they would. Nothing here runs anything."""

    def __init__(self, journal: Journal, log: Logger) -> None:
        self._journal = journal
        self._log = log
        self._told: dict[int, list[_Asked]] = {}  # by the life's identifier

    def act(self, life: Life, verdicts: Sequence[Verdict], notice_seconds: float | None) -> None:
        """Tell of the prepare hooks that are due now: NotBefore is ``notice_seconds`` away, if that is known."""
        started = life.event.event_status == "Started"
        told = self._told.setdefault(life.identifier, [])
        for verdict in verdicts:
            within = verdict.prepare_within_seconds
            early = within is not None and notice_seconds is not None and notice_seconds > within
            prepares = bool(verdict.prepare) and not started and not early
            recovers = bool(verdict.recover) and started and verdict.recover_when == "started"
            asked = _Asked(verdict.policy, verdict.rule, _described(verdict.prepare), _described(verdict.recover))
            if asked in told or not (prepares or recovers):
                continue
            told.append(asked)
            if prepares:
                self._tell(life, "prepare", asked, asked.prepare)

    def gone(self, life: Life) -> None:
        """Tell of the hooks that would recover, now that the event has left the list."""
        for asked in self._told.pop(life.identifier, ()):
            if asked.recover:
                self._tell(life, "recover", asked, asked.recover)

    def _tell(self, life: Life, phase: str, asked: _Asked, texts: Sequence[str]) -> None:
        fields: dict[str, Any] = {"phase": phase, "hooks": list(texts), "policy": asked.policy, "rule": asked.rule}
        self._log.info("would-run", event_id=life.event.event_id, drill=life.drill or None, **fields)
        self._journal.note("would-run", life.identifier, **fields)


def _described(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(hooks.describe(hook) for hook in found)
