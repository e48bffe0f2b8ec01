# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of what happens in a runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..event_record import EventRecord
from ..journal.writer import Journal
from .log import Log
from .metrics import Metrics


class Recorder(NamedTuple):
    """The journal, for the runner itself and ``forewarn history``; the log, for people; the metrics, for Prometheus."""

    journal: Journal
    log: Log
    metrics: Metrics

    def write(self, line: str, record: EventRecord, fields: Mapping[str, Any], *, failed: bool = False) -> None:
        """Write what happened to an event to the log, as a warning if it ``failed``, and to the journal."""
        log = self.log.warning if failed else self.log.info
        log(line, event_id=record.event.event_id, drill=record.drill or None, **fields)
        self.journal.note(line, record.identifier, **fields)
