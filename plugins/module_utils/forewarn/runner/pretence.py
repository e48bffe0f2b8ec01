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
from .life import CALLED_OFF, FINISHED, Life
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
        # By the life's identifier: what was told, and what would be recovered if the event may have started unseen.
        self._told: dict[int, tuple[list[_Asked], list[_Asked]]] = {}

    def act(self, life: Life, verdicts: Sequence[Verdict], notice_seconds: float | None) -> None:
        """Tell of the prepare hooks that are due now: NotBefore is ``notice_seconds`` away, if that is known."""
        started = life.event.event_status == "Started"
        told, unseen = self._told_of(life)
        unseen.clear()
        for verdict in verdicts:
            within = verdict.prepare_within_seconds
            early = within is not None and notice_seconds is not None and notice_seconds > within
            prepares = bool(verdict.prepare) and not started and not early
            recovers = bool(verdict.recover) and started and verdict.recover_when == "started"
            asked = _Asked(verdict.policy, verdict.rule, _described(verdict.prepare), _described(verdict.recover))
            if verdict.recover and verdict.recover_when == "started":
                unseen.append(asked)
            if asked in told or not (prepares or recovers):
                continue
            told.append(asked)
            if prepares:
                self._tell(life, "prepare", asked, asked.prepare)

    def gone(self, life: Life, outcome: str = FINISHED) -> None:
        """Tell of the hooks that would recover, now that the event has left the list."""
        told, unseen = self._told_of(life)
        del self._told[life.identifier]
        for asked in dict.fromkeys([*told, *(unseen if outcome != CALLED_OFF else ())]):
            if asked.recover:
                self._tell(life, "recover", asked, asked.recover)

    def _told_of(self, life: Life) -> tuple[list[_Asked], list[_Asked]]:
        """Return what was told of an event, by the runner before too."""
        if life.identifier not in self._told:
            told = []
            for fields in self._journal.fields_of("would-run", life.identifier):
                if fields.get("phase") == "prepare":
                    found = (tuple(fields.get(name) or ()) for name in ("hooks", "recover"))
                    told.append(_Asked(str(fields.get("policy")), fields.get("rule"), *found))
            self._told[life.identifier] = told, []
        return self._told[life.identifier]

    def _tell(self, life: Life, phase: str, asked: _Asked, texts: Sequence[str]) -> None:
        fields: dict[str, Any] = {"phase": phase, "hooks": list(texts), "policy": asked.policy, "rule": asked.rule}
        self._log.info("would-run", event_id=life.event.event_id, drill=life.drill or None, **fields)
        later = list(asked.recover) if phase == "prepare" else None
        self._journal.note("would-run", life.identifier, **fields, recover=later)


def _described(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(hooks.describe(hook) for hook in found)
